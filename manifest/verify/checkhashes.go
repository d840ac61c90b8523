package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// ErrNothingCompared says that no line of a list is about anything that the model has, in a
// form that can be compared.
var ErrNothingCompared = errors.New("no line of the manifest could be compared with the model: its lines name other files, or use hashes that this program has not")

// hashes compares the digests of every line.
func (c *checker) hashes(ctx context.Context, rows lists.GGUFHashes) error {
	if c.options.Quick {
		return fmt.Errorf("a llama-gguf-hash manifest: %w", ErrNotQuick)
	}
	h := newHashCheck(c, rows)
	h.place(rows)
	if len(h.placed) == 0 {
		return ErrNothingCompared
	}
	if err := lists.TakeHashes(ctx, c.model, h.tasks, c.options.Workers, c.options.Progress); err != nil {
		return err
	}
	h.compare()
	h.summarize()
	return nil
}

// A hashCheck compares a model with a manifest. Slices have an element for each file.
type hashCheck struct {
	*checker
	only    string           // path of the only file, see onlyPath
	longest int              // bytes of the longest tensor name
	named   map[string]int   // files by the last part of their names
	index   []map[string]int // places in the table by tensor name
	tasks   []*lists.HashTask
	covered []coverage
	placed  []placedHash
	used    map[string]bool // algorithms
}

// A placedHash is a line whose file, and tensor or -1, are known.
type placedHash struct {
	lists.GGUFHash
	file, tensor int
}

// coverage is what the lines say of one file.
type coverage struct {
	whole   bool
	tensors map[int]bool
}

func newHashCheck(c *checker, rows lists.GGUFHashes) *hashCheck {
	h := &hashCheck{checker: c, used: map[string]bool{}, named: map[string]int{}}
	for _, t := range c.model.Tensors() {
		h.longest = max(h.longest, len(t.Name))
	}
	h.only = h.onlyPath(rows)
	for i, f := range c.model.Files {
		if _, twice := h.named[filepath.Base(f.Name)]; !twice {
			h.named[filepath.Base(f.Name)] = i
		}
		index := map[string]int{}
		for n, t := range f.Tensors {
			index[t.Name] = n
		}
		h.index = append(h.index, index)
		h.tasks = append(h.tasks, lists.NewHashTask())
		h.covered = append(h.covered, coverage{tensors: map[int]bool{}})
	}
	return h
}

// place finds what each line is about.
func (h *hashCheck) place(rows lists.GGUFHashes) {
	passed := map[string]int{}
	for _, row := range rows {
		if row.Digest == nil {
			passed[row.Algorithm]++
			continue
		}
		if file, tensor, ok := h.locate(row); ok {
			h.placed = append(h.placed, placedHash{row, file, tensor})
			h.tasks[file].Want(tensor, row.Algorithm)
			h.used[row.Algorithm] = true
			h.covered[file].add(tensor)
		}
	}
	for _, algorithm := range slices.Sorted(maps.Keys(passed)) {
		h.report.gap(fmt.Sprintf("lines of %s were not compared: %d; %s", algorithm, passed[algorithm], lists.OtherHashes[algorithm]), "what those lines say")
	}
}

// locate returns the file and the tensor, or -1, that a line is about.
func (h *hashCheck) locate(row lists.GGUFHash) (file, tensor int, ok bool) {
	path, name := row.Split(h.isTensor)
	file = h.fileNamed(path)
	if file < 0 {
		h.report.find(KindMissing, baseOf(path), "is in the manifest and not in the model")
		return 0, 0, false
	}
	if name == "" {
		return file, -1, true
	}
	tensor, ok = h.index[file][name]
	if !ok {
		h.find(KindMissing, file, name, "is in the manifest and not in the file")
	}
	return file, tensor, ok
}

func (h *hashCheck) find(kind Kind, file int, tensor, what string) {
	h.report.Add(Finding{Kind: kind, File: filepath.Base(h.model.Files[file].Name), Tensor: tensor, Expert: manifest.NoExpert, What: what})
}

func (c *coverage) add(tensor int) {
	if tensor < 0 {
		c.whole = true
		return
	}
	c.tensors[tensor] = true
}

// isTensor is asked for each colon of a name, of which there can be thousands.
func (h *hashCheck) isTensor(name string) bool {
	return len(name) <= h.longest && h.model.Tensor(name) != nil
}

// onlyPath returns the path that all lines name when the model has one file, which may
// then be called otherwise.
func (h *hashCheck) onlyPath(rows lists.GGUFHashes) string {
	if len(h.model.Files) != 1 {
		return ""
	}
	only := ""
	for _, row := range rows {
		path, _ := row.Split(h.isTensor)
		if only != "" && path != only {
			return ""
		}
		only = path
	}
	return only
}

// fileNamed returns the index of the file that a line's path names, or -1.
func (h *hashCheck) fileNamed(path string) int {
	if path == h.only && h.only != "" {
		return 0
	}
	if i, ok := h.named[baseOf(path)]; ok {
		return i
	}
	return -1
}

// baseOf returns the last part of a path of either kind.
func baseOf(file string) string { return path.Base(strings.ReplaceAll(file, `\`, "/")) }

func (h *hashCheck) compare() {
	same := 0
	for _, row := range h.placed {
		got := h.tasks[row.file].Got(row.tensor, row.Algorithm)
		if bytes.Equal(got, row.Digest) {
			same++
			continue
		}
		h.report.Add(h.differs(row, fmt.Sprintf("%s is %x, the manifest says %x", row.Algorithm, got, row.Digest)))
	}
	h.report.checked(fmt.Sprintf("digests: %d of %d are as the manifest says (%s)", same, len(h.placed), strings.Join(slices.Sorted(maps.Keys(h.used)), ", ")))
}

// differs is the finding about a line whose digest is another, with the bytes that it is of.
func (h *hashCheck) differs(row placedHash, what string) Finding {
	f := h.model.Files[row.file]
	found := Finding{Kind: KindDigest, File: filepath.Base(f.Name), Expert: manifest.NoExpert, What: what}
	part := Part{File: found.File, Offset: f.DataOffset, Length: f.Size - f.DataOffset}
	if row.tensor < 0 {
		found.What = "of all tensors together " + what
	} else {
		t := f.Tensors[row.tensor]
		found.Tensor = t.Name
		part = Part{found.File, t.Name, t.DataOffset(), t.Size}
	}
	if part.Length > 0 {
		found.Parts = []Part{part}
	}
	return found
}

// summarize says what the manifest leaves open.
func (h *hashCheck) summarize() {
	for i, f := range h.model.Files {
		c := h.covered[i]
		if missing := len(f.Tensors) - len(c.tensors); !c.whole && missing > 0 {
			h.report.gap(fmt.Sprintf("%q: the manifest has no line for %d of %d tensors", filepath.Base(f.Name), missing, len(f.Tensors)), "whether their data is right")
		}
	}
	h.report.gap("llama-gguf-hash knows the data of tensors only", "names, shapes and types where only whole files are listed, and metadata")
	switch {
	case h.used["sha256"]:
	case h.used["sha1"]:
		h.report.gap("sha1 is the strongest hash of the manifest", "forgery: two files with one SHA-1 can be made")
	case h.used["uuid"]:
		h.report.gap("a uuid is all that the manifest has, a part of a sha1", "forgery: two files with one SHA-1 can be made")
	case h.used["xxh64"]:
		h.report.gap("xxh64 is the only hash of the manifest", "forgery: it is made to find damage, and anyone can make data that fits")
	}
}
