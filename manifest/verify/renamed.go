package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
)

// maxRenamed bounds the listed files that are looked for under other names: a split has no more
// shards.
const maxRenamed = 65535

// findRenamed looks among model files that are not listed for the bytes of listed ones that are
// not there. What it finds counts as listed from then on, with a finding for its name.
func (v *verifier) findRenamed(ctx context.Context, unlisted []string) error {
	if v.options.Fast || len(v.missing) == 0 || len(unlisted) == 0 {
		v.reportMissing(nil)
		return nil
	}
	sums, failed := make([]manifest.Sum, len(unlisted)), make([]error, len(unlisted))
	err := pass.ForEach(ctx, len(unlisted), v.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		sums[i], failed[i] = sumFile(ctx, v.pathsOf(unlisted[i]), w, pass.NewMeter(0, nil))
		if gguf.MachineFault(failed[i]) {
			return failed[i]
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	found := map[string]string{} // the name that is there, by the listed one
	for i, name := range unlisted {
		at := slices.IndexFunc(v.missing, func(s lists.FileSum) bool { return s.SHA256 == sums[i] && found[s.Name] == "" })
		if failed[i] != nil || at < 0 {
			continue
		}
		found[v.missing[at].Name] = name
		v.listed = append(v.listed, lists.FileSum{Name: name, SHA256: sums[i]})
		v.report.find(KindExtra, name, fmt.Sprintf("has the bytes of %q, which %s lists: renamed", v.missing[at].Name, manifest.SumsName))
	}
	v.reportMissing(found)
	return nil
}

// reportMissing reports listed model files that are not there under any name.
func (v *verifier) reportMissing(found map[string]string) {
	for _, s := range v.missing {
		if found[s.Name] == "" {
			v.report.find(KindMissing, s.Name, "is listed and not there")
		}
	}
}

// findRenamed looks in a list for the bytes of files whose names it does not have, and notes
// which entries those are.
func (c *checker) findRenamed(ctx context.Context, unnamed []int, each func(yield func(name string, sum manifest.Sum)) error) error {
	if c.looked || c.options.Quick || len(unnamed) == 0 {
		return nil
	}
	c.looked = true
	sums, err := c.sumFiles(ctx, unnamed)
	if err != nil {
		return err
	}
	return each(func(name string, sum manifest.Sum) {
		for n, i := range unnamed {
			if sums[n] != sum {
				continue
			}
			if file := filepath.Base(c.model.Files[i].Name); c.renamed[file] == "" {
				c.renamed[file] = name
				c.report.note(file, fmt.Sprintf("has the bytes of %q: renamed", name))
				return
			}
		}
	})
}

// renamedIn does so for a list that is held whole.
func (c *checker) renamedIn(ctx context.Context, entries []listedFile) error {
	names := map[string]bool{}
	for _, f := range c.model.Files {
		names[filepath.Base(f.Name)] = true
	}
	for _, e := range entries {
		delete(names, baseOf(e.path))
	}
	return c.findRenamed(ctx, c.lacking(names), func(yield func(string, manifest.Sum)) error {
		for _, e := range entries {
			if e.no == "" {
				yield(e.path, e.sha256)
			}
		}
		return nil
	})
}

// lacking are the files of the model that have one of these names.
func (c *checker) lacking(names map[string]bool) []int {
	var list []int
	for i, f := range c.model.Files {
		if names[filepath.Base(f.Name)] {
			list = append(list, i)
		}
	}
	return list
}
