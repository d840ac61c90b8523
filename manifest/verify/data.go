package verify

import (
	"context"
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

// readData compares the bytes of the main model with the pins, and those of all listed
// files with their sums. Each file is read once.
func (v *verifier) readData(ctx context.Context) error {
	if v.options.Fast {
		v.report.gap("data was not read", "whether any byte behind the headers is what it should be")
		v.compareHeaders()
		return nil
	}
	known, err := v.readModel(ctx)
	if err != nil {
		return err
	}
	if err := v.checkSums(ctx, known); err != nil {
		return err
	}
	v.comparePin()
	v.prove()
	return nil
}

// readModel pins the main model where somebody wants to know more than sums tell, and
// returns the sums of its files, by path.
func (v *verifier) readModel(ctx context.Context) (map[string]manifest.Sum, error) {
	expected := slices.ContainsFunc(v.options.Expect, Expectation.readsData)
	m := v.main()
	if m == nil || v.pin == nil && v.options.Source == nil && !expected {
		return nil, nil
	}
	if m.Err() != nil {
		v.report.gap("the headers are not sound, so the data was not taken apart into tensors", "which tensors and experts are what they should be")
		return nil, nil
	}
	o := v.measure(m)
	pin, err := manifest.BuildPin(ctx, m, o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v.report.find(KindUnreadable, "", err.Error())
		return nil, nil
	}
	v.got, v.read = pin, m.FileBytes()
	known := map[string]manifest.Sum{}
	for i, path := range m.Paths() {
		known[filepath.Clean(path)] = pin.Files[i].SHA256
		v.taken[v.name(path)] = pin.Files[i].SHA256
	}
	return known, nil
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

// checkSums compares every listed file that is there. Sums that are known already are
// not taken again.
func (v *verifier) checkSums(ctx context.Context, known map[string]manifest.Sum) error {
	if !v.hasList {
		return nil
	}
	sums := make([]manifest.Sum, len(v.listed))
	faults := make([]error, len(v.listed))
	var todo []int
	var total int64
	for i, s := range v.listed {
		sum, ok := known[v.path(s.Name)]
		if ok {
			sums[i] = sum
			continue
		}
		todo = append(todo, i)
		if info, err := os.Stat(v.path(s.Name)); err == nil {
			total += info.Size()
		}
	}
	count := pass.NewMeter(total, v.options.Progress.After(v.read))
	err := pass.ForEach(ctx, len(todo), v.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		at := todo[i]
		sums[at], faults[at] = sumFile(ctx, v.path(v.listed[at].Name), w, count)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, s := range v.listed {
		if faults[i] == nil {
			v.taken[s.Name] = sums[i]
		}
	}
	v.reportSums(sums, faults)
	return nil
}

// sumFile returns the SHA-256 of a regular file, links followed.
func sumFile(ctx context.Context, path string, w *pass.Worker, count io.Writer) (manifest.Sum, error) {
	f, info, err := manifest.OpenRegular(path)
	if err != nil {
		return manifest.Sum{}, err
	}
	defer f.Close()
	hasher := w.Hasher()
	if err := pass.Scan(ctx, f, info.Size(), w.Buf, io.MultiWriter(hasher, count), nil); err != nil {
		return manifest.Sum{}, fmt.Errorf("%s: %w", path, err)
	}
	return hasher.Sum(), nil
}

func (v *verifier) reportSums(sums []manifest.Sum, faults []error) {
	same := 0
	for i, s := range v.listed {
		switch {
		case faults[i] != nil:
			v.report.find(KindUnreadable, s.Name, about(v.path(s.Name), faults[i]))
		case sums[i] != s.SHA256:
			v.report.find(KindDigest, s.Name, fmt.Sprintf("sha256 is %s, %s says %s%s", sums[i], manifest.SumsName, s.SHA256, v.pinSays(s.Name, sums[i])))
		default:
			same++
		}
	}
	v.report.checked(fmt.Sprintf("sums: %s of %s have the bytes that %s lists", words.Group(same), words.Count(len(v.listed), "file"), manifest.SumsName))
}
