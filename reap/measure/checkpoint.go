package measure

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ggufreap/reap/tally"
)

// A checkpoint holds what a run has measured, so that another run goes on from there: a mark;
// the length of a JSON head, 32 bits, little-endian; the head; the exact sums of each kind's
// halves, each with its length in 64 bits; and the SHA-256 of all of it.
const checkpointMark = "ggufreap calibration 1\n"

type checkpointHead struct {
	Basis  map[string]string `json:"basis"`
	Groups int               `json:"groups"`
	Next   int               `json:"next"`
}

// Checkpoint returns what was measured. basis names, in words, all that the result depends on.
func (r *Run) Checkpoint(basis map[string]string) ([]byte, error) {
	head, err := json.Marshal(checkpointHead{basis, len(r.groups), r.next})
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32([]byte(checkpointMark), uint32(len(head)))
	b = append(b, head...)
	for _, halves := range r.sums {
		for _, half := range halves {
			at := len(b)
			b = half.Append(append(b, make([]byte, 8)...))
			binary.LittleEndian.PutUint64(b[at:], uint64(len(b)-at-8))
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// ErrOtherRun says that a checkpoint is not of this run.
var ErrOtherRun = errors.New("the checkpoint is of another run")

// Resume takes over what a checkpoint holds. It must be of a run with the same basis.
func (r *Run) Resume(data []byte, basis map[string]string) error {
	body := len(data) - sha256.Size
	if body < 0 || !bytes.HasPrefix(data, []byte(checkpointMark)) {
		return errors.New("no checkpoint of a calibration")
	}
	if sum := sha256.Sum256(data[:body]); !bytes.Equal(sum[:], data[body:]) {
		return errors.New("a damaged checkpoint: its sum is wrong")
	}
	rest := data[len(checkpointMark):body]
	text, rest, err := cutPart(rest, 4)
	if err != nil {
		return err
	}
	var head checkpointHead
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(basis)) {
		if head.Basis[key] != basis[key] {
			return fmt.Errorf("%w: %s was %q, is %q", ErrOtherRun, key, head.Basis[key], basis[key])
		}
	}
	if len(head.Basis) != len(basis) || head.Groups != len(r.groups) || head.Next < 0 || head.Next > head.Groups {
		return ErrOtherRun
	}
	sums := make([][2]*tally.Tally, len(r.sums))
	for i := range sums {
		for half := range sums[i] {
			var part []byte
			if part, rest, err = cutPart(rest, 8); err != nil {
				return err
			}
			if sums[i][half], err = tally.Decode(part); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			if err := sums[i][half].Merge(tally.New(r.blocks, r.experts.Count)); err != nil { // of this model?
				return fmt.Errorf("checkpoint: %w", err)
			}
		}
	}
	r.sums, r.next = sums, head.Next
	return nil
}

// cutPart cuts off a part that its length, of so many bytes, precedes.
func cutPart(b []byte, width int) (part, rest []byte, err error) {
	var length [8]byte
	if len(b) >= width {
		copy(length[:], b[:width])
		b = b[width:]
		if n := binary.LittleEndian.Uint64(length[:]); n <= uint64(len(b)) {
			return b[:n], b[n:], nil
		}
	}
	return nil, nil, errors.New("checkpoint: a part is cut off")
}
