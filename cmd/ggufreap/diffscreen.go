package main

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// showDifference prints the screen.
func (con *console) showDifference(d *difference) {
	for _, s := range []struct {
		label string
		*side
	}{{"a", d.a}, {"b", d.b}} {
		con.field(s.label, "%s", safe(s.path))
		con.field("", "%s, %s, %s, %s", safe(s.pin.Artifact.Name), fileCount(s.pin.Artifact.Shards),
			count(len(s.pin.Tensors), "tensor"), sizeText(s.pin.Artifact.TensorBytes))
		con.field("", "weights %s", s.pin.WeightsDigest)
	}
	con.printf("\n")
	con.field("weights", "%s", sameOr(d.sameWeights(), count(len(d.tensors), "tensor")+" differ"))
	con.field("metadata", "%s", sameOr(d.sameMetadata(), d.keyText()))
	for _, note := range d.notes() {
		con.field("note", "%s", note)
	}
	con.showTensorChanges(d.tensors)
	if d.valuesKnown() {
		con.showKeyChanges(d.keys)
	} else {
		con.showPairChanges(d.pairs)
	}
}

func sameOr(same bool, otherwise string) string {
	if same {
		return "same"
	}
	return otherwise
}

func (d *difference) keyText() string {
	return count(len(d.pairs), "key") + " differ"
}

// notes lists what differs and does not make a model another one.
func (d *difference) notes() []string {
	var notes []string
	a, b := d.a.pin, d.b.pin
	if a.Artifact.Shards != b.Artifact.Shards {
		notes = append(notes, fmt.Sprintf("cut into %s, and into %s", fileCount(a.Artifact.Shards), fileCount(b.Artifact.Shards)))
	}
	if !d.sameOrder {
		notes = append(notes, "the tensors that both have stand in another order")
	}
	return notes
}

// maxChanges bounds the changes that are printed; the JSON document has all.
const maxChanges = 50

func (con *console) showTensorChanges(changes []manifest.TensorChange) {
	if len(changes) == 0 {
		return
	}
	con.printf("\n")
	cols := []column{{"tensor", false}, {"", false}, {"a", false}, {"b", false}, {"experts that differ", false}}
	shown := changes[:min(len(changes), maxChanges)]
	if !slices.ContainsFunc(shown, func(c manifest.TensorChange) bool { return len(c.Slabs) > 0 }) {
		cols = cols[:len(cols)-1]
	}
	con.table("", cols, func(yield func([]string) bool) {
		for _, c := range shown {
			row := []string{safe(c.Name), string(c.Change), tensorText(c.A), tensorText(c.B), slabText(c)}
			if !yield(row[:len(cols)]) {
				return
			}
		}
	})
	con.showMore(len(changes)-len(shown), "tensor")
}

func (con *console) showMore(more int, noun string) {
	if more > 0 {
		con.printf("and %s more; --json lists them\n", count(more, noun))
	}
}

func tensorText(t *manifest.Tensor) string {
	if t == nil {
		return "-"
	}
	return t.Type + " " + shapeText(t.Shape)
}

// slabText lists a few of the experts that differ.
func slabText(c manifest.TensorChange) string {
	if len(c.Slabs) == 0 {
		return ""
	}
	const most = 6
	if len(c.Slabs) > most {
		return fmt.Sprintf("%s of %s", grouped(len(c.Slabs)), grouped(c.A.Slabs.Count))
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Slabs), " ", ", "), "[]")
}

// showKeyChanges prints each key with what stands on both sides.
func (con *console) showKeyChanges(changes []manifest.KeyChange) {
	if len(changes) == 0 {
		return
	}
	con.printf("\n")
	shown := changes[:min(len(changes), maxChanges)]
	for _, c := range shown {
		con.field(string(c.Change), "%s", shorten(c.Key))
		if c.Change != manifest.Added {
			con.field("", "a: %s", typedText(c.A))
		}
		if c.Change != manifest.Removed {
			con.field("", "b: %s", typedText(c.B))
		}
	}
	con.showMore(len(changes)-len(shown), "key")
}

