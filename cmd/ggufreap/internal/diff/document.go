package diff

import (
	"iter"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// A Document is what tells two artifacts apart, for programs.
type Document struct {
	Schema       string `json:"schema"`
	SameWeights  bool   `json:"same_weights"`
	SameMetadata bool   `json:"same_metadata"`
	SameOrder    bool   `json:"same_order"` // of the tensors that both have
	// DataCompared is false where one side is little endian and the other big endian:
	// then the tensors listed differ in name, type or shape.
	DataCompared bool              `json:"data_compared"`
	SameKeyOrder *bool             `json:"same_key_order"` // of the keys that both have; null when it is not known
	A            sideDocument      `json:"a"`
	B            sideDocument      `json:"b"`
	Tensors      document.Elements `json:"tensors"`    // tensorChange
	Padded       []document.Text   `json:"padded"`     // tensors of unknown type that differ in padding alone
	Keys         document.Elements `json:"keys"`       // keyChange
	SplitKeys    document.Elements `json:"split_keys"` // keyChange, of two artifacts
}

type sideDocument struct {
	Path           document.Text   `json:"path"`
	Name           document.Text   `json:"name"`
	Shards         int             `json:"shards"`
	Tensors        int             `json:"tensors"`
	FileBytes      int64           `json:"file_bytes"`
	TensorBytes    int64           `json:"tensor_bytes"`
	PinDigest      manifest.Digest `json:"pin_digest"`
	WeightsDigest  manifest.Digest `json:"weights_digest"`
	MetadataDigest manifest.Digest `json:"metadata_digest"`

	// null for a pin
	Version       *uint32 `json:"version"`
	ByteOrder     string  `json:"byte_order"`
	TrailingBytes *int64  `json:"trailing_bytes"` // behind the last tensors of files; they are not compared
}

type tensorChange struct {
	Name    document.Text            `json:"name"`
	Change  manifest.Change          `json:"change"`
	A       *tensorSide              `json:"a"` // null where there is none
	B       *tensorSide              `json:"b"`
	Experts document.ListOrNull[int] `json:"experts"` // of experts that differ; null when it is not known
}

type tensorSide struct {
	Type   string       `json:"type"`
	Shape  []uint64     `json:"shape"`
	Size   int64        `json:"size"`
	BLAKE3 manifest.Sum `json:"blake3"`
}

type keyChange struct {
	Key    document.Text   `json:"key"`
	Change manifest.Change `json:"change"`
	A      any             `json:"a"` // type and value, of pins type and digest; null where there is none
	B      any             `json:"b"`
	Where  *placeDocument  `json:"where"` // in a list or string that was changed
}

// A placeDocument says where a value differs. Indexes count from 0.
type placeDocument struct {
	Items *int64              `json:"items"` // elements of a list that differ; null for a string
	Path  []int64             `json:"path"`  // of the first one: its index in the list, its index in that one if it is a list, ...
	Byte  *int64              `json:"byte"`  // the first one that differs of the strings there; null for anything else
	A     *document.PairValue `json:"a"`     // what stands there, null where the list has ended; of a long string what begins with that byte's character
	B     *document.PairValue `json:"b"`
}

// A pairDigest is what a pin has of a key.
type pairDigest struct {
	Type   string       `json:"type"`
	BLAKE3 manifest.Sum `json:"blake3"`
}

// Document is the --json output.
func (d *Difference) Document() Document {
	doc := Document{Schema: "ggufreap/diff/v1", SameWeights: d.sameWeights(), SameMetadata: d.sameMetadata(), SameOrder: d.sameOrder,
		DataCompared: d.dataCompared(), A: d.a.document(), B: d.b.document(), Tensors: d.tensorDocuments, Keys: d.keyDocuments, SplitKeys: d.splitKeyDocuments}
	for _, name := range d.padded {
		doc.Padded = append(doc.Padded, document.Text(name))
	}
	if d.valuesKnown() {
		doc.SameKeyOrder = &d.sameKeyOrder
	}
	return doc
}

func (d *Difference) tensorDocuments(yield func(any) error) error {
	padded := d.padded // in the same order
	for c := range d.changes() {
		if len(padded) > 0 && padded[0] == c.Name {
			padded = padded[1:]
			continue
		}
		if err := yield(tensorChange{document.Text(c.Name), c.Change, newTensorSide(c.A), newTensorSide(c.B), c.Slabs}); err != nil {
			return err
		}
	}
	return nil
}

// keyDocuments lists keys with their values, or with what pins have of them.
func (d *Difference) keyDocuments(yield func(any) error) error {
	for _, c := range d.pairs {
		if err := yield(newPairChange(c)); err != nil {
			return err
		}
	}
	return d.listKeys(manifest.CompareMetadata, yield)
}

func (d *Difference) splitKeyDocuments(yield func(any) error) error {
	return d.listKeys(manifest.CompareSplitKeys, yield)
}

// listKeys lists the keys of two artifacts that a comparison finds.
func (d *Difference) listKeys(compare keyComparison, yield func(any) error) error {
	if !d.valuesKnown() {
		return nil
	}
	for c, err := range compare(d.a.Model.Metadata(), d.b.Model.Metadata()) {
		if err != nil {
			return err
		}
		if err := yield(newKeyChange(c)); err != nil {
			return err
		}
	}
	return nil
}

type keyComparison = func(a, b *gguf.Metadata) iter.Seq2[manifest.KeyChange, error]

func newKeyChange(c manifest.KeyChange) keyChange {
	change := keyChange{Key: document.Text(c.Key), Change: c.Change, Where: newPlace(c)}
	if c.Change != manifest.Added {
		change.A = document.PairValue{Value: c.A}
	}
	if c.Change != manifest.Removed {
		change.B = document.PairValue{Value: c.B}
	}
	return change
}

func newPairChange(c manifest.PairChange) keyChange {
	change := keyChange{Key: document.Text(c.Key), Change: c.Change}
	if c.A != nil {
		change.A = pairDigest{c.A.Type, c.A.BLAKE3}
	}
	if c.B != nil {
		change.B = pairDigest{c.B.Type, c.B.BLAKE3}
	}
	return change
}

func newPlace(c manifest.KeyChange) *placeDocument {
	d := c.Where
	list := c.A.Type() == gguf.Array
	if c.Change != manifest.Changed || !list && c.A.Type() != gguf.Text {
		return nil
	}
	a, b, _ := differingParts(d)
	doc := &placeDocument{Path: d.Path, A: newPart(a), B: newPart(b)}
	if list {
		doc.Items = &d.Items
	} else {
		doc.Path = []int64{}
	}
	if a.Type() == gguf.Text && b.Type() == gguf.Text {
		doc.Byte = &d.Byte
	}
	return doc
}

func newPart(v gguf.Value) *document.PairValue {
	if v.Size() == 0 {
		return nil
	}
	return &document.PairValue{Value: v}
}

func (s *Side) document() sideDocument {
	a := s.pin.Artifact
	doc := sideDocument{Path: document.Text(s.path), Name: document.Text(a.Name), Shards: a.Shards, Tensors: len(s.pin.Tensors), FileBytes: a.FileBytes, TensorBytes: a.TensorBytes,
		PinDigest: s.pin.PinDigest, WeightsDigest: s.pin.WeightsDigest, MetadataDigest: s.pin.MetadataDigest, ByteOrder: s.byteOrder()}
	if s.Model != nil {
		version, trailing := s.version(), s.trailing()
		doc.Version, doc.TrailingBytes = &version, &trailing
	}
	return doc
}

func newTensorSide(t *manifest.Tensor) *tensorSide {
	if t == nil {
		return nil
	}
	return &tensorSide{t.Type, t.Shape, t.Size, t.BLAKE3}
}
