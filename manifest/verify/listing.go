package verify

import (
	"context"
	"fmt"
	"os"
	"path"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
)

// A Listing is what a repository says that it has in one folder.
type Listing struct {
	Name  string // as it is shown, such as an address
	Files lists.Tree
}

// checkListing holds the model files against the listing. Those that were read before are
// not read again.
func (v *verifier) checkListing(ctx context.Context) error {
	l := v.options.Listing
	if l == nil {
		return nil
	}
	entries := map[string]lists.TreeFile{}
	for _, f := range l.Files {
		entries[path.Base(f.Path)] = f
	}
	var todo []lists.TreeFile
	names := v.listedModels()
	for _, name := range names {
		e, there := entries[path.Base(name)]
		switch info, err := os.Stat(v.path(name)); {
		case !there:
			v.report.find(KindExtra, name, "is not in "+l.Name)
		case err != nil:
			v.report.find(KindUnreadable, name, about(v.path(name), err))
		case info.Size() != e.Size:
			v.report.Add(otherSize(name, info.Size(), e.Size, l.Name))
		case e.SHA256 == nil:
			v.report.find(KindList, name, l.Name+" has no sha256 of it")
		default:
			e.Path = name
			todo = append(todo, e)
		}
	}
	if others := len(l.Files) - len(names); others > 0 {
		v.report.gap(fmt.Sprintf("%s lists other files too: %d", l.Name, others), "whether those are there and right")
	}
	if v.options.Fast {
		v.report.checked(fmt.Sprintf("sizes: %s of %s as %s says", words.Group(len(todo)), words.Count(len(names), "model file"), l.Name))
		return nil
	}
	return v.compareListed(ctx, l, todo, len(names))
}

// otherSize is the finding about a file that is too short or too long: what is wrong are the
// bytes that are not there, or those that are too many.
func otherSize(name string, got, want int64, by string) Finding {
	return Finding{Kind: KindDigest, File: name, Expert: manifest.NoExpert,
		What:  fmt.Sprintf("has %s, %s says %s", words.Count(got, "byte"), by, words.Group(want)),
		Parts: []Part{{File: name, Offset: min(got, want), Length: max(got, want) - min(got, want)}}}
}

// listedModels are the model files that the listing speaks of.
func (v *verifier) listedModels() []string {
	if !v.single {
		return v.modelFiles()
	}
	var names []string
	for _, m := range v.models {
		for _, p := range m.Paths() {
			names = append(names, v.name(p))
		}
	}
	return names
}

// compareListed compares the sums of files; each entry's path is the file's name.
func (v *verifier) compareListed(ctx context.Context, l *Listing, todo []lists.TreeFile, all int) error {
	sums, faults := make([]manifest.Sum, len(todo)), make([]error, len(todo))
	var total int64
	for _, e := range todo {
		if _, known := v.taken[e.Path]; !known {
			total += e.Size
		}
	}
	count := pass.NewMeter(total, v.options.Progress.After(v.read))
	err := pass.ForEach(ctx, len(todo), v.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		var known bool
		if sums[i], known = v.taken[todo[i].Path]; !known {
			sums[i], faults[i] = sumFile(ctx, v.pathsOf(todo[i].Path), w, count)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	same := 0
	for i, e := range todo {
		switch {
		case faults[i] != nil:
			v.report.find(KindUnreadable, e.Path, about(v.path(e.Path), faults[i]))
		case sums[i] != *e.SHA256:
			v.report.find(KindDigest, e.Path, fmt.Sprintf("sha256 is %s, %s says %s", sums[i], l.Name, *e.SHA256))
		default:
			same++
		}
	}
	v.report.checked(fmt.Sprintf("sha256: %s of %s as %s states", words.Group(same), words.Count(all, "model file"), l.Name))
	return nil
}
