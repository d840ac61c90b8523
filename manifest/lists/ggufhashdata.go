package lists

import (
	"bufio"
	"context"
	"fmt"
	"hash"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// HashTask says what to take of one file: digests by algorithm of each tensor, by its
// index in the table, and of all its data.
type HashTask struct {
	tensors map[int]map[string][]byte
	whole   map[string][]byte
}

// NewHashTask returns a task that takes nothing yet.
func NewHashTask() *HashTask { return &HashTask{map[int]map[string][]byte{}, map[string][]byte{}} }

// Want asks for a digest; tensor -1 is the whole.
func (t *HashTask) Want(tensor int, algorithm string) {
	if tensor < 0 {
		t.whole[algorithm] = nil
		return
	}
	if t.tensors[tensor] == nil {
		t.tensors[tensor] = map[string][]byte{}
	}
	t.tensors[tensor][algorithm] = nil
}

// Got returns a digest that was asked for.
func (t *HashTask) Got(tensor int, algorithm string) []byte {
	if tensor < 0 {
		return t.whole[algorithm]
	}
	return t.tensors[tensor][algorithm]
}

// TakeHashes reads the data of the model's tensors once, in the order of each file's
// table, and fills in what the tasks, one for each file, ask for.
func TakeHashes(ctx context.Context, m *gguf.Model, tasks []*HashTask, workers int, report manifest.Progress) error {
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
func (t *HashTask) reads(tensor int) bool { return len(t.whole) > 0 || t.tensors[tensor] != nil }

func (t *HashTask) run(ctx context.Context, f *gguf.File, count *pass.Meter, buf []byte) error {
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
func WriteGGUFHashes(ctx context.Context, w io.Writer, m *gguf.Model, workers int, report manifest.Progress) error {
	const algorithm = "sha256"
	if err := m.Err(); err != nil {
		return err
	}
	tasks := make([]*HashTask, len(m.Files))
	for i, f := range m.Files {
		tasks[i] = NewHashTask()
		tasks[i].Want(-1, algorithm)
		names := []string{filepath.Base(f.Name)}
		for n, t := range f.Tensors {
			tasks[i].Want(n, algorithm)
			names = append(names, t.Name)
		}
		for _, name := range names {
			if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' }) {
				return fmt.Errorf("%s: name %q has white space, which llama-gguf-hash does not read back", f.Name, name)
			}
		}
	}
	if err := TakeHashes(ctx, m, tasks, workers, report); err != nil {
		return err
	}
	if err := m.Unchanged(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for i, f := range m.Files {
		name := filepath.Base(f.Name)
		for n, t := range f.Tensors {
			fmt.Fprintf(out, "%-8s  %x  %s:%s\n", algorithm, tasks[i].Got(n, algorithm), name, t.Name)
		}
		fmt.Fprintf(out, "%-8s  %x  %s\n", algorithm, tasks[i].Got(-1, algorithm), name)
	}
	return out.Flush()
}
