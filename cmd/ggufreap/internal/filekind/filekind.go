// Package filekind tells what a small file is by how it begins, for the reader that wanted
// another one: where a file of that kind goes is said here and nowhere else.
package filekind

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// A Kind is what a file is; the zero Kind is none that is known.
type Kind int

// Kinds of files.
const (
	Model Kind = iota + 1
	Pin
	Plan
	Scores
	ScorePart
	Listing
	Sums
	Hashes
)

// about says of each kind what it is called, and where a file of it goes.
var about = map[Kind]struct{ name, place string }{
	Model:     {"a model", "a model is named without a flag; ggufreap pin -o FILE writes its pin, ggufreap plan -o FILE its plan"},
	Pin:       {"a pin", "a pin goes to pin --check, plan --pin, repair --pin, and to --source-pin of prune and verify"},
	Plan:      {"a plan", "a plan goes to --plan of prune and verify, and to plan --compare"},
	Scores:    {"scores", "scores go to --from of plan and prune, and to report --scores"},
	ScorePart: {"a part of scores", "all parts together go to --from of plan and prune; ggufreap assemble joins them"},
	Listing:   {"a listing of the hub", "a listing goes to pin --check"},
	Sums:      {"a list of SHA-256 sums", "a list of sums goes to pin --check"},
	Hashes:    {"a manifest of llama-gguf-hash", "a manifest goes to pin --check"},
}

// Digests are the kinds that say which bytes a model has.
var Digests = []Kind{Pin, Listing, Sums, Hashes}

// Explain replaces the error of a reader that wanted a file of certain kinds by one that
// says what the file is, when that is known and another kind. path is what was typed, r has
// the bytes.
func Explain(err error, path string, r io.ReaderAt, want ...Kind) error {
	if err == nil {
		return nil
	}
	kind := Of(r)
	if kind == 0 || slices.Contains(want, kind) {
		return err
	}
	return hint.With(fmt.Errorf("%s: %s, want %s", text.Safe(path), about[kind].name, wanted(want)), "%s", about[kind].place)
}

// ExplainFile is Explain for a file that is opened by its path.
func ExplainFile(err error, path string, want ...Kind) error {
	if err == nil {
		return nil
	}
	f, _, openErr := manifest.OpenRegular(path)
	if openErr != nil {
		return err
	}
	defer f.Close()
	return Explain(err, path, f, want...)
}

func wanted(want []Kind) string {
	if slices.Equal(want, Digests) {
		return "a pin or a list of digests"
	}
	names := make([]string, len(want))
	for i, k := range want {
		names[i] = about[k].name
	}
	return strings.Join(names, " or ")
}
