package measure

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"ggufreap/reap/tally"
)

// A checkpoint holds what a run has done, so that another run goes on from there: a mark; the
// length of a JSON head, 32 bits, little-endian; the head; parts, each with its length in 64
// bits; and the SHA-256 of all of it. Of a run that measures the parts are the exact sums of each
// kind's halves, of one that has the model write a text the one part is what was written.
const (
	checkpointMark = "ggufreap calibration 1\n"
	draftMark      = "ggufreap written text 1\n"
)

type checkpointHead struct {
	Basis  map[string]string `json:"basis"`
	Groups int               `json:"groups"`
	Next   int               `json:"next"`
}

// Checkpoint returns what was measured. basis names, in words, all that the result depends on.
func (r *Run) Checkpoint(basis map[string]string) ([]byte, error) {
	var parts [][]byte
	for _, halves := range r.sums {
		for _, half := range halves {
			parts = append(parts, half.Append(nil))
		}
	}
	return encodeCheckpoint(checkpointMark, checkpointHead{basis, len(r.groups), r.next}, parts)
}

// DraftCheckpoint returns what was written of a text.
func DraftCheckpoint(draft []byte, basis map[string]string) ([]byte, error) {
	return encodeCheckpoint(draftMark, checkpointHead{Basis: basis}, [][]byte{draft})
}

func encodeCheckpoint(mark string, h checkpointHead, parts [][]byte) ([]byte, error) {
	head, err := json.Marshal(h, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32([]byte(mark), uint32(len(head)))
	b = append(b, head...)
	for _, part := range parts {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// ErrOtherRun says that a checkpoint is not of this run.
var ErrOtherRun = errors.New("the checkpoint is of another run")

// IsDraft reports whether a checkpoint is of a text that was being written.
func IsDraft(data []byte) bool { return bytes.HasPrefix(data, []byte(draftMark)) }

// ResumeDraft returns what a checkpoint has of a text. It must be of a run with the same basis.
func ResumeDraft(data []byte, basis map[string]string) ([]byte, error) {
	_, rest, err := decodeCheckpoint(data, draftMark, basis)
	if err != nil {
		return nil, err
	}
	draft, _, err := cutPart(rest, 8)
	return draft, err
}

// Resume takes over what a checkpoint holds. It must be of a run with the same basis.
func (r *Run) Resume(data []byte, basis map[string]string) error {
	head, rest, err := decodeCheckpoint(data, checkpointMark, basis)
	if err != nil {
		return err
	}
	if head.Groups != len(r.groups) || head.Next < 0 || head.Next > head.Groups {
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

// decodeCheckpoint returns the head of a checkpoint of this kind and basis, and its parts.
func decodeCheckpoint(data []byte, mark string, basis map[string]string) (head checkpointHead, parts []byte, err error) {
	body := len(data) - sha256.Size
	if body < len(mark) || !bytes.HasPrefix(data, []byte(mark)) {
		return head, nil, errors.New("not what an interrupted calibration leaves")
	}
	if sum := sha256.Sum256(data[:body]); !bytes.Equal(sum[:], data[body:]) {
		return head, nil, errors.New("a damaged checkpoint: its sum is wrong")
	}
	text, parts, err := cutPart(data[len(mark):body], 4)
	if err != nil {
		return head, nil, err
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return head, nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(basis)) {
		if head.Basis[key] != basis[key] {
			return head, nil, fmt.Errorf("%w: %s was %q, is %q", ErrOtherRun, key, head.Basis[key], basis[key])
		}
	}
	if len(head.Basis) != len(basis) {
		return head, nil, ErrOtherRun
	}
	return head, parts, nil
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
