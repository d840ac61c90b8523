package gguf

import (
	"errors"
	"fmt"

	"ggufreap/gguf/words"
)

// Severity ranks a [Problem].
type Severity int

// A Warning is a curiosity: what is reported about the file is still right. An Error
// makes some number or byte wrong, so nothing may be derived from the file.
const (
	Warning Severity = iota
	Error
)

// String returns "warning" or "error".
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// MarshalText spells the severity as [Severity.String].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Problem is something in a file, or in a set of shards, that is not as it should
// be, though the header could be read.
type Problem struct {
	Severity Severity `json:"severity"`
	Where    string   `json:"where"` // file, and key or tensor in it
	What     string   `json:"what"`
	// Tensor is the name of the tensor that the problem is about, or "".
	Tensor string `json:"-"`
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Where, p.What) }

// joinErrors joins the problems that are errors.
func joinErrors(list []Problem) error {
	var errs []error
	for _, p := range list {
		if p.Severity == Error {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

// maxAlike is how many problems of one kind are listed. A file in which every tensor
// is wrong has a hundred thousand.
const maxAlike = 20

// problems collects what is found about one file or set. Of each kind it lists the
// first ones and counts the rest.
type problems struct {
	where string // the file or set, for the counts
	list  []Problem
	kinds map[string]*problemKind // by their format
	order []*problemKind
}

type problemKind struct {
	severity Severity
	first    string
	count    int
}

func newProblems(where string) *problems {
	return &problems{where: where, kinds: map[string]*problemKind{}}
}

// A place is where a problem is, in words, and the name of the tensor it is about.
type place struct{ words, tensor string }

// at is the place of a whole file or set.
func at(name string) place { return place{words: printable(name)} }

func (ps *problems) errorf(where place, format string, args ...any) {
	ps.add(Error, where, format, args)
}

func (ps *problems) warnf(where place, format string, args ...any) {
	ps.add(Warning, where, format, args)
}

func (ps *problems) add(severity Severity, where place, format string, args []any) {
	kind := ps.kinds[format]
	if kind == nil {
		kind = &problemKind{severity: severity, first: fmt.Sprintf(format, args...)}
		ps.kinds[format] = kind
		ps.order = append(ps.order, kind)
	}
	if kind.count++; kind.count <= maxAlike {
		ps.list = append(ps.list, Problem{severity, where.words, fmt.Sprintf(format, args...), where.tensor})
	}
}

// all returns the list, with the counts of what it leaves out.
func (ps *problems) all() []Problem {
	for _, kind := range ps.order {
		if more := kind.count - maxAlike; more > 0 {
			ps.list = append(ps.list, Problem{kind.severity, ps.where, fmt.Sprintf("%s of this kind: %s", words.Count(more, "more problem"), kind.first), ""})
		}
	}
	return ps.list
}
