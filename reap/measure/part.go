package measure

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"ggufreap/reap"
	"ggufreap/reap/tally"
)

// A Part is what one of many machines measured: the exact sums of some of the chunks, with
// all that they depend on. Its file is a mark; the length of a JSON head, 32 bits,
// little-endian; the head; the exact sums of each kind of text, each with its length in 64
// bits; and the SHA-256 of all of it.
type Part struct {
	Number int `json:"part"` // from 1
	Parts  int `json:"parts"`
	Facts
	Devices string `json:"devices"` // that computed it
	Chunks  int    `json:"chunks"`  // that were measured here

	sums []*tally.Tally // by kind
}

// Facts are what all parts have in common.
type Facts struct {
	Source     Model             `json:"source"`
	NumExperts int               `json:"num_experts"`
	TopK       int               `json:"top_k"`
	BlockCount int               `json:"block_count"`
	Engine     string            `json:"engine"`
	Settings   map[string]string `json:"settings"` // as the score document states them
	Basis      map[string]string `json:"basis"`    // in words, what else the sums depend on
	Kinds      []PartKind        `json:"kinds"`
	AllChunks  int               `json:"all_chunks"` // of all parts
}

// A Model names the model that was measured.
type Model struct {
	StructureDigest string `json:"structure_digest"`
	WeightsDigest   string `json:"weights_digest"`
	Architecture    string `json:"architecture"`
	Name            string `json:"name"`
}

// A PartKind is a kind of text.
type PartKind struct {
	Label  string  `json:"label"`
	Weight float64 `json:"weight"`
	Files  []File  `json:"files"`
	Left   int     `json:"left"` // tokens that no part measures
}

const partMark = "ggufreap calibration part 1\n"

// isPart reports whether a file begins as that of a part.
func isPart(head []byte) bool { return bytes.HasPrefix(head, []byte(partMark)) }

// Bounds of what is read: MaxPartBytes is far more than the sums of the largest models by
// twenty kinds of text.
const (
	MaxPartBytes = 256 << 20
	maxParts     = 100_000
)

// Only leaves the run the i-th of n parts of its chunks, with i from 1: those whose tokens
// lie there, counting in the order in which they are measured. Chunks that are measured side
// by side stay together, so that each is computed as it is in a run of all.
func (r *Run) Only(i, n int) {
	_, all := r.Tokens()
	var mine []group
	before := 0
	for _, g := range r.groups {
		tokens := len(g.chunks) * len(g.chunks[0])
		if middle := before + tokens/2; int(int64(middle)*int64(n)/int64(all)) == i-1 {
			mine = append(mine, g)
		}
		before += tokens
	}
	r.groups = mine
}

// Take takes over what was measured as a part of the run that [Run.Only] has left, in place of
// measuring it. Of its two halves only the sum is known then.
func (r *Run) Take(p *Part, number int) error {
	chunks := 0
	for _, g := range r.groups {
		chunks += len(g.chunks)
	}
	if p.Number != number || p.Chunks != chunks {
		return fmt.Errorf("it holds part %d with %d chunks, want part %d with %d", p.Number, p.Chunks, number, chunks)
	}
	if err := p.Describes(r.experts); err != nil {
		return err
	}
	for i := range r.sums {
		r.sums[i] = [2]*tally.Tally{p.sums[i].Clone(), tally.New(r.blocks, r.experts.Count)}
	}
	r.next = len(r.groups)
	return nil
}

// Part returns what was measured as a part with the given numbers and facts, of which Kinds
// is filled in.
func (r *Run) Part(number, parts int, facts Facts, devices string) (*Part, error) {
	p := &Part{Number: number, Parts: parts, Facts: facts, Devices: devices}
	p.Chunks, _ = r.Chunks()
	p.Kinds = nil
	for i, kind := range r.Kinds {
		sums, err := r.kindSums(i)
		if err != nil {
			return nil, err
		}
		p.sums = append(p.sums, sums)
		p.Kinds = append(p.Kinds, PartKind{kind.Label, kind.Weight, kind.Files, kind.Left})
	}
	return p, nil
}

