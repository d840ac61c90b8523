package evidence

// A Document is what is known, and what is not, of one or several artifacts.
type Document struct {
	Release  Release
	Sources  []*Source
	Setups   []*Setup
	Rows     []*Row
	Pairs    []Pair // comparisons that the document asks for
	Notes    []Note
	Warnings Faults

	byID       map[string]*Row
	composites []Composite // as of the check
}

// Release names the artifact that the document is evidence for.
type Release struct {
	Name      string // "" when not specified
	PinDigest string // as manifest.Digest prints it, "" when not specified
}

// A Source is a document elsewhere that values were taken from.
type Source struct {
	Name     string // in this document
	Title    string // this and the following: "" when not specified
	Address  string
	Revision string // commit of the document that was read
	SHA256   string // of the document that was read
	ReadOn   string // date
	line     int
}

// Pinned says which version of the source was read.
func (s *Source) Pinned() string {
	switch {
	case s.SHA256 != "":
		return "sha256 " + s.SHA256
	case s.Revision != "":
		return "revision " + s.Revision
	}
	return NotSpecified
}

// A Setup holds conditions that rows share.
type Setup struct {
	Name string
	Facts
}

// A Row is one workload, its conditions and what came of it.
type Row struct {
	ID       string
	Workload string
	Setup    *Setup     // nil when it shares none
	Imported []Imported // files that an import took it from
	Facts

	setupName string
	first     *Row // the pass that a retry retries, nil for others
}

// Imported names a file of a tool that a row was taken from.
type Imported struct {
	Tool, File, SHA256 string
}

// Facts are the values of a row or setup by field, and how they are known unless a value
// says otherwise.
type Facts struct {
	Line   int
	Kind   Kind
	Source string
	Values map[string]*Value
	Own    []string // names that the format does not define, in their order
}

// A Value is what is said of one field: a statement, several that differ, or none when the
// document says that it is not specified.
type Value struct {
	Statements []Statement
}

// A Statement is a value with how it is known.
type Statement struct {
	Line   int
	Text   string // as it is shown; "" when there is only a label
	Label  string // what a source calls it, such as "64K"; no number
	Kind   Kind
	Source string
	Method string
	Spread string // such as "± 0.05 (standard deviation)"
	Note   string
	IDs    []string // of a field of ids

	count    int64 // of an integer
	hasCount bool
}

// A Note is free text about the whole.
type Note struct {
	Line int
	Text string
}

// A Pair is two rows to hold against each other.
type Pair struct {
	Line int
	A, B string // ids of rows
	Said string // what is said of them, "" for nothing
}

// Value returns what the row, or the setup that it names, says of a field; nil when neither
// mentions it.
func (r *Row) Value(name string) *Value {
	if v, ok := r.Values[name]; ok {
		return v
	}
	if r.Setup != nil {
		return r.Setup.Values[name]
	}
	return nil
}

// one returns the only statement of a field.
func (r *Row) one(name string) (Statement, bool) {
	v := r.Value(name)
	if v == nil || len(v.Statements) != 1 {
		return Statement{}, false
	}
	return v.Statements[0], true
}

// number returns a field that is a counted whole number.
func (r *Row) number(name string) (int64, bool) {
	s, ok := r.one(name)
	return s.count, ok && s.hasCount
}

// word returns the text of a field, "" when it is not specified.
func (r *Row) word(name string) string {
	s, _ := r.one(name)
	return s.Text
}

// list returns the ids of a field; known is false when they are not specified.
func (r *Row) list(name string) (ids []string, known bool) {
	s, ok := r.one(name)
	return s.IDs, ok
}

// said reports whether a field is mentioned, be it to say that it is not specified.
func (r *Row) said(name string) bool { return r.Value(name) != nil }

func (d *Document) row(id string) *Row { return d.byID[id] }

func (d *Document) source(name string) *Source {
	for _, s := range d.Sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// RowOf returns the first row that was measured here or reported of the release with a pin
// digest, nil when there is none.
func (d *Document) RowOf(pinDigest string) *Row {
	for _, r := range d.Rows {
		if r.word("pin_digest") == pinDigest {
			return r
		}
	}
	return nil
}
