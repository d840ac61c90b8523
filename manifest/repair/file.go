package repair

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// A file is one file of the folder as it should be.
type file struct {
	name string
	size int64
	sum  *manifest.Sum // nil where nobody says
	// sure says that the size comes from a pin or a copy: what lies behind is surplus.
	sure bool
	// tensors are in the order of their data; none where the sum alone tells.
	tensors []place
	data    int64       // where the header ends
	frame   io.ReaderAt // header and what lies between tensors; nil where the sum alone tells
	made    bool        // the header is made anew
	own     bool        // the header is that of the file itself
}

// A place is where a pinned tensor's data lie in its file.
type place struct {
	offset int64
	pinned *manifest.Tensor
}

// settle finds out which files the folder should have, and how they should begin.
func (job *Job) settle() error {
	if job.Pin == nil && job.Sums == nil {
		return errors.New("nothing says what the bytes should be: neither a pin nor a list of sums")
	}
	if len(job.Sources) == 0 {
		return errors.New("nothing says where right bytes are")
	}
	for _, s := range job.Sources {
		if err := s.Model.Err(); err != nil {
			return err
		}
		if job.Pin != nil {
			if err := s.bind(job.Pin); err != nil {
				return err
			}
		}
	}
	if err := cmp.Or(job.findFiles(), job.checkApart()); err != nil {
		return err
	}
	if err := job.describe(); err != nil {
		return err
	}
	for _, s := range job.Sources {
		s.files = nil
		for i, f := range job.files {
			s.serve(f, i, len(job.files))
		}
	}
	return nil
}

// findFiles settles names, sizes and sums: those of the pin, else those of a source, by the names
// that they have there or, where files were renamed, by their numbers.
func (job *Job) findFiles() error {
	cuts := job.cuts()
	for _, cut := range cuts {
		if slices.ContainsFunc(cut, func(f *file) bool { _, err := os.Lstat(job.path(f.name)); return err == nil }) {
			return job.take(cut)
		}
	}
	for _, cut := range cuts {
		if stem, ok := job.onlySet(len(cut)); ok {
			for i, f := range cut {
				f.name = gguf.ShardName(stem, i, len(cut))
				if len(cut) == 1 {
					f.name = stem
				}
			}
			return job.take(cut)
		}
	}
	if cut := job.ownCut(); cut != nil {
		return job.take(cut)
	}
	return fmt.Errorf("%s: holds none of the files of the good copy, such as %q", job.Dir, cuts[0][0].name)
}

// take settles the files.
func (job *Job) take(cut []*file) error {
	job.files = cut
	for _, f := range cut {
		if f.sum == nil {
			if sum, known := job.Sums[f.name]; known {
				f.sum = &sum
			}
		}
		if f.sum == nil && job.Pin == nil {
			return fmt.Errorf("the list of sums has none of %q", f.name)
		}
	}
	return nil
}

// cuts are the ways in which the model is known to be cut into files.
func (job *Job) cuts() [][]*file {
	var cuts [][]*file
	if job.Pin != nil {
		var cut []*file
		for _, f := range job.Pin.Files {
			cut = append(cut, &file{name: f.Name, size: f.Size, sum: &f.SHA256, sure: true})
		}
		cuts = append(cuts, cut)
	}
	for _, s := range job.Sources {
		if s.Views != nil || job.Pin != nil && !s.exact {
			continue
		}
		var cut []*file
		for _, f := range s.Model.Files {
			entry := &file{name: base(f), size: f.Size, sure: true}
			if sum, known := job.Sums[base(f)]; known {
				entry.sum = &sum
			}
			cut = append(cut, entry)
		}
		cuts = append(cuts, cut)
	}
	return cuts
}

