package manifest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// A badFolder is far away, and changes bytes on their way.
type badFolder struct {
	*gguf.Model
	data []byte // of the only file

	mu        sync.Mutex
	bad       int64 // place of the byte in the file, -1 for none
	times     int   // that it comes changed
	again     bool  // bytes may be announced again
	announced [][2]int64
}

func (d *badFolder) Name() string             { return "far://" }
func (d *badFolder) Names() ([]string, error) { return []string{"m.gguf"}, nil }

func (d *badFolder) Open(string) (gguf.Source, error) { return &badFile{d}, nil }

type badFile struct{ dir *badFolder }

func (f *badFile) Name() string { return "far://m.gguf" }
func (f *badFile) Size() int64  { return int64(len(f.dir.data)) }

func (f *badFile) FetchAhead() (window, step, gap int64) { return 4 << 20, 1 << 20, 0 }

// Prefetch takes note of what is announced: no byte is twice.
func (f *badFile) Prefetch(off, n int64) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	for _, r := range f.dir.announced {
		if off < r[1] && r[0] < off+n && !f.dir.again {
			panic("announced twice")
		}
	}
	f.dir.announced = append(f.dir.announced, [2]int64{off, off + n})
}

func (f *badFile) FetchAt(p []byte, off int64) (int, error) { return f.ReadAt(p, off) }

func (f *badFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(f.dir.data).ReadAt(p, off)
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if at := f.dir.bad - off; f.dir.bad >= 0 && at >= 0 && at < int64(n) && f.dir.times > 0 {
		f.dir.times--
		p[at] ^= 0x10
	}
	return n, err
}

const bigTensor = "blk.0.big.weight"

// guardedModel has experts, routers, biases, whole tensors and one that is too large to be held.
func guardedModel(t *testing.T) (*badFolder, *Pin) {
	t.Helper()
	dir := &badFolder{bad: -1}
	spec := gguftest.K3(gguftest.K3Options{Name: "far", Experts: 16, Used: 4, Layers: 2, Latent: 256, Width: 256})
	spec.Tensors = append(spec.Tensors, gguftest.Tensor{Name: bigTensor, Type: gguf.F32, Shape: []uint64{1 << 10, 3 << 10}, Fill: gguftest.Fill{Spread: 1}})
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	if dir.data, err = os.ReadFile(paths[0]); err != nil {
		t.Fatal(err)
	}
	if dir.Model, err = gguf.Open(paths[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	slabs := func(name string) int {
		if strings.Contains(name, "_exps.") || strings.Contains(name, "ffn_gate_inp.") || strings.Contains(name, "exp_probs_b") {
			return 16
		}
		return 0
	}
	return dir, mustPin(t, dir.Model, BuildOptions{Slabs: slabs})
}

// copied writes what is kept, all where keep is nil, through a look at each part.
func copied(t *testing.T, dir *badFolder, pin *Pin, keep []int, scratch string) ([]byte, error) {
	t.Helper()
	dir.announced = nil
	m, err := gguf.OpenFolder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pin.Guard(m, scratch)
	contents := m.Contents()
	if keep != nil {
		kept := map[string][]int{}
		for _, s := range pin.Tensors {
			if s.Slabs != nil {
				kept[s.Name] = keep
			}
		}
		contents.Views = keptViews(m, kept)
	}
	layout, err := gguf.NewLayout(contents, gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	shard := layout.Shards[0]
	var out bytes.Buffer
	err = shard.Write(context.Background(), &out, make([]byte, 100_000), nil)
	return out.Bytes(), err
}

// TestGuardOfEveryKindOfPart changes a byte of an expert, a router, a bias, a small and a large
// tensor on its way: once, and what is written is right; always, and the error names it. All of
// it is asked for once, and no file is left.
func TestGuardOfEveryKindOfPart(t *testing.T) {
	dir, pin := guardedModel(t)
	for _, keep := range [][]int{nil, {1, 2, 5, 9, 15}, {9, 1, 15, 2}} {
		dir.bad = -1
		scratch := t.TempDir()
		want, err := copied(t, dir, pin, keep, scratch)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"blk.1.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias", "output_norm.weight", bigTensor} {
			tensor := dir.Tensor(name)
			dir.bad = tensor.DataOffset() + tensor.Size/16*2 - 1 // of expert 1, where it has experts
			dir.times = 1
			if got, err := copied(t, dir, pin, keep, scratch); err != nil || !bytes.Equal(got, want) || dir.times != 0 {
				t.Errorf("keep %v: %s changed once: %v, same bytes: %t, %d changes are left", keep, name, err, bytes.Equal(got, want), dir.times)
			}
			dir.times = 1 << 30
			_, err := copied(t, dir, pin, keep, scratch)
			if wrong, ok := errors.AsType[*DerivationError](err); !ok || !strings.Contains(wrong.What, name) || !strings.Contains(wrong.What, "asked for again") {
				t.Errorf("keep %v: %s changed always: %v", keep, name, err)
			}
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("%s is left, %v", left, err)
			}
		}
	}
}

// TestGuardWithoutRoom passes large tensors on where there is no room to look at them.
func TestGuardWithoutRoom(t *testing.T) {
	dir, pin := guardedModel(t)
	want, err := copied(t, dir, pin, nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := copied(t, dir, pin, nil, filepath.Join(t.TempDir(), "none")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("without a folder: %v, same bytes: %t", err, bytes.Equal(got, want))
	}
}

// TestGuardGoesOnWithin reads on from any byte, as a run that goes on does.
func TestGuardGoesOnWithin(t *testing.T) {
	dir, pin := guardedModel(t)
	far, err := gguf.OpenFolder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	pin.Guard(far, t.TempDir())
	for _, name := range []string{bigTensor, "blk.1.ffn_up_exps.weight", "output_norm.weight"} {
		tensor := far.Tensor(name)
		want := make([]byte, tensor.Size)
		if _, err := tensor.Reader().ReadAt(want, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for _, from := range []int64{1, tensor.Size / 3, tensor.Size - 1} {
			got := make([]byte, tensor.Size-from)
			if n, err := tensor.Reader().ReadAt(got, from); err != nil || !bytes.Equal(got, want[from:]) {
				t.Errorf("%s from byte %d: %d bytes, %v", name, from, n, err)
			}
		}
	}
}

// TestGuardSideBySide reads tensors from several goroutines, in odd steps, some of them the same.
func TestGuardSideBySide(t *testing.T) {
	dir, pin := guardedModel(t)
	far, err := gguf.OpenFolder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	pin.Guard(far, t.TempDir())
	dir.again = true
	dir.bad, dir.times = far.Tensor("blk.1.ffn_up_exps.weight").DataOffset()+5, 1
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for _, name := range []string{bigTensor, "blk.1.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "output_norm.weight"} {
				tensor := far.Tensor(name)
				got := make([]byte, 0, tensor.Size)
				for step := int64(10_000*(worker+1) + 7); int64(len(got)) < tensor.Size; {
					part := make([]byte, min(step, tensor.Size-int64(len(got))))
					if _, err := tensor.Reader().ReadAt(part, int64(len(got))); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					got = append(got, part...)
				}
				if want := dir.data[tensor.DataOffset():][:tensor.Size]; !bytes.Equal(got, want) {
					t.Errorf("%s: other bytes", name)
				}
			}
		})
	}
	group.Wait()
}
