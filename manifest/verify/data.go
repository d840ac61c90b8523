package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// readData compares the bytes of the models with the pins, and those of all files of which
// somebody says a sum with it. Each file is read once.
func (v *verifier) readData(ctx context.Context) error {
	if v.options.Fast {
		v.report.gap("data was not read", "whether any byte behind the headers is what it should be")
		if v.options.Source != nil {
			v.report.gap("a source's pin was given and data not read", "whether the release is made of the source's bytes")
		}
		v.compareHeaders()
		return nil
	}
	known := map[string]manifest.Sum{}
	pins := make([]*manifest.Pin, len(v.models)) // nil where there is nothing to hold it against
	for i, m := range v.models {
		var err error
		if pins[i], err = v.readModel(ctx, m); err != nil {
			return err
		}
		v.takeSums(m, pins[i], known)
	}
	if len(pins) > 0 {
		v.got = pins[0]
	}
	if err := v.checkSums(ctx, known); err != nil {
		return err
	}
	v.reportZeroTails()
	v.comparePin()
	v.prove()
	v.placeSums()
	for i, m := range v.models {
		if i > 0 {
			v.proveOther(m, pins[i])
		}
	}
	return nil
}

// takeSums takes note of the sums of the files of a model that was read, by their paths.
func (v *verifier) takeSums(m *gguf.Model, pin *manifest.Pin, known map[string]manifest.Sum) {
	if pin == nil {
		return
	}
	for n, path := range m.Paths() {
		known[filepath.Clean(path)] = pin.Files[n].SHA256
		v.taken[v.name(path)] = pin.Files[n].SHA256
	}
	v.read += m.FileBytes()
}

// readModel pins a model where there is something to hold its bytes against.
func (v *verifier) readModel(ctx context.Context, m *gguf.Model) (*manifest.Pin, error) {
	wanted := len(v.pins()) > 0 || slices.ContainsFunc(v.options.Expect, Expectation.readsData)
	if !wanted && len(v.claims) == 0 {
		return nil, v.readPadding(ctx, m)
	}
	if m.Err() != nil {
		v.report.gap(fmt.Sprintf("the headers of %q are not sound, so the data was not taken apart into tensors", m.Name), "which tensors and experts are what they should be")
		return nil, nil
	}
	o := v.measure(m)
	var padding paddings
	o.Padding = func(f *gguf.File, p manifest.Padding) { padding.add(v, f, p) }
	pin, err := manifest.BuildPin(ctx, m, o)
	_, unnamable := errors.AsType[*manifest.NameError](err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case gguf.MachineFault(err):
		return nil, err
	case unnamable && !wanted:
		v.report.gap("the data was not taken apart into tensors: "+err.Error(), "what lies between tensors")
		return nil, nil
	case err != nil:
		v.report.find(KindUnreadable, "", err.Error())
		return nil, nil
	}
	padding.tell(v, m)
	return pin, nil
}

// measure says how the main model is pinned: as it always is, but with the slabs of the
// pins that it is held against.
func (v *verifier) measure(m *gguf.Model) manifest.BuildOptions {
	var o manifest.BuildOptions
	if v.options.Measure != nil {
		o = v.options.Measure(m)
	}
	if pins := v.pins(); len(pins) > 0 {
		o.Follow(m, pins...)
	}
	o.Workers, o.Progress = v.options.Workers, v.options.Progress
	return o
}

// checkSums compares every file of which somebody says a sum. Sums that are known already
// are not taken again.
func (v *verifier) checkSums(ctx context.Context, known map[string]manifest.Sum) error {
	var todo []string
	var total int64
	sums, faults := map[string]manifest.Sum{}, map[string]error{}
	for _, c := range v.claims {
		if _, ok := sums[c.name]; ok {
			continue
		}
		sum, ok := known[v.path(c.name)]
		if sums[c.name] = sum; ok {
			continue
		}
		todo = append(todo, c.name)
		for _, path := range v.pathsOf(c.name) {
			if info, err := os.Stat(path); err == nil {
				total += info.Size()
			}
		}
	}
	taken, failed := make([]manifest.Sum, len(todo)), make([]error, len(todo))
	count := pass.NewMeter(total, v.options.Progress.After(v.read))
	err := pass.ForEach(ctx, len(todo), v.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		taken[i], failed[i] = sumFile(ctx, v.pathsOf(todo[i]), w, count)
		if gguf.MachineFault(failed[i]) {
			return failed[i]
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, name := range todo {
		sums[name], faults[name] = taken[i], failed[i]
		if failed[i] == nil {
			v.taken[name] = taken[i]
		}
	}
	v.reportSums(sums, faults)
	return nil
}

// sumFile returns the SHA-256 of a regular file, or of one in pieces, links followed.
func sumFile(ctx context.Context, paths []string, w *pass.Worker, count io.Writer) (manifest.Sum, error) {
	hasher := w.Hasher()
	for _, path := range paths {
		if err := scanFile(ctx, path, w, io.MultiWriter(hasher, count)); err != nil {
			return manifest.Sum{}, err
		}
	}
	return hasher.Sum(), nil
}

// scanFile hands over the bytes of a regular file.
func scanFile(ctx context.Context, path string, w *pass.Worker, to io.Writer) error {
	f, info, err := manifest.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pass.Scan(ctx, f, info.Size(), w.Buf, to, nil, nil); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (v *verifier) reportSums(sums map[string]manifest.Sum, faults map[string]error) {
	v.vouched = map[string]bool{}
	var by []string // in the order of the claims
	same, all := map[string]int{}, map[string]int{}
	for _, c := range v.claims {
		if all[c.by] == 0 {
			by = append(by, c.by)
		}
		all[c.by]++
		switch {
		case faults[c.name] != nil:
			v.report.find(KindUnreadable, c.name, about(v.path(c.name), faults[c.name]))
		case sums[c.name] != c.sum:
			v.report.find(KindDigest, c.name, fmt.Sprintf("sha256 is %s, %s says %s%s", sums[c.name], c.by, c.sum, v.pinSays(c.name, sums[c.name])))
		default:
			same[c.by]++
			v.vouched[c.name] = true
		}
	}
	if v.hasList && all[manifest.SumsName] == 0 {
		by = append(by, manifest.SumsName)
	}
	for _, what := range by {
		v.report.checked(fmt.Sprintf("sums: %s of %s %s the bytes that %s lists", words.Group(same[what]), words.Count(all[what], "file"), words.Verb(all[what], "has", "have"), what))
	}
}
