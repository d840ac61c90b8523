package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// showProblems prints the problems, errors first.
func showProblems(con *ui.Console, in *Inspection) {
	errors, warnings := in.countProblems()
	con.Printf("\n")
	if errors+warnings == 0 {
		con.Field("problems", "none found")
		return
	}
	con.Field("problems", "%s", problemCounts(errors, warnings))
	list := slices.Clone(in.Problems)
	slices.SortStableFunc(list, func(a, b problem) int { return severityRank(a) - severityRank(b) })
	for _, p := range list[:min(len(list), screenProblems)] {
		color := ui.Yellow
		if p.Severity == gguf.Error.String() {
			color = ui.Red
		}
		con.StyledField(color, p.Severity, strings.TrimPrefix(text.ShortenTo(p.Where, longProblem)+": "+text.ShortenTo(p.What, longProblem), ": "))
	}
	if more := len(list) - screenProblems; more > 0 {
		con.Field("", "and %s more; --json lists them", text.Grouped(more))
	}
	if flags := in.typeFlags(); len(flags) > 0 {
		con.Field("hint", "who knows the block size of a type can teach it: %s", text.Names(flags, screenTypeHints))
	}
}

// typeFlags returns what would teach the types whose block size is not known. An id
// that one fork uses has that fork's.
func (in *Inspection) typeFlags() []string {
	var flags []string
	for _, t := range in.Types {
		if t.Known {
			continue
		}
		size := "BYTES/ELEMENTS"
		if fork, ok := gguf.Type(t.ID).ForkInfo(); ok {
			size = fmt.Sprintf("%d/%d", fork.Bytes, fork.Elements)
		}
		flags = append(flags, fmt.Sprintf("--type %d=%s", t.ID, size))
	}
	return flags
}

// problemCounts writes the counts that are not 0.
func problemCounts(errors, warnings int) string {
	switch {
	case warnings == 0:
		return text.Count(errors, "error")
	case errors == 0:
		return text.Count(warnings, "warning")
	}
	return text.Count(errors, "error") + ", " + text.Count(warnings, "warning")
}

func severityRank(p problem) int {
	if p.Severity == gguf.Error.String() {
		return 0
	}
	return 1
}
