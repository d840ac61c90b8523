// Package diff is the answer of "diff": what tells two artifacts apart, or pins of them. The
// model of the answer stands in difference.go, padding.go and place.go; the screen in
// screen.go; the document in document.go. It reads no flags.
package diff

import (
	"context"
	"io"
	"iter"
	"strings"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// A Side is one of the two things that are compared.
type Side struct {
	path  string
	Model *gguf.Model // nil for a pin
	pin   *manifest.Pin
}

// Open opens an artifact by open, or reads a pin, which may come from stdin. The caller closes it, unless there is an
// error.
func Open(stdin io.Reader, path string, open func(path string) (*gguf.Model, error)) (*Side, error) {
	s := &Side{path: path}
	var err error
	if isPinName(path) || files.IsStream(path) {
		s.pin, err = files.ReadPin(stdin, path)
		return s, err
	}
	if s.Model, err = open(path); err != nil {
		return s, err
	}
	if err := s.Model.Err(); err != nil {
		s.Close()
		return s, err
	}
	return s, nil
}

func isPinName(path string) bool {
	return strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".zst")
}

func (s *Side) version() uint32 { return s.Model.Files[0].Version }

// trailing returns the bytes of an artifact that stand behind the last tensor of a file.
func (s *Side) trailing() int64 {
	var n int64
	for _, f := range s.Model.Files {
		n += f.Trailing()
	}
	return n
}

// Close closes an artifact.
func (s *Side) Close() {
	if s.Model != nil {
		s.Model.Close()
	}
}

// byteOrder names the byte order of an artifact.
func (s *Side) byteOrder() string { return s.pin.Artifact.ByteOrder }

// Measure reads the artifacts among the sides whole. What their pins have beside digests,
// options says.
func Measure(ctx context.Context, con *ui.Console, sides [2]*Side, options func(*gguf.Model) manifest.BuildOptions) error {
	var total, before int64
	for _, s := range sides {
		if s.Model != nil {
			total += s.Model.FileBytes()
		}
	}
	p := con.StartProgress("diff", total)
	for _, s := range sides {
		if s.Model == nil {
			continue
		}
		o := options(s.Model)
		o.Progress = func(done, _ int64) { p.Set(before+done, total) }
		var err error
		if s.pin, err = manifest.BuildPin(ctx, s.Model, o); err != nil {
			return err
		}
		if sides[0].Model != nil && sides[1].Model != nil {
			s.pin.Metadata = nil // there can be many keys, and their values are compared
		}
		before += s.Model.FileBytes()
	}
	p.Finish()
	return nil
}

// A Difference is all that tells two artifacts apart.
type Difference struct {
	a, b        *Side
	tensorCount int                     // tensors that differ
	tensors     []manifest.TensorChange // the first of them
	padded      []string                // tensors that differ in padding alone; see differsInPadding
	sameOrder   bool

	// of two artifacts
	keyCount     int                  // keys that differ
	keys         []manifest.KeyChange // the first of them
	splitKeys    []string             // that differ
	sameKeyOrder bool

	// where one is a pin
	pairs []manifest.PairChange
}

// Compare holds two sides that were measured against each other.
func Compare(a, b *Side) (*Difference, error) {
	d := &Difference{a: a, b: b, sameOrder: manifest.SameOrder(a.pin, b.pin)}
	if err := d.compareTensors(); err != nil {
		return nil, err
	}
	if d.valuesKnown() {
		return d, d.compareMetadata()
	}
	d.pairs = manifest.ComparePairs(a.pin.Metadata, b.pin.Metadata)
	d.keyCount = len(d.pairs)
	return d, nil
}

// compareMetadata keeps no more of the keys that differ than the screen shows.
func (d *Difference) compareMetadata() error {
	a, b := d.a.Model.Metadata(), d.b.Model.Metadata()
	d.sameKeyOrder = manifest.SameKeyOrder(a, b)
	for c, err := range manifest.CompareMetadata(a, b) {
		if err != nil {
			return err
		}
		if d.keyCount++; d.keyCount <= maxChanges {
			d.keys = append(d.keys, c)
		}
	}
	for c, err := range manifest.CompareSplitKeys(a, b) {
		if err != nil {
			return err
		}
		d.splitKeys = append(d.splitKeys, c.Key)
	}
	return nil
}

// changes yields the tensors that differ, in padding alone too. Data in another byte order has
// other bytes, which say nothing.
func (d *Difference) changes() iter.Seq[manifest.TensorChange] {
	return func(yield func(manifest.TensorChange) bool) {
		for c := range manifest.TensorChanges(d.a.pin, d.b.pin) {
			if (c.Change != manifest.Changed || d.dataCompared()) && !yield(c) {
				return
			}
		}
	}
}

// compareTensors keeps no more of the tensors that differ than the screen shows.
func (d *Difference) compareTensors() error {
	for c := range d.changes() {
		padding, err := d.differsInPadding(c)
		if err != nil {
			return err
		}
		if padding {
			d.padded = append(d.padded, c.Name)
		} else if d.tensorCount++; d.tensorCount <= maxChanges {
			d.tensors = append(d.tensors, c)
		}
	}
	return nil
}

// valuesKnown reports whether both sides have metadata values; a pin has their digests.
func (d *Difference) valuesKnown() bool { return d.a.Model != nil && d.b.Model != nil }

func (d *Difference) sameByteOrder() bool {
	return d.a.byteOrder() == d.b.byteOrder()
}

// dataCompared reports whether the data of tensors could be compared, if there is some.
func (d *Difference) dataCompared() bool {
	return d.sameByteOrder() || min(d.a.pin.Artifact.TensorBytes, d.b.pin.Artifact.TensorBytes) == 0
}

func (d *Difference) sameWeights() bool { return d.dataCompared() && d.tensorCount == 0 }

func (d *Difference) sameMetadata() bool { return d.keyCount == 0 }

// Same reports whether the two have the same weights and the same metadata.
func (d *Difference) Same() bool { return d.sameWeights() && d.sameMetadata() }
