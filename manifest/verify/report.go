package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
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
	KindLoading     Kind = "loading"     // no engine loads a model with such headers
	KindExperts     Kind = "experts"     // tensors disagree on the experts, or on how many there are
	KindPlan        Kind = "plan"        // the plan is faulty, or experts are not those of the plan
	KindSignature   Kind = "signature"   // a signature is faulty, by nobody who is trusted, or of other files
	KindPadding     Kind = "padding"     // bytes of no key and no tensor are not zero
	KindGap         Kind = "not checked" // something was not checked, see [Options.Complete]
	KindNote        Kind = "note"        // what is otherwise only noted, see [Options.Strict]
	KindExpectation Kind = "expectation" // something asked for is not so
)

// A Finding is one thing about an artifact that is not as it should be.
type Finding struct {
	Kind   Kind
	File   string // "" when it is about no single file
	Tensor string // "" when it is about no single tensor
	Expert int    // NoExpert when it is about no single expert
	What   string
	// Parts are the bytes that are wrong, none where that is not known.
	Parts []Part
}

// A Part is bytes of a file that are not what they should be.
type Part struct {
	File   string
	Tensor string // that they are data of, "" for none
	Offset int64  // in the file
	Length int64
}

// MarshalJSONTo writes an absent tensor as null.
func (p Part) MarshalJSONTo(e *jsontext.Encoder) error {
	doc := struct {
		File   string  `json:"file"`
		Tensor *string `json:"tensor"`
		Offset int64   `json:"offset"`
		Length int64   `json:"length"`
	}{File: p.File, Offset: p.Offset, Length: p.Length}
	if p.Tensor != "" {
		doc.Tensor = &p.Tensor
	}
	return json.MarshalEncode(e, doc)
}

// Text says what a finding is about and what it is, without its file.
func (f Finding) Text() string {
	text := f.What
	if f.Expert != manifest.NoExpert {
		text = fmt.Sprintf("expert %d: %s", f.Expert, text)
	}
	if f.Tensor != "" {
		text = fmt.Sprintf("tensor %q: %s", f.Tensor, text)
	}
	return text
}

// MarshalJSONTo writes absent parts as null.
func (f Finding) MarshalJSONTo(e *jsontext.Encoder) error {
	doc := struct {
		Kind   Kind    `json:"kind"`
		File   *string `json:"file"`
		Tensor *string `json:"tensor"`
		Expert *int    `json:"expert"`
		What   string  `json:"what"`
		Parts  []Part  `json:"parts"`
	}{Kind: f.Kind, What: f.What, Parts: f.Parts}
	if f.File != "" {
		doc.File = &f.File
	}
	if f.Tensor != "" {
		doc.Tensor = &f.Tensor
	}
	if f.Expert != manifest.NoExpert {
		doc.Expert = &f.Expert
	}
	return json.MarshalEncode(e, doc)
}

// A Note is worth saying and not wrong.
type Note struct {
	File string `json:"file"`
	What string `json:"what"`
}

// A Gap is something that was not checked, and what that leaves unproven.
type Gap struct {
	What     string `json:"what"`
	NotShown string `json:"not_shown"`
}

// A Report is all that a check saw. It says what was checked and what was not, so that
// an empty list of findings is not taken for more than it is.
type Report struct {
	Path     string             `json:"path"`
	Artifact *manifest.Artifact `json:"artifact"` // nil when no model could be opened
	// PinDigest is that of the artifact, zero when its data was not taken apart.
	PinDigest manifest.Digest `json:"-"`
	// Findings are the first hundred of each kind, see [Report.Found].
	Findings []Finding `json:"findings"`
	Notes    []Note    `json:"notes"`
	Checked  []string  `json:"checked"`
	Gaps     []Gap     `json:"gaps"`
	Proof    *Proof    `json:"proof"` // nil without a pin of the source

	held      map[string]bool // files that were held against the model
	moreNotes int             // that are not in Notes
	parts     int             // of all findings that are listed
	listed    map[Kind]int    // findings of each kind that [Report.Add] listed
	more      map[Kind]int    // and did not list
}

func newReport(path string) *Report {
	return &Report{Path: path, Findings: []Finding{}, Notes: []Note{}, Checked: []string{}, Gaps: []Gap{}, held: map[string]bool{}, listed: map[Kind]int{}, more: map[Kind]int{}}
}

// Hold says of a file of the folder that it was held against the model, and fits.
func (r *Report) Hold(file string) { r.held[file] = true }

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// Found counts all findings, by kind.
func (r *Report) Found() map[Kind]int {
	found := maps.Clone(r.more)
	for _, f := range r.Findings {
		found[f.Kind]++
	}
	return found
}

// Total returns how many findings there are, listed or not.
func (r *Report) Total() int {
	n := len(r.Findings)
	for _, more := range r.more {
		n += more
	}
	return n
}

// says reports whether a finding that is about no file says this already.
func (r *Report) says(kind Kind, what string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == kind && f.File == "" && f.What == what })
}

// maxFindings bounds the findings of a kind that are listed: a list can name a million files
// that are not there.
const maxFindings = 100

// maxParts bounds the parts of all findings: a model has a hundred thousand experts.
const maxParts = 1 << 17

