package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"ggufreap/gguf"
)

// Kind says what sort of thing a finding is about.
type Kind string

// The kinds of findings.
const (
	KindList        Kind = "list"        // a list of sums, or a pin, is faulty
	KindMissing     Kind = "missing"     // a listed file or tensor is not there
	KindExtra       Kind = "extra"       // a model file or tensor is not listed
	KindDigest      Kind = "digest"      // bytes are not those listed
	KindUnreadable  Kind = "unreadable"  // bytes could not be read
	KindStructure   Kind = "structure"   // headers, shard set, offsets or sizes are wrong
	KindMetadata    Kind = "metadata"    // keys are not those they should be
	KindExperts     Kind = "experts"     // tensors disagree on the experts, or on how many there are
	KindPlan        Kind = "plan"        // the plan is faulty, or experts are not those of the plan
	KindExpectation Kind = "expectation" // something asked for is not so
)

// NoExpert is the Expert of a finding that is about no single expert.
const NoExpert = -1

// A Finding is one thing about an artifact that is not as it should be.
type Finding struct {
	Kind   Kind
	File   string // "" when it is about no single file
	Tensor string // "" when it is about no single tensor
	Expert int    // NoExpert when it is about no single expert
	What   string
}

// MarshalJSON writes absent parts as null.
func (f Finding) MarshalJSON() ([]byte, error) {
	doc := struct {
		Kind   Kind    `json:"kind"`
		File   *string `json:"file"`
		Tensor *string `json:"tensor"`
		Expert *int    `json:"expert"`
		What   string  `json:"what"`
	}{Kind: f.Kind, What: f.What}
	if f.File != "" {
		doc.File = &f.File
	}
	if f.Tensor != "" {
		doc.Tensor = &f.Tensor
	}
	if f.Expert != NoExpert {
		doc.Expert = &f.Expert
	}
	return json.Marshal(doc)
}

// A Note is worth saying and not wrong.
type Note struct {
	File string `json:"file"`
	What string `json:"what"`
}

// A Gap is something that was not checked, and what that leaves unproven.
type Gap struct {
	What   string `json:"what"`
	Leaves string `json:"leaves"`
}

// A Report is all that a check saw. It says what was checked and what was not, so that
// an empty list of findings is not taken for more than it is.
type Report struct {
	Path     string    `json:"path"`
	Artifact *Artifact `json:"artifact"` // nil when no model could be opened
	Findings []Finding `json:"findings"`
	Notes    []Note    `json:"notes"`
	Checked  []string  `json:"checked"`
	Gaps     []Gap     `json:"gaps"`
	Proof    *Proof    `json:"proof"` // nil without a pin of the source
}

func newReport(path string) *Report {
	return &Report{Path: path, Findings: []Finding{}, Notes: []Note{}, Checked: []string{}, Gaps: []Gap{}}
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// find adds a finding that is about no single tensor.
func (r *Report) find(kind Kind, file, what string) {
	r.Findings = append(r.Findings, Finding{Kind: kind, File: file, Expert: NoExpert, What: what})
}

// problem turns what was found in the headers of a file, "" for a whole set, into a
// finding or a note. path is how the problem names the file.
func (r *Report) problem(file, path string, p gguf.Problem) {
	what := p.What
	if p.Tensor == "" {
		what = strings.TrimPrefix(p.String(), path+": ")
	}
	switch {
	case p.Severity == gguf.Error:
		r.Findings = append(r.Findings, Finding{Kind: KindStructure, File: file, Tensor: p.Tensor, Expert: NoExpert, What: what})
	case p.Tensor != "":
		r.note(file, fmt.Sprintf("tensor %q: %s", p.Tensor, what))
	default:
		r.note(file, what)
	}
}

// problems reports what was found in the headers of a model. Those of the set come first
// in Problems, and those of each file follow.
func (r *Report) problems(m *gguf.Model, name func(path string) string) {
	ofSet := len(m.Problems)
	for _, f := range m.Files {
		ofSet -= len(f.Problems)
	}
	for _, p := range m.Problems[:ofSet] {
		r.problem("", "", p)
	}
	for _, f := range m.Files {
		for _, p := range f.Problems {
			r.problem(name(f.Name), f.Name, p)
		}
	}
}

func (r *Report) note(file, what string) { r.Notes = append(r.Notes, Note{file, what}) }

func (r *Report) checked(what string) { r.Checked = append(r.Checked, what) }

func (r *Report) gap(what, leaves string) { r.Gaps = append(r.Gaps, Gap{what, leaves}) }
