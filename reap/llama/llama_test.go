package llama_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

// write puts a small model on disk and returns its path.
func write(t *testing.T) string {
	t.Helper()
	paths, err := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4}).Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

func open(t *testing.T, path string, o llama.Options) *llama.Model {
	t.Helper()
	model, err := llamatest.Engine(t).Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

func TestMissingLibrarySaysHowToGetIt(t *testing.T) {
	_, err := llama.Load(t.TempDir())
	if !errors.Is(err, llama.ErrNoLibrary) || !strings.Contains(err.Error(), "make engine") {
		t.Errorf("error %v, want the way to the library", err)
	}
}

func TestOneEngineAProcess(t *testing.T) {
	first, second := llamatest.Engine(t), llamatest.Engine(t)
	if first != second {
		t.Error("two engines from one folder")
	}
	other := t.TempDir()
	for _, name := range []string{"libllama", "libggml", "libggml-base"} {
		for _, ext := range []string{".so", ".dylib"} {
			if err := os.WriteFile(filepath.Join(other, name+ext), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := llama.Load(other); err == nil || !strings.Contains(err.Error(), "already loaded") {
		t.Errorf("second folder: error %v", err)
	}
}

func TestOpenQuotesTheLibrary(t *testing.T) {
	engine := llamatest.Engine(t)
	good, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	renamed := slices.Clone(good)
	copy(renamed[strings.Index(string(good), "blk.1.ffn_up_exps"):], "blk.1.ffn_UP_exps")
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"no model", []byte("hello, this is text"), "magic"},
		{"truncated", good[:len(good)/2], "not within the file bounds"},
		{"missing tensor", renamed, "blk.1.ffn_up_exps.weight"},
	} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, test.data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := engine.Open(path, llama.Options{})
		if err == nil {
			t.Errorf("%s: opened", test.name)
			continue
		}
		if !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: error %q, want the path and %q", test.name, err, test.want)
		}
	}
	if _, err := engine.Open("nowhere.gguf", llama.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v", err)
	}
}

func TestLogitsAreReproducible(t *testing.T) {
	path := write(t)
	one, two := open(t, path, llama.Options{}), open(t, path, llama.Options{Threads: 2})
	tokens := []int{1, 2, 3, 250, 7, 7, 9, 100, 31}
	want, err := one.Logits(tokens)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != len(tokens) || len(want[0]) != one.Vocab() {
		t.Fatalf("%d rows of %d logits, want %d of %d", len(want), len(want[0]), len(tokens), one.Vocab())
	}
	var wg sync.WaitGroup
	for _, model := range []*llama.Model{one, two, one, two} {
		wg.Go(func() {
			got, err := model.Logits(tokens)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("position %d: other logits than before", i)
				}
			}
		})
	}
	wg.Wait()
	// What comes later cannot change what came before.
	head, err := one.Logits(tokens[:4])
	if err != nil {
		t.Fatal(err)
	}
	var far float32
	for i := range head {
		for j := range head[i] {
			far = max(far, head[i][j]-want[i][j], want[i][j]-head[i][j])
		}
	}
	if far > 1e-3 {
		t.Errorf("the first 4 positions alone differ by %g", far)
	}
}

func TestLogitsRefuses(t *testing.T) {
	model := open(t, write(t), llama.Options{})
	for _, tokens := range [][]int{nil, {-1}, {0, model.Vocab()}} {
		if _, err := model.Logits(tokens); err == nil {
			t.Errorf("tokens %v: no error", tokens)
		}
	}
	for range 2 {
		if err := model.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := model.Logits([]int{1}); err == nil {
		t.Error("a closed model computes")
	}
}

// A trace sees operands and results: the router's logits, computed again from what went
// in, and the logits of the model as without it.
func TestTrace(t *testing.T) {
	spec := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4})
	model := open(t, write(t), llama.Options{})
	tokens := []int{1, 2, 3, 250, 7}
	const router = "blk.2.ffn_gate_inp.weight"
	raw, err := spec.Bytes(router)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	got, err := model.Trace(tokens, func(n llama.Node) bool {
		in, ok := n.Input(0)
		return ok && in.Name() == router
	}, func(n llama.Node) {
		calls++
		if n.Name() != "ffn_moe_logits-2" || n.Shape() != [4]int64{32, 5, 1, 1} {
			t.Errorf("%s of shape %v", n.Name(), n.Shape())
		}
		input, _ := n.Input(1)
		x, err := input.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		logits, err := n.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Int32s(); err == nil {
			t.Error("F32 read as I32")
		}
		hidden := len(x) / len(tokens)
		for i, got := range logits {
			var want float64
			for j := range hidden {
				w := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(i%32*hidden+j):]))
				want += float64(w) * float64(x[i/32*hidden+j])
			}
			if math.Abs(want-float64(got)) > 1e-4 {
				t.Fatalf("logit %d is %g, want %g", i, got, want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
	want, err := model.Logits(tokens)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("position %d: other logits than without a trace", i)
		}
	}
}
