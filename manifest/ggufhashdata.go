package manifest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// hashTask says what to take of one file: digests by algorithm of each tensor, by its
// index in the table, and of all its data.
type hashTask struct {
	tensors map[int]map[string][]byte
	whole   map[string][]byte
}

func newHashTask() *hashTask { return &hashTask{map[int]map[string][]byte{}, map[string][]byte{}} }

// want asks for a digest; tensor -1 is the whole.
func (t *hashTask) want(tensor int, algorithm string) {
	if tensor < 0 {
		t.whole[algorithm] = nil
		return
	}
	if t.tensors[tensor] == nil {
		t.tensors[tensor] = map[string][]byte{}
	}
	t.tensors[tensor][algorithm] = nil
}

// got returns a digest that was asked for.
func (t *hashTask) got(tensor int, algorithm string) []byte {
	if tensor < 0 {
		return t.whole[algorithm]
	}
	return t.tensors[tensor][algorithm]
}

// takeHashes reads the data of the model's tensors once, in the order of each file's
// table, and fills in what the tasks, one for each file, ask for.
func takeHashes(ctx context.Context, m *gguf.Model, tasks []*hashTask, workers int, report Progress) error {
	var total int64
	for i, task := range tasks {
		for n, t := range m.Files[i].Tensors {
			if task.reads(n) {
				total += t.Size
			}
		}
	}
	count := pass.NewMeter(total, report)
	return pass.ForEach(ctx, len(m.Files), workers, func(ctx context.Context, i int, w *pass.Worker) error {
		if err := tasks[i].run(ctx, m.Files[i], count, w.Buf); err != nil {
			return fmt.Errorf("%s: %w", m.Files[i].Name, err)
		}
		return nil
	})
}

// reads reports whether the data of a tensor is needed.
func (t *hashTask) reads(tensor int) bool { return len(t.whole) > 0 || t.tensors[tensor] != nil }

func (t *hashTask) run(ctx context.Context, f *gguf.File, count *pass.Meter, buf []byte) error {
	whole := newHashes(t.whole)
	for i, tensor := range f.Tensors {
		if !t.reads(i) {
			continue
		}
		if tensor.Opaque {
			return fmt.Errorf("tensor %q: type %s has no known block size, so llama-gguf-hash has no digest of it", tensor.Name, tensor.Type)
		}
		own := newHashes(t.tensors[i])
		sinks := io.MultiWriter(slices.Concat(own.writers(), whole.writers(), []io.Writer{count})...)
		start := tensor.DataOffset()
		err := pass.ReadRange(ctx, f, start, start+tensor.Size, buf, func(part []byte, _ int64) error {
			_, err := sinks.Write(part)
			return err
		})
		if err != nil {
			return err
		}
		own.fill(t.tensors[i])
	}
	whole.fill(t.whole)
	return nil
}

// hashes are hashers by algorithm.
type hashes map[string]hash.Hash

func newHashes(wanted map[string][]byte) hashes {
	h := hashes{}
	for algorithm := range wanted {
		h[algorithm] = hashAlgorithms[algorithm]()
	}
	return h
}

func (h hashes) writers() []io.Writer {
	var list []io.Writer
	for _, algorithm := range slices.Sorted(maps.Keys(h)) {
		list = append(list, h[algorithm])
	}
	return list
}

func (h hashes) fill(digests map[string][]byte) {
	for algorithm, hasher := range h {
		digests[algorithm] = hasher.Sum(nil)
	}
}

// WriteGGUFHashes writes the manifest that llama-gguf-hash --sha256 prints of each file
// of a sound model, run in its folder: one line for each tensor, and one for the file. A
// name with white space, which that program would not read back, is an error.
func WriteGGUFHashes(ctx context.Context, w io.Writer, m *gguf.Model, workers int, report Progress) error {
	const algorithm = "sha256"
	if err := m.Err(); err != nil {
		return err
	}
	tasks := make([]*hashTask, len(m.Files))
	for i, f := range m.Files {
		tasks[i] = newHashTask()
		tasks[i].want(-1, algorithm)
		names := []string{filepath.Base(f.Name)}
		for n, t := range f.Tensors {
			tasks[i].want(n, algorithm)
			names = append(names, t.Name)
		}
		for _, name := range names {
			if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' }) {
				return fmt.Errorf("%s: name %q has white space, which llama-gguf-hash does not read back", f.Name, name)
			}
		}
	}
	if err := takeHashes(ctx, m, tasks, workers, report); err != nil {
		return err
	}
	if err := m.Unchanged(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for i, f := range m.Files {
		name := filepath.Base(f.Name)
		for n, t := range f.Tensors {
			fmt.Fprintf(out, "%-8s  %x  %s:%s\n", algorithm, tasks[i].got(n, algorithm), name, t.Name)
		}
		fmt.Fprintf(out, "%-8s  %x  %s\n", algorithm, tasks[i].got(-1, algorithm), name)
	}
	return out.Flush()
}

