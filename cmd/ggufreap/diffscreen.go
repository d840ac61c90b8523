package main

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// showDifference prints the screen.
func (con *console) showDifference(d *difference) {
	for _, s := range []struct {
		label string
		*side
	}{{"a", d.a}, {"b", d.b}} {
		con.field(s.label, "%s", safe(s.path))
		con.field("", "%s, %s, %s", safe(s.pin.Artifact.Name), fileCount(s.pin.Artifact.Shards), count(len(s.pin.Tensors), "tensor"))
		con.field("", "%s", sizeText(s.pin.Artifact.TensorBytes))
		con.digestField("", "weights", s.pin.WeightsDigest.String())
	}
	con.printf("\n")
	con.field("weights", "%s", d.weightsText())
	con.field("metadata", "%s", sameOr(d.sameMetadata(), differ(d.keyCount, "key")))
	if !d.sameByteOrder() {
		con.field("byte order", "%s endian / %s endian", d.a.byteOrder(), d.b.byteOrder())
	}
	for _, note := range d.notes() {
		con.field("note", "%s", note)
	}
	con.showTensorChanges(d.tensors)
	if d.valuesKnown() {
		con.showKeyChanges(d.keys, d.keyCount)
	} else {
		con.showPairChanges(d.pairs)
	}
}

func (d *difference) weightsText() string {
	text := sameOr(len(d.tensors) == 0, differ(len(d.tensors), "tensor"))
	if d.dataCompared() {
		return text
	}
	return "stored in another byte order: data was not compared; names, types and shapes: " + text
}

func sameOr(same bool, otherwise string) string {
	if same {
		return "same"
	}
	return otherwise
}

// differ writes how many things differ: "1 key differs", "2 keys differ".
func differ[T words.Integer](n T, noun string) string {
	return count(n, noun) + " " + words.Verb(n, "differs", "differ")
}

// notes lists what differs and does not make a model another one.
func (d *difference) notes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	a, b := d.a.pin, d.b.pin
	if a.Artifact.Shards != b.Artifact.Shards {
		note("cut into %s, and into %s", fileCount(a.Artifact.Shards), fileCount(b.Artifact.Shards))
	}
	if !d.sameOrder {
		note("the tensors that both have stand in another order")
	}
	if len(d.padded) > 0 {
		note("padding behind %s of unknown type differs, which weights digests count: %s", count(len(d.padded), "tensor"), nameList(d.padded, screenMissing))
	}
	if d.valuesKnown() {
		return append(notes, d.fileNotes()...)
	}
	for i, s := range []*side{d.a, d.b} {
		if s.byteOrder() == "big" {
			note("%c is big endian, and a pin does not tell its byte order: equal bytes mean equal weights only if the orders are equal", "ab"[i])
		}
	}
	return notes
}

// fileNotes are the notes that only two artifacts give.
func (d *difference) fileNotes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if !d.sameKeyOrder {
		note("the keys that both have stand in another order")
	}
	if keys := d.oddSplitKeys(); len(keys) > 0 {
		note("split keys that differ: %s", nameList(keys, screenMissing))
	}
	if a, b := d.a.version(), d.b.version(); a != b {
		note("GGUF version %d, and version %d", a, b)
	}
	if a, b := d.a.trailing(), d.b.trailing(); a > 0 || b > 0 {
		note("bytes behind the last tensor, which were not compared: %s, and %s", grouped(a), grouped(b))
	}
	return notes
}

// oddSplitKeys are the split keys that differ, without those that must when one side is
// cut into more shards.
func (d *difference) oddSplitKeys() []string {
	if d.a.pin.Artifact.Shards == d.b.pin.Artifact.Shards {
		return d.splitKeys
	}
	cut := []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors}
	return slices.DeleteFunc(slices.Clone(d.splitKeys), func(key string) bool { return slices.Contains(cut, key) })
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
			a, b := tensorTexts(c)
			row := []string{abridge(safe(c.Name)), string(c.Change), a, b, slabText(c)}
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

// tensorTexts writes what stands on both sides, with sizes where they alone tell that it
// differs.
func tensorTexts(c manifest.TensorChange) (a, b string) {
	a, b = tensorText(c.A), tensorText(c.B)
	if a == b && c.A.Size != c.B.Size {
		return a + ", " + count(c.A.Size, "byte"), b + ", " + count(c.B.Size, "byte")
	}
	return a, b
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

// showKeyChanges prints the first of all the keys that differ, each with what stands on
// both sides.
func (con *console) showKeyChanges(first []manifest.KeyChange, all int) {
	if len(first) == 0 {
		return
	}
	con.printf("\n")
	for _, c := range first {
		con.field(string(c.Change), "%s", shorten(c.Key))
		if c.Change != manifest.Added {
			con.field("", "a: %s", typedText(c.A))
		}
		if c.Change != manifest.Removed {
			con.field("", "b: %s", typedText(c.B))
		}
		if text := placeText(c); text != "" {
			con.field("", "%s", text)
		}
	}
	con.showMore(all-len(first), "key")
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
