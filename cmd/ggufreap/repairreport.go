package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/repair"
)

// describe prints what is wrong.
func (r *repairing) describe() {
	d := r.damage
	if len(d.Ranges) == 0 {
		return
	}
	r.con.Field("wrong", "%s in %s", text.Count(len(d.Ranges), "range"), text.Count(len(d.Files), "file"))
	if n := d.Resumed(); n > 0 {
		r.con.Field("", "%s of them were replaced before: going on", text.Grouped(n))
	}
	for _, f := range d.Files {
		switch {
		case f.Found < 0:
			r.con.Field("", "%s: is not there; it should have %s", text.Safe(f.File), text.Count(f.Size, "byte"))
		case f.Found < f.Size:
			r.con.Field("", "%s: ends %s too early, at byte %s", text.Safe(f.File), text.Count(f.Size-f.Found, "byte"), text.Grouped(f.Found))
		case f.Found > f.Size:
			r.con.Field("", "%s: has %s too many behind its end at byte %s", text.Safe(f.File), text.Count(f.Found-f.Size, "byte"), text.Grouped(f.Size))
		}
	}
	const most = 20
	shown, whole := 0, 0
	gone := map[string]bool{}
	for _, f := range d.Files {
		gone[f.File] = f.Found < 0
	}
	for _, wrong := range d.Ranges {
		if wrong.Kind != repair.Bytes || gone[wrong.File] {
			continue
		}
		if shown++; shown <= most {
			r.con.Field("", "%s: %s at %s%s", text.Safe(wrong.File), text.Count(wrong.Length, "byte"), text.Grouped(wrong.Offset), r.rangeText(wrong))
		}
	}
	r.con.More(shown-most, "range")
	for _, f := range d.Files {
		if f.Whole {
			whole++
		}
	}
	if whole > 0 {
		r.con.Field("why so much", "only sums are known, which tell the file and not the place in it: %s is replaced whole. With a pin it would be the wrong experts alone (ggufreap pin)", text.Count(whole, "file"))
	}
}

// rangeText names what a range is of, where that is known.
func (r *repairing) rangeText(wrong repair.Range) string {
	switch {
	case wrong.Expert != nil:
		return fmt.Sprintf(": tensor %s, expert %d", text.Safe(wrong.Tensor), *wrong.Expert)
	case wrong.Tensor != "":
		return ": tensor " + text.Safe(wrong.Tensor)
	case r.job.Pin == nil:
		return ""
	case wrong.Offset == 0:
		return ": header"
	}
	return ": padding"
}

// repairDocument is the --json output of repair.
type repairDocument struct {
	Schema  string          `json:"schema"`
	Files   []fileOutput    `json:"files"`
	Ranges  []rangeOutput   `json:"ranges"`
	Bytes   int64           `json:"bytes"` // replaced by this run, or to be replaced
	Mended  bool            `json:"mended"`
	Sources []tookOutput    `json:"sources"`
	Checked checkedOutput   `json:"checked"`
	Notes   []document.Text `json:"notes"`
	Fetched *int64          `json:"fetched"` // bytes that travelled; null for copies on this machine
}

type fileOutput struct {
	File  document.Text `json:"file"`
	Size  int64         `json:"size"`
	Found *int64        `json:"found"` // null for a file that is not there
	Whole bool          `json:"whole"`
}

type rangeOutput struct {
	File   document.Text  `json:"file"`
	Kind   string         `json:"kind"`
	Offset int64          `json:"offset"`
	Length int64          `json:"length"`
	Tensor *document.Text `json:"tensor"` // null for header, padding, and files of which only a sum is known
	Expert *int           `json:"expert"`
}

type tookOutput struct {
	Source document.Text `json:"source"`
	Ranges int           `json:"ranges"`
	Bytes  int64         `json:"bytes"`
}

type checkedOutput struct {
	PinDigest *manifest.Digest `json:"pin_digest"` // null where only sums are known
	Tensors   int              `json:"tensors"`
	Experts   int              `json:"experts"`
	Files     int              `json:"files"` // whose sum is known
}

// rangeOutputs are the ranges of a document.
func rangeOutputs(ranges []repair.Range) []rangeOutput {
	list := []rangeOutput{}
	for _, r := range ranges {
		out := rangeOutput{File: document.Text(r.File), Kind: r.Kind, Offset: r.Offset, Length: r.Length, Expert: r.Expert}
		if r.Tensor != "" {
			tensor := document.Text(r.Tensor)
			out.Tensor = &tensor
		}
		list = append(list, out)
	}
	return list
}

