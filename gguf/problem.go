package gguf

import (
	"errors"
	"fmt"
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
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Where, p.What) }

// problems collects what is found about one place after the other.
type problems []Problem

func (ps *problems) errorf(where, format string, args ...any) {
	*ps = append(*ps, Problem{Error, where, fmt.Sprintf(format, args...)})
}

func (ps *problems) warnf(where, format string, args ...any) {
	*ps = append(*ps, Problem{Warning, where, fmt.Sprintf(format, args...)})
}

// err joins the problems that are errors.
func (ps problems) err() error {
	var errs []error
	for _, p := range ps {
		if p.Severity == Error {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}