// showPairChanges prints each key with what a pin has of it.
func (con *console) showPairChanges(changes []manifest.PairChange) {
	if len(changes) == 0 {
		return
	}
	con.printf("\n")
	shown := changes[:min(len(changes), maxChanges)]
	for _, c := range shown {
		con.field(string(c.Change), "%s", shorten(c.Key))
		if c.A != nil {
			con.field("", "a: %s blake3 %s", c.A.Type, c.A.BLAKE3)
		}
		if c.B != nil {
			con.field("", "b: %s blake3 %s", c.B.Type, c.B.BLAKE3)
		}
	}
	con.showMore(len(changes)-len(shown), "key")
}

func typedText(v gguf.Value) string { return v.TypeName() + " " + value{v}.short() }

// A diffDocument is the --json output.
type diffDocument struct {
	Schema       string         `json:"schema"`
	SameWeights  bool           `json:"same_weights"`
	SameMetadata bool           `json:"same_metadata"`
	SameOrder    bool           `json:"same_order"` // of the tensors that both have
	A            sideDocument   `json:"a"`
	B            sideDocument   `json:"b"`
	Tensors      []tensorChange `json:"tensors"`
	Keys         []keyChange    `json:"keys"`
}

type sideDocument struct {
	Path           text            `json:"path"`
	Name           text            `json:"name"`
	Shards         int             `json:"shards"`
	Tensors        int             `json:"tensors"`
	FileBytes      int64           `json:"file_bytes"`
	TensorBytes    int64           `json:"tensor_bytes"`
	WeightsDigest  manifest.Digest `json:"weights_digest"`
	MetadataDigest manifest.Digest `json:"metadata_digest"`
}

type tensorChange struct {
	Name   text            `json:"name"`
	Change manifest.Change `json:"change"`
	A      *tensorSide     `json:"a"` // null where there is none
	B      *tensorSide     `json:"b"`
	Slabs  []int           `json:"slabs"` // of experts that differ; null when it is not known
}

type tensorSide struct {
	Type   string       `json:"type"`
	Shape  []uint64     `json:"shape"`
	Size   int64        `json:"size"`
	BLAKE3 manifest.Sum `json:"blake3"`
}

type keyChange struct {
	Key    text            `json:"key"`
	Change manifest.Change `json:"change"`
	A      any             `json:"a"` // type and value, of pins type and digest; null where there is none
	B      any             `json:"b"`
}

// A pairDigest is what a pin has of a key.
type pairDigest struct {
	Type   string       `json:"type"`
	BLAKE3 manifest.Sum `json:"blake3"`
}

func (d *difference) document() diffDocument {
	doc := diffDocument{Schema: "ggufreap/diff/v1", SameWeights: d.sameWeights(), SameMetadata: d.sameMetadata(), SameOrder: d.sameOrder,
		A: d.a.document(), B: d.b.document()}
	for _, c := range d.tensors {
		doc.Tensors = append(doc.Tensors, tensorChange{text(c.Name), c.Change, newTensorSide(c.A), newTensorSide(c.B), c.Slabs})
	}
	doc.Keys = d.keyDocuments()
	return doc
}

// keyDocuments lists the keys that differ, with values where both sides have some.
func (d *difference) keyDocuments() []keyChange {
	keys := []keyChange{}
	if !d.valuesKnown() {
		for _, c := range d.pairs {
			change := keyChange{Key: text(c.Key), Change: c.Change}
			if c.A != nil {
				change.A = pairDigest{c.A.Type, c.A.BLAKE3}
			}
			if c.B != nil {
				change.B = pairDigest{c.B.Type, c.B.BLAKE3}
			}
			keys = append(keys, change)
		}
		return keys
	}
	for _, c := range d.keys {
		change := keyChange{Key: text(c.Key), Change: c.Change}
		if c.Change != manifest.Added {
			change.A = pairValue{Value: c.A}
		}
		if c.Change != manifest.Removed {
			change.B = pairValue{Value: c.B}
		}
		keys = append(keys, change)
	}
	return keys
}

func (s *side) document() sideDocument {
	a := s.pin.Artifact
	return sideDocument{text(s.path), text(a.Name), a.Shards, len(s.pin.Tensors), a.FileBytes, a.TensorBytes, s.pin.WeightsDigest, s.pin.MetadataDigest}
}

func newTensorSide(t *manifest.Tensor) *tensorSide {
	if t == nil {
		return nil
	}
	return &tensorSide{t.Type, t.Shape, t.Size, t.BLAKE3}
}