// Encode returns the file of a part. The same part gives the same bytes.
func (p *Part) Encode() ([]byte, error) {
	head, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32([]byte(partMark), uint32(len(head)))
	b = append(b, head...)
	for _, sums := range p.sums {
		b = appendSums(b, sums)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// appendSums appends exact sums with their length before them.
func appendSums(b []byte, sums *tally.Tally) []byte {
	at := len(b)
	b = sums.Append(append(b, make([]byte, 8)...))
	binary.LittleEndian.PutUint64(b[at:], uint64(len(b)-at-8))
	return b
}

// ReadPart reads the file of a part. One that differs from what [Part.Encode] writes is an
// error.
func ReadPart(data []byte) (*Part, error) {
	body := len(data) - sha256.Size
	if body < 0 || !isPart(data) {
		return nil, errors.New("no part of a calibration")
	}
	if sum := sha256.Sum256(data[:body]); !bytes.Equal(sum[:], data[body:]) {
		return nil, errors.New("a damaged part of a calibration: its sum is wrong")
	}
	head, rest, err := cutPart(data[len(partMark):body], 4)
	if err != nil {
		return nil, err
	}
	p := &Part{}
	if err := json.Unmarshal(head, p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("part of a calibration: %w", err)
	}
	for range p.Kinds {
		var one []byte
		if one, rest, err = cutPart(rest, 8); err != nil {
			return nil, err
		}
		sums, err := tally.Decode(one)
		if err != nil {
			return nil, fmt.Errorf("part of a calibration: %w", err)
		}
		p.sums = append(p.sums, sums)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("part of a calibration: %w", err)
	}
	if again, err := p.Encode(); err != nil || !bytes.Equal(again, data) {
		return nil, errors.New("part of a calibration: it is not written as this program writes it")
	}
	return p, nil
}

// check reports what no run can have written.
func (p *Part) check() error {
	switch {
	case p.Number < 1 || p.Number > p.Parts || p.Parts > maxParts:
		return fmt.Errorf("part %d of %d", p.Number, p.Parts)
	case p.Chunks < 0 || p.Chunks > p.AllChunks:
		return fmt.Errorf("%d of %d chunks", p.Chunks, p.AllChunks)
	case len(p.Kinds) == 0:
		return errors.New("no kind of text")
	case p.BlockCount < 1 || p.BlockCount > 1<<12:
		return fmt.Errorf("%d layers", p.BlockCount)
	}
	for i, kind := range p.Kinds {
		if !(kind.Weight > 0) {
			return fmt.Errorf("kind %q has weight %v", kind.Label, kind.Weight)
		}
		if !slices.Equal(p.sums[i].Blocks(), p.sums[0].Blocks()) {
			return fmt.Errorf("kind %q: sums of other layers than of %q", kind.Label, p.Kinds[0].Label)
		}
		for block, experts := range p.sums[i].Layers {
			if block >= p.BlockCount || len(experts) != p.NumExperts {
				return fmt.Errorf("layer %d: sums of %d experts, in a model of %d layers with %d experts each", block, len(experts), p.BlockCount, p.NumExperts)
			}
		}
	}
	return nil
}

// Difference says what two parts do not have in common, "" when they may be added.
func (p *Part) Difference(o *Part) string {
	for _, fact := range []struct {
		what string
		a, b any
	}{
		{"the number of parts", p.Parts, o.Parts},
		{"the model", p.Source, o.Source},
		{"the model's experts", [3]int{p.NumExperts, p.TopK, p.BlockCount}, [3]int{o.NumExperts, o.TopK, o.BlockCount}},
		{"llama.cpp", p.Engine, o.Engine},
		{"the texts", p.Kinds, o.Kinds},
		{"the number of chunks", p.AllChunks, o.AllChunks},
	} {
		if !reflect.DeepEqual(fact.a, fact.b) {
			return fmt.Sprintf("%s: %v, and %v", fact.what, fact.a, fact.b)
		}
	}
	for _, lists := range [][2]map[string]string{{p.Settings, o.Settings}, {p.Basis, o.Basis}} {
		for _, key := range slices.Sorted(maps.Keys(lists[0])) {
			if a, b := lists[0][key], lists[1][key]; a != b {
				return fmt.Sprintf("%s: %q, and %q", key, a, b)
			}
		}
		if len(lists[0]) != len(lists[1]) {
			return "the settings"
		}
	}
	return ""
}

// Describes reports whether the part is that of a run of the model.
func (p *Part) Describes(e *reap.Experts) error {
	if p.NumExperts != e.Count || p.TopK != e.Used || p.Source.Architecture != e.Architecture {
		return fmt.Errorf("measured on a model of architecture %s with %d experts of which %d are used, this one is %s with %d and %d",
			p.Source.Architecture, p.NumExperts, p.TopK, e.Architecture, e.Count, e.Used)
	}
	blocks := Blocks(e)
	if got := p.sums[0].Blocks(); !slices.Equal(got, blocks) {
		return fmt.Errorf("measured layers %v, the model has %v", got, blocks)
	}
	for i := range p.sums {
		if err := p.sums[i].Check(e.UsedIn); err != nil {
			return err
		}
	}
	return nil
}
