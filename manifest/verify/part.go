package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// readPart does for one part of the files what readData does for all: their sums are compared
// with what is said of them, and their tensors and experts with the folder's pin.
func (v *verifier) readPart(ctx context.Context) error {
	all, mine := v.filesOfPart()
	v.report.gap(fmt.Sprintf("of %s only the %s of this part were read", words.Count(all, "file"), words.Group(len(mine))),
		"whether the bytes of the others are what they should be, and what rests on all of them: pin digest, weights digest, signatures, where the weights come from")
	known := map[string]manifest.Sum{}
	for i, m := range v.models {
		if err := v.readFiles(ctx, m, i == 0, mine, known); err != nil {
			return err
		}
	}
	claims := v.claims
	v.claims = slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !mine[c.name] })
	err := v.checkSums(ctx, known)
	v.claims = claims
	if err != nil {
		return err
	}
	v.placeSums()
	return nil
}

// filesOfPart returns how many files there are to be read, and which of them this part has.
func (v *verifier) filesOfPart() (all int, mine map[string]bool) {
	names := map[string]bool{}
	for _, m := range v.models {
		for _, path := range m.Paths() {
			names[v.name(path)] = true
		}
	}
	for _, c := range v.claims {
		names[c.name] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	sizes := make([]int64, len(sorted))
	for i, name := range sorted {
		if info, err := os.Stat(v.path(name)); err == nil {
			sizes[i] = info.Size()
		}
	}
	mine = map[string]bool{}
	for _, i := range v.options.Only(sizes) {
		mine[sorted[i]] = true
	}
	return len(sorted), mine
}

// readFiles reads those files of a model that are this part's.
func (v *verifier) readFiles(ctx context.Context, m *gguf.Model, main bool, mine map[string]bool, known map[string]manifest.Sum) error {
	var files []int
	for i, path := range m.Paths() {
		if mine[v.name(path)] {
			files = append(files, i)
		}
	}
	if m.Err() != nil {
		v.report.gap(fmt.Sprintf("the headers of %q are not sound, so the data was not taken apart into tensors", m.Name), "which tensors and experts are what they should be")
		return nil
	}
	o := v.measure(m)
	o.Padding = v.findPadding
	pin, err := manifest.PinPart(ctx, m, o, files)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case gguf.MachineFault(err):
		return err
	case err != nil:
		v.report.find(KindUnreadable, "", err.Error())
		return nil
	}
	for _, i := range files {
		path := m.Paths()[i]
		known[filepath.Clean(path)] = pin.Files[i].SHA256
		v.taken[v.name(path)] = pin.Files[i].SHA256
		v.read += m.Files[i].Size
	}
	if main {
		v.compareHeaders()
		v.comparePart(m, pin, files)
		if v.options.Measured != nil {
			v.options.Measured(m, pin, files)
		}
	}
	return nil
}

// comparePart compares the tensors of some files with the folder's pin.
func (v *verifier) comparePart(m *gguf.Model, got *manifest.Pin, files []int) {
	if v.pin == nil {
		return
	}
	read := map[string]bool{}
	for _, i := range files {
		for _, t := range m.Files[i].Tensors {
			read[t.Name] = true
		}
	}
	c := v.comparison(onlyTensors(got, read), false)
	c.want = onlyTensors(v.pin, read)
	c.tensors()
}

// onlyTensors returns a pin that has some tensors only.
func onlyTensors(p *manifest.Pin, names map[string]bool) *manifest.Pin {
	some := *p
	some.Tensors = slices.DeleteFunc(slices.Clone(p.Tensors), func(t manifest.Tensor) bool { return !names[t.Name] })
	return &some
}