// document returns what --json prints.
func (r *repairing) document(bytes int64) repairDocument {
	doc := repairDocument{Schema: "ggufreap/repair/v1", Files: []fileOutput{}, Ranges: rangeOutputs(r.damage.Ranges), Bytes: bytes, Mended: !r.dry, Sources: []tookOutput{}, Notes: []document.Text{}}
	for _, note := range r.notes() {
		doc.Notes = append(doc.Notes, document.Text(note))
	}
	for _, f := range r.damage.Files {
		out := fileOutput{File: document.Text(f.File), Size: f.Size, Whole: f.Whole}
		if f.Found >= 0 {
			out.Found = &f.Found
		}
		doc.Files = append(doc.Files, out)
	}
	for _, t := range r.damage.Took {
		doc.Sources = append(doc.Sources, tookOutput{document.Text(t.Source), t.Ranges, t.Bytes})
	}
	doc.Checked.Tensors, doc.Checked.Experts, doc.Checked.Files = r.job.Compared()
	if r.job.Pin != nil {
		doc.Checked.PinDigest = &r.job.Pin.PinDigest
	}
	for _, m := range r.models {
		if far := hub.Of(m); far != nil {
			_, n := far.Traffic()
			if doc.Fetched == nil {
				doc.Fetched = new(int64)
			}
			*doc.Fetched += n
		}
	}
	return doc
}

// notes are what was special about files and sources.
func (r *repairing) notes() []string { return append(r.job.HeaderNotes(), r.damage.Notes...) }

// report prints what was done.
func (r *repairing) report(c *cli.Context, bytes int64) error {
	if c.Bool("json") {
		if err := r.con.JSON(r.document(bytes)); err != nil {
			return err
		}
	} else {
		r.describeWork()
		r.con.Field("result", "%s", r.result(bytes))
	}
	if r.dry && len(r.damage.Ranges) > 0 {
		return errDiffers
	}
	return nil
}

// describeWork prints what was checked with what, and what came from where.
func (r *repairing) describeWork() {
	tensors, experts, sums := r.job.Compared()
	label := "checked"
	if r.job.Pin != nil {
		r.con.Field(label, "%s, %s of which are experts, each by its digest in the pin; pin digest %s", text.Count(tensors, "tensor"), text.Count(experts, "part"), r.job.Pin.PinDigest)
		label = ""
	}
	if sums > 0 {
		r.con.Field(label, "the sha256 of %s", text.Count(sums, "file"))
	}
	if others := r.job.Others(); len(others) > 0 {
		const most = 8
		names := others[:min(len(others), most)]
		if more := len(others) - most; more > 0 {
			names = append(names, text.Grouped(more)+" more")
		}
		r.con.Field("not checked", "%s: ggufreap verify checks all of a folder", text.Safe(strings.Join(names, ", ")))
	}
	for _, note := range r.notes() {
		r.con.Field("note", "%s", text.Safe(note))
	}
	for _, t := range r.damage.Took {
		if t.Source == repair.MadeAnew {
			r.con.Field("made anew", "%s of headers", text.Count(t.Bytes, "byte"))
			continue
		}
		r.con.Field("taken", "%s in %s from %s", text.Count(t.Bytes, "byte"), text.Count(t.Ranges, "range"), text.Safe(t.Source))
	}
	for _, m := range r.models {
		describeFetched(r.con, m)
	}
}

// result says what came of it.
func (r *repairing) result(bytes int64) string {
	_, _, sums := r.job.Compared()
	switch {
	case len(r.damage.Ranges) == 0:
		return "nothing is wrong: every byte is as it should be"
	case r.dry:
		return "nothing was written, this was a dry run; to do: " + r.changes(bytes)
	case sums == 0:
		return r.changes(bytes) + "; every tensor and expert has the digest that it should have, and no sum of the files is known"
	}
	return r.changes(bytes) + "; every file that was written to has the sum that it should have"
}

// changes says what is done to the files.
func (r *repairing) changes(bytes int64) string {
	words := text.Size(bytes) + " replaced"
	var cut, added int64
	for _, wrong := range r.damage.Ranges {
		switch wrong.Kind {
		case repair.Surplus:
			cut += wrong.Length
		case repair.End:
			added += wrong.Length
		}
	}
	if cut > 0 {
		words += ", " + text.Count(cut, "byte") + " behind the end cut"
	}
	if added > 0 {
		words += ", " + text.Count(added, "zero byte") + " added at the end"
	}
	return words
}
