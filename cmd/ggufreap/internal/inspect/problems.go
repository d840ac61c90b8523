package inspect

import (
	"errors"
	"fmt"
	"slices"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/reap/loadable"
)

// ListedErrors stands for the errors that the screen has shown.
func (in *Inspection) ListedErrors() error {
	n, _ := in.countProblems()
	consequence := "; numbers may be wrong"
	if n == in.loading {
		consequence = "; llama.cpp does not load the model"
	}
	switch {
	case n == 0:
		return nil
	case n == 1:
		return errors.New("an error was found, listed above" + consequence)
	case n <= screenProblems:
		return fmt.Errorf("%s were found, listed above%s", text.Count(n, "error"), consequence)
	default:
		return fmt.Errorf("%s were found, of which %d are listed above%s", text.Count(n, "error"), screenProblems, consequence)
	}
}

// NotLoading is the first error for which llama.cpp does not load the model, nil when there is
// none.
func (in *Inspection) NotLoading() error { return in.notLoading }

// addProblems lists what is wrong with a model's files, what is odd about its headers, and
// what keeps llama.cpp from loading it. Of what is odd it leaves out what is about the same
// keys.
func (in *Inspection) addProblems(m *gguf.Model, warnings []gguf.Problem) {
	loading := loadable.Check(m)
	said := map[string]bool{}
	for _, p := range loading {
		said[p.Where] = p.Tensor == ""
		if p.Severity == gguf.Error {
			if in.loading++; in.loading == 1 {
				in.notLoading = fmt.Errorf("%v; llama.cpp does not load the model", p)
			}
		}
	}
	warnings = slices.DeleteFunc(warnings, func(p gguf.Problem) bool { return said[p.Where] })
	for _, p := range slices.Concat(m.Problems, loading, warnings) {
		in.Problems = append(in.Problems, problem{p.Severity.String(), p.Where, p.What})
	}
}

// Warn prints a few of the warnings about a model, where no screen lists them.
func Warn(con *ui.Console, m *gguf.Model) {
	WarnOf(con, slices.DeleteFunc(slices.Clone(m.Problems), func(p gguf.Problem) bool { return p.Severity != gguf.Warning }))
}

// WarnOf prints a few problems as warnings.
func WarnOf(con *ui.Console, list []gguf.Problem) {
	for _, p := range list[:min(len(list), screenProblems)] {
		con.Warnf("%v", p)
	}
	if more := len(list) - screenProblems; more > 0 {
		con.Warnf("and %s more", text.Grouped(more))
	}
}

// Unsound is the error of a model with problems that make numbers wrong.
func Unsound(m *gguf.Model) error {
	var first gguf.Problem
	found := 0
	for _, p := range m.Problems {
		if p.Severity != gguf.Error {
			continue
		}
		if found++; found == 1 {
			first = p
		}
	}
	switch found {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%v", first)
	}
	return fmt.Errorf("%v (and %s)", first, text.Count(found-1, "more error"))
}
