package manifest

import (
	"encoding/binary"
	"slices"

	"ggufreap/gguf"
)

// PinSchema is the schema of the pin documents that this package writes, and the only
// one that it reads.
const PinSchema = "ggufreap/pin/v1"

// Pin is the identity of one artifact: the digests of all its parts. Everything but
// Declared was measured.
type Pin struct {
	Schema         string   `json:"schema"`
	PinDigest      Digest   `json:"pin_digest"` // over weights, experts and metadata
	Artifact       Artifact `json:"artifact"`
	Declared       Declared `json:"declared"`
	Files          []File   `json:"files"` // in shard order
	WeightsDigest  Digest   `json:"weights_digest"`
	MetadataDigest Digest   `json:"metadata_digest"`
	Metadata       []Pair   `json:"metadata"` // all but split.*, sorted by key
	Tensors        []Tensor `json:"tensors"`  // in the order of the artifact's tables
}

// Artifact says what an artifact is called and how large it is. Sizes are bytes;
// TensorBytes is data without headers and padding.
type Artifact struct {
	Name         string `json:"name"`
	Architecture string `json:"architecture"`
	Version      uint32 `json:"version"`    // of the format
	ByteOrder    string `json:"byte_order"` // of all numbers, those of tensors too: "little" or "big"
	Shards       int    `json:"shards"`
	FileBytes    int64  `json:"file_bytes"`
	TensorBytes  int64  `json:"tensor_bytes"`
}

// Declared holds what somebody said of the artifact and nobody measured. A field is nil
// where nobody said.
type Declared struct {
	Repo              *string `json:"repo"`
	Revision          *string `json:"revision"`
	License           *string `json:"license"`
	QuantizationLabel *string `json:"quantization_label"`
	BaseModel         *string `json:"base_model"`
	// StatedByHub names the fields above, in their order and as documents spell them, that a
	// hub's answer filled in: nobody here said or computed them.
	StatedByHub []string `json:"stated_by_hub,omitzero"`
}

// A Statement is one thing that is declared.
type Statement struct {
	Name  string // as documents spell it
	Text  string
	ByHub bool
}

// Statements lists what is declared, in the order of the fields.
func (d *Declared) Statements() []Statement {
	var said []Statement
	for _, field := range d.fields() {
		if *field.text != nil {
			said = append(said, Statement{field.name, **field.text, slices.Contains(d.StatedByHub, field.name)})
		}
	}
	return said
}

// StateByHub fills in what nobody declared with what a hub states, which is not "".
func (d *Declared) StateByHub(name, text string) {
	for _, field := range d.fields() {
		if field.name == name && *field.text == nil && text != "" {
			*field.text = &text
			d.StatedByHub = append(d.StatedByHub, name)
		}
	}
}

// A declaredField is where one thing is declared.
type declaredField struct {
	name string
	text **string
}

func (d *Declared) fields() []declaredField {
	return []declaredField{
		{"repo", &d.Repo}, {"revision", &d.Revision}, {"license", &d.License},
		{"quantization_label", &d.QuantizationLabel}, {"base_model", &d.BaseModel},
	}
}

// File is one file of an artifact.
type File struct {
	Name   string `json:"name"` // base name
	Size   int64  `json:"size"`
	SHA256 Sum    `json:"sha256"`
}

// Pair is one metadata key of an artifact.
type Pair struct {
	Key    string `json:"key"`
	Type   string `json:"type"`   // as gguf.ValueType spells it
	BLAKE3 Sum    `json:"blake3"` // of the value's encoded bytes
}

// Tensor is one tensor of an artifact.
type Tensor struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`  // as ggml spells it, upper case
	Shape  []uint64 `json:"shape"` // innermost dim first
	Size   int64    `json:"size"`  // bytes of data without padding
	BLAKE3 Sum      `json:"blake3"`
	Slabs  *Slabs   `json:"slabs,omitempty"`
	IDs    *IDs     `json:"ids,omitempty"`
}

// IDs are a table of expert ids, which pruning writes anew: what became of it can be
// followed only by who has it. In a document both fields are base64.
type IDs struct {
	Table []byte `json:"table"` // the tensor's data, at most 4 MiB
	// Nearest has for each expert all others, the nearest first, as little-endian u16: which
	// of the kept experts takes the place of a dropped one. It is empty where nobody told.
	Nearest []byte `json:"nearest,omitempty"`
}

// Slabs identifies the parts of a tensor that carries one slab for each routed expert.
// Exactly one of BLAKE3 and Bytes is set; in a document both are base64.
type Slabs struct {
	Axis   int    `json:"axis"`  // index in Shape of the expert dim, the last but for outer ones
	Count  int    `json:"count"` // of slabs, all of the same size
	BLAKE3 []byte `json:"blake3,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"` // the slabs themselves, where one has at most 32 bytes
}

// all returns what identifies the slabs, one after the other.
func (s *Slabs) all() []byte {
	if s.Bytes != nil {
		return s.Bytes
	}
	return s.BLAKE3
}

// At returns what identifies slab i: its digest, or its bytes.
func (s *Slabs) At(i int) []byte {
	all := s.all()
	width := len(all) / s.Count
	return all[i*width : (i+1)*width]
}

// Others returns the other experts of n in the order of their nearness to expert i, nil when
// nobody told.
func (d *IDs) Others(i, n int) []int {
	if len(d.Nearest) != n*(n-1)*2 {
		return nil
	}
	var ids []int
	for row := d.Nearest[i*(n-1)*2 : (i+1)*(n-1)*2]; len(row) > 0; row = row[2:] {
		ids = append(ids, int(binary.LittleEndian.Uint16(row)))
	}
	return ids
}

// describe takes what headers tell of tensors and metadata, before any data is read: a
// model that has no digest is refused here.
func (p *Pin) describe(md *gguf.Metadata) error {
	var err error
	if _, err = p.StructureDigest(); err != nil {
		return err
	}
	if p.Metadata, err = PinPairs(md); err != nil {
		return err
	}
	p.MetadataDigest, err = digestPairs(p.Metadata)
	return err
}

// JoinPin returns the pin of an artifact whose files and tensors were pinned apart. Files are
// in shard order, tensors in the order of the artifact's tables.
func JoinPin(a Artifact, said Declared, files []File, metadata []Pair, tensors []Tensor) (*Pin, error) {
	p := &Pin{Schema: PinSchema, Artifact: a, Declared: said, Files: files, Metadata: metadata, Tensors: tensors}
	var err error
	if p.MetadataDigest, err = digestPairs(metadata); err != nil {
		return nil, err
	}
	if err := p.seal(); err != nil {
		return nil, err
	}
	return p, p.Validate()
}

// seal takes the digests that rest on the data of all tensors.
func (p *Pin) seal() error {
	var err error
	p.WeightsDigest, err = p.weights()
	p.PinDigest = p.digest()
	return err
}

// weights returns the weights digest that the tensors give.
func (p *Pin) weights() (Digest, error) {
	return digestTensors(len(p.Tensors), p.line, func(i int) Sum { return p.Tensors[i].BLAKE3 })
}

// StructureDigest returns the structure digest of the pinned artifact.
func (p *Pin) StructureDigest() (Digest, error) { return digestTensors(len(p.Tensors), p.line, nil) }

func (p *Pin) line(i int) tensorLine {
	t := &p.Tensors[i]
	return tensorLine{t.Name, t.Type, t.Shape}
}
