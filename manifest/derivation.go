package manifest

import (
	"bytes"
	"errors"
	"fmt"

	"ggufreap/gguf"
)

// NoExpert stands for an expert where something is about no single one.
const NoExpert = -1

// A Derivation says which parts of a pinned source the tensors of a release are made of.
type Derivation struct {
	source map[string]*Tensor
	// Keep returns the source's slabs that a tensor consists of, in their new order; nil
	// for a tensor that is the source's whole.
	Keep func(tensor string) []int
	// Rewritten reports whether a tensor's bytes are not the source's; nil for none.
	Rewritten func(tensor string) bool
	// File names the source's file that holds a tensor, for messages.
	File func(tensor string) string
}

// NewDerivation returns a Derivation from a pinned source. Its fields are for the caller
// to set.
func NewDerivation(source *Pin) *Derivation { return &Derivation{source: ByName(source)} }

// Check compares the digests of a tensor that was read from the source with those that
// the source's pin has of the parts that were read. The error is the first difference.
func (d *Derivation) Check(t *Tensor) error {
	if d.Rewritten != nil && d.Rewritten(t.Name) {
		return nil
	}
	s := d.source[t.Name]
	if s == nil {
		return d.differs(t.Name, NoExpert, "is no tensor of the source's pin")
	}
	keep := d.Keep(t.Name)
	switch {
	case keep == nil && t.BLAKE3 != s.BLAKE3:
		return d.differs(t.Name, NoExpert, "blake3 is %s, the source's pin says %s", t.BLAKE3, s.BLAKE3)
	case keep == nil:
		return nil
	case t.SlabCount() != len(keep):
		return d.differs(t.Name, NoExpert, "has %d experts, want %d", t.SlabCount(), len(keep))
	case s.Slabs == nil:
		return d.differs(t.Name, NoExpert, "the source's pin does not tell its experts apart")
	}
	for i, id := range keep {
		if id >= s.Slabs.Count {
			return d.differs(t.Name, id, "the source's pin has %d experts", s.Slabs.Count)
		}
		if got, want := t.Slabs.At(i), s.Slabs.At(id); !bytes.Equal(got, want) {
			return d.differs(t.Name, id, "%s, the source's pin says %x", SlabText(t, got), want)
		}
	}
	return nil
}

// CheckAll compares every tensor of a release's pin.
func (d *Derivation) CheckAll(release *Pin) error {
	for i := range release.Tensors {
		if err := d.Check(&release.Tensors[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Derivation) differs(tensor string, expert int, format string, args ...any) error {
	place := fmt.Sprintf("%s: tensor %q", d.File(tensor), tensor)
	if expert != NoExpert {
		place += fmt.Sprintf(": expert %d", expert)
	}
	return &DerivationError{fmt.Sprintf("%s: %s", place, fmt.Sprintf(format, args...))}
}

// A DerivationError says where a source is not what its pin says.
type DerivationError struct{ What string }

func (e *DerivationError) Error() string { return e.What }

// CheckHeaders returns an error when a model is, by its headers alone, not the artifact
// that p is the pin of. It names the first tensor, type, shape or metadata key that
// differs. Files may be cut another way.
func (p *Pin) CheckHeaders(m *gguf.Model) error {
	var o BuildOptions
	o.Follow(m, p)
	got, err := PinHeaders(m, o)
	if err != nil {
		return err
	}
	for _, c := range CompareTensors(p, got) {
		if what := c.StructureText(); what != "" {
			return fmt.Errorf("tensor %q %s", c.Name, what)
		}
	}
	for _, c := range ComparePairs(p.Metadata, got.Metadata) {
		return errors.New(c.String())
	}
	return nil
}

// StructureText says how a tensor differs from the pinned one A by headers, or "".
func (c TensorChange) StructureText() string {
	switch c.Change {
	case Added:
		return "is not pinned"
	case Removed:
		return "is pinned and not there"
	case Retyped:
		return fmt.Sprintf("has type %s, the pin says %s", c.B.Type, c.A.Type)
	case Reshaped:
		return fmt.Sprintf("has shape %v, the pin says %v", c.B.Shape, c.A.Shape)
	}
	return ""
}
