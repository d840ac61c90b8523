package diff

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// Show prints the screen.
func Show(con *ui.Console, d *Difference) {
	for _, s := range []struct {
		label string
		*Side
	}{{"a", d.a}, {"b", d.b}} {
		con.Field(s.label, "%s", text.Safe(s.path))
		con.Field("", "%s, %s, %s", text.Safe(s.pin.Artifact.Name), text.Files(s.pin.Artifact.Shards), text.Count(len(s.pin.Tensors), "tensor"))
		con.Field("", "%s", text.Size(s.pin.Artifact.TensorBytes))
		con.DigestField("", "pin", s.pin.PinDigest.String())
		con.DigestField("", "weights", s.pin.WeightsDigest.String())
	}
	con.Printf("\n")
	con.Field("weights", "%s", d.weightsText())
	con.Field("metadata", "%s", sameOr(d.sameMetadata(), text.Differ(d.keyCount, "key")))
	if !d.sameByteOrder() {
		con.Field("byte order", "%s endian / %s endian", d.a.byteOrder(), d.b.byteOrder())
	}
	for _, note := range d.notes() {
		con.Field("note", "%s", note)
	}
	showTensorChanges(con, d.tensors, d.tensorCount)
	if d.valuesKnown() {
		showKeyChanges(con, d.keys, d.keyCount)
	} else {
		showPairChanges(con, d.pairs)
	}
}

func (d *Difference) weightsText() string {
	text := sameOr(d.tensorCount == 0, text.Differ(d.tensorCount, "tensor"))
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

// mostNames bounds the names that a note lists.
const mostNames = 6

// notes lists what differs and does not make a model another one.
func (d *Difference) notes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	a, b := d.a.pin, d.b.pin
	if a.Artifact.Shards != b.Artifact.Shards {
		note("cut into %s, and into %s", text.Files(a.Artifact.Shards), text.Files(b.Artifact.Shards))
	}
	if !d.sameOrder {
		note("the tensors that both have stand in another order")
	}
	if names := manifest.OtherDims(a, b); len(names) > 0 {
		note("stored dims of 1 at the outer end differ, which identity leaves out: %s", text.Names(names, mostNames))
	}
	if len(d.padded) > 0 {
		note("padding behind %s of unknown type differs, which weights digests count: %s", text.Count(len(d.padded), "tensor"), text.Names(d.padded, mostNames))
	}
	if d.valuesKnown() {
		return append(notes, d.fileNotes()...)
	}
	return notes
}

// fileNotes are the notes that only two artifacts give.
func (d *Difference) fileNotes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if !d.sameKeyOrder {
		note("the keys that both have stand in another order")
	}
	if keys := d.oddSplitKeys(); len(keys) > 0 {
		note("split keys that differ: %s", text.Names(keys, mostNames))
	}
	if a, b := d.a.version(), d.b.version(); a != b {
		note("GGUF version %d, and version %d", a, b)
	}
	if a, b := d.a.trailing(), d.b.trailing(); a > 0 || b > 0 {
		note("bytes behind the last tensor, which were not compared: %s, and %s", text.Grouped(a), text.Grouped(b))
	}
	return notes
}

// oddSplitKeys are the split keys that differ, without those that must when one side is
// cut into more shards.
func (d *Difference) oddSplitKeys() []string {
	if d.a.pin.Artifact.Shards == d.b.pin.Artifact.Shards {
		return d.splitKeys
	}
	cut := []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors}
	return slices.DeleteFunc(slices.Clone(d.splitKeys), func(key string) bool { return slices.Contains(cut, key) })
}

// maxChanges bounds the changes that are printed; the JSON document has all.
const maxChanges = 50

func showTensorChanges(con *ui.Console, first []manifest.TensorChange, all int) {
	if len(first) == 0 {
		return
	}
	con.Printf("\n")
	cols := []table.Column{table.Left("tensor"), table.Left(""), table.Left("a"), table.Left("b"), table.Left("experts that differ")}
	if !slices.ContainsFunc(first, func(c manifest.TensorChange) bool { return len(c.Slabs) > 0 }) {
		cols = cols[:len(cols)-1]
	}
	con.Table("", cols, func(yield func([]string) bool) {
		for _, c := range first {
			a, b := tensorTexts(c)
			row := []string{text.Abridge(text.Safe(c.Name)), string(c.Change), a, b, slabText(c)}
			if !yield(row[:len(cols)]) {
				return
			}
		}
	})
	con.More(all-len(first), "tensor")
}

// tensorTexts writes what stands on both sides, with sizes where they alone tell that it
// differs.
func tensorTexts(c manifest.TensorChange) (a, b string) {
	a, b = tensorText(c.A), tensorText(c.B)
	if a == b && c.A.Size != c.B.Size {
		return a + ", " + text.Count(c.A.Size, "byte"), b + ", " + text.Count(c.B.Size, "byte")
	}
	return a, b
}

func tensorText(t *manifest.Tensor) string {
	if t == nil {
		return "-"
	}
	return t.Type + " " + text.Shape(t.Shape)
}

// slabText lists a few of the experts that differ.
func slabText(c manifest.TensorChange) string {
	if len(c.Slabs) == 0 {
		return ""
	}
	const most = 6
	if len(c.Slabs) > most {
		return fmt.Sprintf("%s of %s", text.Grouped(len(c.Slabs)), text.Grouped(c.A.Slabs.Count))
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Slabs), " ", ", "), "[]")
}

// showKeyChanges prints the first of all the keys that differ, each with what stands on
// both sides.
func showKeyChanges(con *ui.Console, first []manifest.KeyChange, all int) {
	if len(first) == 0 {
		return
	}
	con.Printf("\n")
	for _, c := range first {
		con.Field(string(c.Change), "%s", text.Shorten(c.Key))
		if c.Change != manifest.Added {
			con.Field("", "a: %s", typedText(c.A))
		}
		if c.Change != manifest.Removed {
			con.Field("", "b: %s", typedText(c.B))
		}
		if text := placeText(c); text != "" {
			con.Field("", "%s", text)
		}
	}
	con.More(all-len(first), "key")
}

// showPairChanges prints each key with what a pin has of it.
func showPairChanges(con *ui.Console, changes []manifest.PairChange) {
	if len(changes) == 0 {
		return
	}
	con.Printf("\n")
	shown := changes[:min(len(changes), maxChanges)]
	for _, c := range shown {
		con.Field(string(c.Change), "%s", text.Shorten(c.Key))
		if c.A != nil {
			con.Field("", "a: %s blake3 %s", c.A.Type, c.A.BLAKE3)
		}
		if c.B != nil {
			con.Field("", "b: %s blake3 %s", c.B.Type, c.B.BLAKE3)
		}
	}
	con.More(len(changes)-len(shown), "key")
}

func typedText(v gguf.Value) string { return v.TypeName() + " " + metadata.Short(v) }