// Add adds a finding.
func (r *Report) Add(f Finding) {
	if r.listed[f.Kind] == maxFindings {
		r.more[f.Kind]++
		return
	}
	if more := r.parts + len(f.Parts) - maxParts; more > 0 {
		f.Parts = slices.Clip(f.Parts[:len(f.Parts)-min(more, len(f.Parts))])
		f.What += fmt.Sprintf("; %s too many to be listed", words.Count(more, "part")+words.Verb(more, " is", " are"))
	}
	r.parts += len(f.Parts)
	r.listed[f.Kind]++
	r.Findings = append(r.Findings, f)
}

// find adds a finding that is about no single tensor.
func (r *Report) find(kind Kind, file, what string) {
	r.Add(Finding{Kind: kind, File: file, Expert: manifest.NoExpert, What: what})
}

// problems reports what was found in the headers of a model: an error is a finding, a
// warning a note. name is how the report names a file.
func (r *Report) problems(m *gguf.Model, name func(path string) string) {
	for _, p := range slices.Concat(m.Problems, Warnings(m)) {
		file := ""
		path, where := fileOfProblem(m, p)
		if path != "" {
			file = name(path)
		}
		switch {
		case p.Severity == gguf.Error && p.Tensor != "":
			r.Add(Finding{Kind: KindStructure, File: file, Tensor: p.Tensor, Expert: manifest.NoExpert, What: p.What, Parts: cutOff(m, p.Tensor, file)})
		case p.Severity == gguf.Error:
			r.find(KindStructure, file, joinPlace(where, p.What))
		default:
			r.note(file, joinPlace(where, p.What))
		}
	}
}

// cutOff returns the bytes that the file of a tensor lacks at its end, none when the tensor ends
// before it.
func cutOff(m *gguf.Model, tensor, file string) []Part {
	t := m.Tensor(tensor)
	if t == nil || t.DataOffset()+t.Size <= t.File().Size {
		return nil
	}
	end := int64(0)
	for _, t := range t.File().Tensors {
		end = max(end, t.DataOffset()+t.Size)
	}
	return []Part{{File: file, Offset: t.File().Size, Length: end - t.File().Size}}
}

// fileOfProblem returns the path of the file that a problem is about and where in it, ""
// when it is about the set. A name that a terminal would act on is quoted in the problem.
func fileOfProblem(m *gguf.Model, p gguf.Problem) (path, where string) {
	for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
		for _, name := range []string{path, strconv.Quote(path)} {
			rest, found := strings.CutPrefix(p.Where, name)
			if where, inside := strings.CutPrefix(rest, ": "); found && (inside || rest == "") {
				return path, where
			}
		}
	}
	return "", p.Where
}

// about returns what an error says of the file at path, which it may name or not.
func about(path string, err error) string {
	var fault *fs.PathError
	if errors.As(err, &fault) && fault.Path == path {
		return fault.Err.Error()
	}
	text := err.Error()
	for _, name := range []string{path, strconv.Quote(path)} {
		text = strings.TrimPrefix(text, name+": ")
	}
	return text
}

// findNotes turns the notes into findings.
func (r *Report) findNotes() {
	for _, n := range r.Notes {
		r.find(KindNote, n.File, n.What)
	}
	r.more[KindNote] += r.moreNotes
	r.Notes, r.moreNotes = []Note{}, 0
}

// findGaps turns what was not checked into findings.
func (r *Report) findGaps() {
	for _, g := range r.Gaps {
		r.find(KindGap, "", g.What+"; not shown: "+g.NotShown)
	}
}

func joinPlace(where, what string) string {
	if where == "" {
		return what
	}
	return where + ": " + what
}

// compareOrder reports a byte order that is not the other's: equal bytes are other numbers
// then.
func (r *Report) compareOrder(a, b *manifest.Pin, other string) {
	if got, want := a.Artifact.ByteOrder, b.Artifact.ByteOrder; got != want {
		r.find(KindStructure, "", fmt.Sprintf("the numbers are stored %s endian, %s %s endian: the same bytes are other numbers", got, other, want))
	}
}

// noteStored says what differs in how the same model is stored: the version of the format,
// and dims of 1 at the outer end.
func (r *Report) noteStored(a, b *manifest.Pin, other string) {
	if got, want := a.Artifact.Version, b.Artifact.Version; got != want {
		r.note("", fmt.Sprintf("the files are of GGUF version %d, %s of %d", got, other, want))
	}
	names := manifest.OtherDims(a, b)
	if len(names) == 0 {
		return
	}
	r.note("", fmt.Sprintf("%s %s other dims of 1 at the outer end than %s, which identity leaves out: %s",
		words.Count(len(names), "tensor"), words.Verb(len(names), "has", "have"), other, nameList(names)))
}

// nameList quotes the first of many names.
func nameList(names []string) string {
	const most = 3
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, fmt.Sprintf("%q", name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %s more", words.Group(len(names)-most)))
	}
	return strings.Join(shown, ", ")
}

// maxNotes bounds the notes: a folder can hold a million files.
const maxNotes = 1000

// AddNote adds a note about a file, "" for none.
func (r *Report) AddNote(file, what string) { r.note(file, what) }

func (r *Report) note(file, what string) {
	if len(r.Notes) == maxNotes {
		r.moreNotes++
		return
	}
	r.Notes = append(r.Notes, Note{file, what})
}

func (r *Report) checked(what string) { r.Checked = append(r.Checked, what) }

func (r *Report) gap(what, leaves string) { r.Gaps = append(r.Gaps, Gap{what, leaves}) }
