package inspect

import (
	"errors"
	"fmt"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// ListedErrors stands for the errors that the screen has shown.
func (in *Inspection) ListedErrors() error {
	switch n, _ := in.countProblems(); {
	case n == 0:
		return nil
	case n == 1:
		return errors.New("an error was found, listed above; numbers may be wrong")
	case n <= screenProblems:
		return fmt.Errorf("%s were found, listed above; numbers may be wrong", text.Count(n, "error"))
	default:
		return fmt.Errorf("%s were found, of which %d are listed above; numbers may be wrong", text.Count(n, "error"), screenProblems)
	}
}

// Warn prints a few of the warnings about a model, where no screen lists them.
func Warn(con *ui.Console, m *gguf.Model) {
	warnings := 0
	for _, p := range m.Problems {
		if p.Severity != gguf.Warning {
			continue
		}
		if warnings++; warnings <= screenProblems {
			con.Warnf("%v", p)
		}
	}
	if more := warnings - screenProblems; more > 0 {
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