// onlySet returns the stem of the shards, or the name of the only file, where the folder has one
// set of n files.
func (job *Job) onlySet(n int) (string, bool) {
	entries, err := os.ReadDir(job.Dir)
	if err != nil {
		return "", false
	}
	var stems []string
	for _, e := range entries {
		if !gguf.IsModelFile(e.Name()) {
			continue
		}
		stem := e.Name()
		if n > 1 {
			stem = gguf.Stem(e.Name())
			if !isShard(e.Name(), stem, n) {
				continue
			}
		}
		if !slices.Contains(stems, stem) {
			stems = append(stems, stem)
		}
	}
	if len(stems) != 1 {
		return "", false
	}
	return stems[0], true
}

// isShard reports whether a name is that of one of n shards.
func isShard(name, stem string, n int) bool {
	for i := range n {
		if gguf.ShardName(stem, i, n) == name {
			return true
		}
	}
	return false
}

// ownCut returns the files of the folder as their own headers say, nil where these do not say.
func (job *Job) ownCut() []*file {
	if job.Pin == nil {
		return nil
	}
	m, err := gguf.Open(job.Dir)
	if err != nil {
		return nil
	}
	defer m.Close()
	if !m.Complete() || len(m.Joined()) > 0 {
		return nil
	}
	var cut []*file
	for _, f := range m.Files {
		cut = append(cut, &file{name: base(f), size: -1})
	}
	return cut
}

// checkApart refuses a folder that is a source itself.
func (job *Job) checkApart() error {
	for _, f := range job.files {
		info, err := os.Stat(job.path(f.name))
		if err != nil {
			continue
		}
		for _, s := range job.Sources {
			for _, g := range s.Model.Files {
				if other, err := os.Stat(g.Name); err == nil && os.SameFile(info, other) {
					return fmt.Errorf("%s: is the good copy itself", job.path(f.name))
				}
			}
		}
	}
	return nil
}

// base returns the file name in the name of a source.
func base(f *gguf.File) string { return f.Name[strings.LastIndexAny(f.Name, `/\`)+1:] }

func (job *Job) path(name string) string { return filepath.Join(job.Dir, name) }

// file returns a file by name, and its number.
func (job *Job) file(name string) (*file, int) {
	i := slices.IndexFunc(job.files, func(f *file) bool { return f.name == name })
	if i < 0 {
		return nil, i
	}
	return job.files[i], i
}

// placedAs reports whether the tensors lie where those of a parsed file do.
func (f *file) placedAs(g *gguf.File) bool {
	if f.data != g.DataOffset || len(f.tensors) != len(g.Tensors) {
		return false
	}
	offsets := map[string]int64{}
	for _, t := range g.Tensors {
		offsets[t.Name] = t.DataOffset()
	}
	return !slices.ContainsFunc(f.tensors, func(p place) bool {
		at, there := offsets[p.pinned.Name]
		return !there || at != p.offset
	})
}

// A padded reader reads zeros behind the end of a file that is too short.
type padded struct {
	file *os.File // nil for one that is not there
	size int64
}

// openPadded opens a file of the folder. One that is not there reads as zeros.
func (job *Job) openPadded(name string) (*padded, error) {
	file, info, err := manifest.OpenRegular(job.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return &padded{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &padded{file, info.Size()}, nil
}

func (p *padded) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	if there := min(int64(len(b)), p.size-off); p.file != nil && there > 0 {
		var err error
		if n, err = p.file.ReadAt(b[:there], off); n < int(there) {
			return n, err
		}
	}
	clear(b[n:])
	return len(b), nil
}

func (p *padded) close() {
	if p.file != nil {
		p.file.Close()
	}
}

// A headerBytes is a header, and zeros behind it.
type headerBytes []byte

func (h headerBytes) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(h)) {
		n = copy(p, h[off:])
	}
	clear(p[n:])
	return len(p), nil
}

// isZero reports whether bytes are zeros.
func isZero(r io.ReaderAt, from, to int64) bool {
	b := make([]byte, 4<<10)
	for from < to {
		part := b[:min(int64(len(b)), to-from)]
		if n, _ := r.ReadAt(part, from); n < len(part) || len(bytes.Trim(part, "\x00")) > 0 {
			return false
		}
		from += int64(len(part))
	}
	return true
}
