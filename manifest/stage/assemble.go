package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
)

// CheckFiles looks for the files that the records of a release tell of: regular ones of the
// sizes that they have there. Other files are faults of the parts that wrote them. A model
// file that belongs to no part is an error.
func (g *Gathering) CheckFiles(ctx context.Context) error {
	if err := g.checkShards(); err != nil {
		return fmt.Errorf("folder %q: %w", g.path, err)
	}
	pending, why := g.wanted(), map[int]string{}
	return g.retry(ctx, func() (bool, error) {
		for part := range why {
			delete(g.faults, part)
		}
		clear(why)
		var failed error
		pending = slices.DeleteFunc(pending, func(w wantedFile) bool {
			err := w.check()
			switch {
			case cannotRead(err):
				failed = fmt.Errorf("folder %q: %w", g.path, withName(w.name, err))
			case errors.Is(err, fs.ErrNotExist):
				why[w.part] = fmt.Sprintf("%q is missing", w.name)
			case err != nil:
				why[w.part] = err.Error()
			}
			return err == nil
		})
		maps.Copy(g.faults, why)
		return len(pending) == 0, failed
	})
}

// A wantedFile is one that the record of a part tells of.
type wantedFile struct {
	name  string
	part  int
	check func() error
}

func (g *Gathering) wanted() []wantedFile {
	var files []wantedFile
	for i, f := range g.join.Files() {
		if part := g.join.Part(i + 1); part != 0 {
			files = append(files, wantedFile{f.Name, part, func() error { return checkSize(g.dir, f.Name, f.Size) }})
		}
	}
	for _, d := range g.join.Documents() {
		sum := lists.FileSum{Name: d.Name, SHA256: d.SHA256}
		files = append(files, wantedFile{d.Name, 1, func() error { return placer{dir: g.dir}.checkFile(sum, d.Size) }})
	}
	return files
}

// checkShards refuses shards with names of others and, once all parts are there, shards that
// no part has, and model files that are none.
func (g *Gathering) checkShards() error {
	a := g.record.Artifact
	for i, f := range g.join.Files() {
		if part, want := g.join.Part(i+1), gguf.ShardName(a.Name, i, a.Shards); part != 0 && f.Name != want {
			return fmt.Errorf("%s calls shard %d %q, want %q", parts.Name(part, g.record.Parts), i+1, f.Name, want)
		}
	}
	if len(g.faults) > 0 {
		return nil
	}
	if err := g.join.Complete(); err != nil {
		return err
	}
	entries, err := g.dir.List()
	if err != nil {
		return err
	}
	names, err := g.names()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if gguf.IsModelFile(e.Name()) && !names[e.Name()] {
			return fmt.Errorf("model file %q is no part of the release", e.Name())
		}
	}
	return nil
}

// Recheck reads every file of the release, of parts with faults none. What is not what its
// record says is a fault of the part that wrote it.
func (g *Gathering) Recheck(ctx context.Context, workers int, progress manifest.Progress) error {
	if len(g.faults) > 0 {
		return g.recheckSums(ctx, workers)
	}
	want, err := g.Pin()
	if err != nil {
		return err
	}
	got, err := g.measure(ctx, want, workers, progress)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // some file is no shard of the model any more
		return g.recheckSums(ctx, workers)
	}
	at := 0
	for i, f := range want.Files {
		if got.Files[i] != f {
			g.fault(i, "%q: sha256 is %s, its record says %s", f.Name, got.Files[i].SHA256, f.SHA256)
		}
		for range g.join.Tensors(i) {
			if a, b := &want.Tensors[at], &got.Tensors[at]; a.Name != b.Name || a.BLAKE3 != b.BLAKE3 || !equalSlabs(a.Slabs, b.Slabs) {
				g.fault(i, "%q: tensor %q is not what its record says", f.Name, a.Name)
			}
			at++
		}
	}
	return nil
}

