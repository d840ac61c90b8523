package verification

import (
	"strconv"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
)

// maxFindings bounds the findings that are printed; the JSON document has all.
const maxFindings = 50

// Show prints what verify saw.
func Show(con *ui.Console, r *verify.Report) {
	if a := r.Artifact; a != nil {
		con.Field("model", "%s, %s, %s", text.Safe(a.Name), text.Architecture(a.Architecture), text.Files(a.Shards))
		con.Field("files", "%s", text.Size(a.FileBytes))
		con.Field("tensor data", "%s", text.Size(a.TensorBytes))
	}
	if !r.PinDigest.IsZero() {
		con.Field("pin digest", "%s", r.PinDigest)
	}
	for _, what := range r.Checked {
		con.Field("checked", "%s", text.Safe(what))
	}
	for _, g := range r.Gaps {
		con.Field("not checked", "%s", text.Safe(g.What))
		con.Field("", "not shown: %s", text.Safe(g.NotShown))
	}
	for _, n := range r.Notes {
		place := ""
		if n.File != "" {
			place = text.Safe(n.File) + ": "
		}
		con.Field("note", "%s%s", place, text.Safe(n.What))
	}
	if r.Proof != nil {
		printProof(con, r.Proof)
	}
	con.Printf("\n")
	for _, f := range r.Findings[:min(len(r.Findings), maxFindings)] {
		con.StyledField(ui.Red, string(f.Kind), findingPlace(f)+text.Safe(f.What))
		showParts(con, f)
	}
	if more := r.Total() - min(len(r.Findings), maxFindings); more > 0 {
		con.Field("", "and %s more; --json lists the first hundred of a kind", text.Count(more, "finding"))
	}
	if r.OK() {
		con.Field("result", "nothing found")
		return
	}
	con.Field("result", "%s", con.Paint(ui.Red, text.Count(r.Total(), "finding")))
}

// findingPlace names where a finding is, ready to be followed by what it is.
func findingPlace(f verify.Finding) string {
	place := ""
	if f.File != "" {
		place += text.Safe(f.File) + ": "
	}
	if f.Tensor != "" {
		place += "tensor " + text.Safe(strconv.Quote(f.Tensor)) + ": "
	}
	if f.Expert != manifest.NoExpert {
		place += "expert " + text.Grouped(f.Expert) + ": "
	}
	if f.Tensor != "" && len(f.Parts) == 1 {
		place += "bytes " + partRange(f.Parts[0]) + " of the file: "
	}
	return place
}

// maxPartLines bounds the parts of a finding that are printed; the JSON document has all.
const maxPartLines = 3

// showParts prints which bytes are wrong, where a finding is about several places.
func showParts(con *ui.Console, f verify.Finding) {
	if len(f.Parts) < 2 {
		return
	}
	var size int64
	for _, part := range f.Parts {
		size += part.Length
	}
	for _, part := range f.Parts[:min(len(f.Parts), maxPartLines)] {
		con.Field("", "bytes %s of %s", partRange(part), text.Safe(part.File))
	}
	if more := len(f.Parts) - maxPartLines; more > 0 {
		con.Field("", "and %s more, %s in all; --json lists them", text.Count(more, "part"), text.Count(size, "byte"))
	}
}

func partRange(p verify.Part) string {
	return text.Grouped(p.Offset) + " to " + text.Grouped(p.Offset+p.Length-1)
}

// Document is the document of verify --json and pin --check --json.
type Document struct {
	Schema    string              `json:"schema"`
	OK        bool                `json:"ok"`
	Path      document.Text       `json:"path"`
	Artifact  *manifest.Artifact  `json:"artifact"`   // null when no model could be opened
	PinDigest *manifest.Digest    `json:"pin_digest"` // null when its data was not taken apart
	Findings  []verify.Finding    `json:"findings"`   // the first hundred of each kind
	Found     map[verify.Kind]int `json:"found"`      // all of them, by kind
	Checked   []string            `json:"checked"`
	Gaps      []verify.Gap        `json:"gaps"`
	Notes     []verify.Note       `json:"notes"`
	Proof     *verify.Proof       `json:"proof"` // null without a pin of the source
}

// NewDocument is what a check saw, as a document of that schema.
func NewDocument(schema string, r *verify.Report) Document {
	var digest *manifest.Digest
	if !r.PinDigest.IsZero() {
		digest = &r.PinDigest
	}
	return Document{
		PinDigest: digest,
		Schema:    schema,
		OK:        r.OK(),
		Path:      document.Text(r.Path),
		Artifact:  r.Artifact,
		Findings:  r.Findings,
		Found:     r.Found(),
		Checked:   r.Checked,
		Gaps:      r.Gaps,
		Notes:     r.Notes,
		Proof:     r.Proof,
	}
}