// check compares the digests of every line.
func (rows GGUFHashes) check(ctx context.Context, c *checker) error {
	if c.options.Quick {
		return fmt.Errorf("a llama-gguf-hash manifest: %w", ErrNotQuick)
	}
	h := newHashCheck(c, rows)
	h.place(rows)
	if err := takeHashes(ctx, c.model, h.tasks, c.options.Workers, c.options.Progress); err != nil {
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
	index   []map[string]int // places in the table by tensor name
	tasks   []*hashTask
	covered []coverage
	placed  []placedHash
	used    map[string]bool // algorithms
}

// A placedHash is a line whose file, and tensor or -1, are known.
type placedHash struct {
	GGUFHash
	file, tensor int
}

// coverage is what the lines say of one file.
type coverage struct {
	whole   bool
	tensors map[int]bool
}

func newHashCheck(c *checker, rows GGUFHashes) *hashCheck {
	h := &hashCheck{checker: c, used: map[string]bool{}}
	for _, t := range c.model.Tensors() {
		h.longest = max(h.longest, len(t.Name))
	}
	h.only = h.onlyPath(rows)
	for _, f := range c.model.Files {
		index := map[string]int{}
		for n, t := range f.Tensors {
			index[t.Name] = n
		}
		h.index = append(h.index, index)
		h.tasks = append(h.tasks, newHashTask())
		h.covered = append(h.covered, coverage{tensors: map[int]bool{}})
	}
	return h
}

// place finds what each line is about.
func (h *hashCheck) place(rows GGUFHashes) {
	passed := map[string]int{}
	for _, row := range rows {
		if row.Digest == nil {
			passed[row.Algorithm]++
			continue
		}
		if file, tensor, ok := h.locate(row); ok {
			h.placed = append(h.placed, placedHash{row, file, tensor})
			h.tasks[file].want(tensor, row.Algorithm)
			h.used[row.Algorithm] = true
			h.covered[file].add(tensor)
		}
	}
	for _, algorithm := range slices.Sorted(maps.Keys(passed)) {
		h.report.gap(fmt.Sprintf("lines of %s were not compared: %d; %s", algorithm, passed[algorithm], otherHashes[algorithm]), "what those lines say")
	}
}

// locate returns the file and the tensor, or -1, that a line is about.
func (h *hashCheck) locate(row GGUFHash) (file, tensor int, ok bool) {
	path, name := row.split(h.isTensor)
	file = h.fileNamed(path)
	if file < 0 {
		h.report.find(KindMissing, baseOf(path), "is in the manifest and not in the artifact")
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
	h.report.Findings = append(h.report.Findings, Finding{Kind: kind, File: filepath.Base(h.model.Files[file].Name), Tensor: tensor, Expert: NoExpert, What: what})
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
func (h *hashCheck) onlyPath(rows GGUFHashes) string {
	if len(h.model.Files) != 1 {
		return ""
	}
	only := ""
	for _, row := range rows {
		path, _ := row.split(h.isTensor)
		if only != "" && path != only {
			return ""
		}
		only = path
	}
	return only
}

// fileNamed returns the index of the file that a line's path names, or -1.
func (h *hashCheck) fileNamed(path string) int {
	return slices.IndexFunc(h.model.Files, func(f *gguf.File) bool {
		return path == h.only || filepath.Base(f.Name) == baseOf(path)
	})
}

// baseOf returns the last part of a path of either kind.
func baseOf(file string) string { return path.Base(strings.ReplaceAll(file, `\`, "/")) }

func (h *hashCheck) compare() {
	same := 0
	for _, row := range h.placed {
		got := h.tasks[row.file].got(row.tensor, row.Algorithm)
		what := fmt.Sprintf("%s is %x, the manifest says %x", row.Algorithm, got, row.Digest)
		switch {
		case bytes.Equal(got, row.Digest):
			same++
		case row.tensor < 0:
			h.find(KindDigest, row.file, "", "of all tensors together "+what)
		default:
			h.find(KindDigest, row.file, h.model.Files[row.file].Tensors[row.tensor].Name, what)
		}
	}
	if len(h.placed) == 0 {
		return
	}
	h.report.checked(fmt.Sprintf("digests: %d of %d are as the manifest says (%s)", same, len(h.placed), strings.Join(slices.Sorted(maps.Keys(h.used)), ", ")))
}

// summarize says what the manifest leaves open.
func (h *hashCheck) summarize() {
	if len(h.placed) == 0 {
		h.report.find(KindList, "", "no line of the manifest could be compared")
	}
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
	case h.used["xxh64"]:
		h.report.gap("xxh64 is the only hash of the manifest", "forgery: it is made to find damage, and anyone can make data that fits")
	}
}