func (g *Gathering) fault(file int, format string, args ...any) {
	if part := g.join.Part(file + 1); g.faults[part] == "" {
		g.faults[part] = fmt.Sprintf(format, args...)
	}
}

func equalSlabs(a, b *manifest.Slabs) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Count == b.Count && bytes.Equal(a.BLAKE3, b.BLAKE3) && bytes.Equal(a.Bytes, b.Bytes)
}

// measure pins the model in the folder.
func (g *Gathering) measure(ctx context.Context, like *manifest.Pin, workers int, progress manifest.Progress) (*manifest.Pin, error) {
	m, err := gguf.Open(filepath.Join(g.path, like.Files[0].Name))
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.Files) != len(like.Files) || len(m.Tensors()) != len(like.Tensors) {
		return nil, errors.New("it is another model")
	}
	o := manifest.BuildOptions{Workers: workers, Progress: progress}
	o.Follow(m, like)
	return manifest.BuildPin(ctx, m, o)
}

// recheckSums takes the sums of all files of parts without faults, whatever they are.
func (g *Gathering) recheckSums(ctx context.Context, workers int) error {
	f := Folder{path: g.path, dir: g.dir}
	files := g.join.Files()
	sums := make([]error, len(files))
	err := pass.ForEach(ctx, len(files), workers, func(ctx context.Context, i int, w *pass.Worker) error {
		if part := g.join.Part(i + 1); part == 0 || g.faults[part] != "" {
			return nil
		}
		sum, err := f.sum(ctx, files[i].Name, w)
		if err == nil && sum != files[i].SHA256 {
			err = fmt.Errorf("%q: sha256 is %s, its record says %s", files[i].Name, sum, files[i].SHA256)
		}
		sums[i] = err
		return ctx.Err()
	})
	for i, wrong := range sums {
		if wrong != nil {
			g.fault(i, "%v", wrong)
		}
	}
	return err
}

// Publish makes a release of the folder: it writes the pin and then the list of sums. With a
// list that is there already it is an error not to be the same release.
func (g *Gathering) Publish() (*manifest.Pin, error) {
	pin, err := g.Pin()
	if err != nil {
		return nil, err
	}
	p, err := newPlacer(g.dir, Share{}.runName())
	if err != nil {
		return nil, g.wrap(manifest.SumsName, err)
	}
	sum, err := p.place(manifest.PinName, func(w io.Writer) error { return manifest.EncodePin(w, manifest.PinName, pin) })
	if err != nil {
		return nil, g.wrap(manifest.PinName, err)
	}
	list := []lists.FileSum{{Name: manifest.PinName, SHA256: sum}}
	for _, f := range pin.Files {
		list = append(list, lists.FileSum{Name: f.Name, SHA256: f.SHA256})
	}
	for _, d := range g.join.Documents() {
		list = append(list, lists.FileSum{Name: d.Name, SHA256: d.SHA256})
	}
	if _, err := p.place(manifest.SumsName, func(w io.Writer) error { return lists.WriteSums(w, list) }); err != nil {
		return nil, g.wrap(manifest.SumsName, err)
	}
	return pin, nil
}

func (g *Gathering) wrap(name string, err error) error {
	return fmt.Errorf("folder %q: writing %q: %w", g.path, name, err)
}

// CheckListed returns an error when the list of sums in the folder is that of another release
// than the records that are there tell of.
func (g *Gathering) CheckListed() error {
	if g.record == nil {
		return nil
	}
	sums, err := g.sums()
	if err != nil {
		return err
	}
	for i, f := range g.join.Files() {
		if part := g.join.Part(i + 1); part != 0 && sums[f.Name] != f.SHA256 {
			return fmt.Errorf("%w: its %s has another sha256 of %q than %s", g.refuse(ErrOther), manifest.SumsName, f.Name, parts.Name(part, g.record.Parts))
		}
	}
	return nil
}
