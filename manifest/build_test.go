package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

func mustPin(t testing.TB, m *gguf.Model, o BuildOptions) *Pin {
	t.Helper()
	pin, err := BuildPin(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

func pinContents(t *testing.T, c gguf.Contents, s gguf.Split, slabs SlabCount) *Pin {
	t.Helper()
	return mustPin(t, modeltest.New(t, c, s), BuildOptions{Slabs: slabs})
}

func TestBuildPin(t *testing.T) {
	for _, shards := range []int{1, 3, 7} {
		m := modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: shards})
		repo := "someone/something"
		pin := mustPin(t, m, BuildOptions{Slabs: gguftest.MixedSlabs, Declared: Declared{Repo: &repo}})
		if pin.Declared.Repo != &repo || pin.Artifact.Shards != shards || pin.Artifact.Architecture != "test" || pin.Artifact.Name != "m" {
			t.Errorf("pin is %+v, %+v", pin.Artifact, pin.Declared)
		}
		checkTensors(t, pin, m)
		for i, path := range m.Paths() {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if pin.Files[i].SHA256 != sha256.Sum256(data) {
				t.Errorf("%s: wrong digest", path)
			}
		}
	}
}

// checkTensors compares a pin with whole reads of the tensors.
func checkTensors(t *testing.T, pin *Pin, m *gguf.Model) {
	t.Helper()
	if len(pin.Tensors) != len(m.Tensors()) {
		t.Fatalf("pin has %d tensors, want %d", len(pin.Tensors), len(m.Tensors()))
	}
	for i, want := range m.Tensors() {
		got := pin.Tensors[i]
		data, err := io.ReadAll(want.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || got.Type != want.Type.String() || got.Size != want.Size || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("tensor %d is pinned as %+v, want %+v", i, got, want)
		}
		if got.BLAKE3 != blake3.Sum256(data) {
			t.Errorf("%s: wrong digest", got.Name)
		}
		if (got.Slabs != nil) != (gguftest.MixedSlabs(got.Name) > 0) {
			t.Errorf("%s: slabs are %v", got.Name, got.Slabs)
		}
		for s := range gguftest.MixedSlabs(got.Name) {
			slab := data[s*len(data)/gguftest.MixedExperts : (s+1)*len(data)/gguftest.MixedExperts]
			want := slab
			if len(slab) > 32 {
				sum := blake3.Sum256(slab)
				want = sum[:]
			}
			if !bytes.Equal(got.Slabs.At(s), want) {
				t.Errorf("%s: wrong digest of slab %d", got.Name, s)
			}
		}
	}
}

// TestWeightsDigestRestsOnWeightsOnly is the definition's promise: what does not change
// a weight does not change the digest, and what does, does.
func TestWeightsDigestRestsOnWeightsOnly(t *testing.T) {
	digest := func(c gguf.Contents, s gguf.Split, o BuildOptions) Digest {
		t.Helper()
		return mustPin(t, modeltest.New(t, c, s), o).WeightsDigest
	}
	want := digest(modeltest.Contents(1), gguf.Split{}, BuildOptions{})

	reordered, aligned, edited := modeltest.Contents(1), modeltest.Contents(1), modeltest.Contents(1)
	slices.Reverse(reordered.Views)
	aligned.Metadata.Set(gguf.KeyAlignment, gguf.Uint32Value(256))
	edited.Metadata.Set("tokenizer.chat_template", gguf.TextValue("another"))
	for name, got := range map[string]Digest{
		"three shards": digest(modeltest.Contents(1), gguf.Split{Shards: 3}, BuildOptions{}),
		"seven shards": digest(modeltest.Contents(1), gguf.Split{Shards: 7}, BuildOptions{}),
		"with slabs":   digest(modeltest.Contents(1), gguf.Split{Shards: 2}, BuildOptions{Slabs: gguftest.MixedSlabs}),
		"one worker":   digest(modeltest.Contents(1), gguf.Split{Shards: 7}, BuildOptions{Workers: 1}),
		"reordered":    digest(reordered, gguf.Split{Shards: 2}, BuildOptions{}),
		"alignment":    digest(aligned, gguf.Split{}, BuildOptions{}),
		"metadata":     digest(edited, gguf.Split{}, BuildOptions{}),
	} {
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}

	for i := range modeltest.Contents(1).Views {
		c := modeltest.Contents(1)
		v := &c.Views[i]
		if v.Size() == 0 {
			continue
		}
		data := make([]byte, v.Size())
		v.Extents[0].Source.ReadAt(data, 0)
		data[len(data)-1] ^= 1
		v.Extents[0].Source = bytes.NewReader(data)
		if digest(c, gguf.Split{}, BuildOptions{}) == want {
			t.Errorf("a flipped bit in %s gives the same digest", v.Name)
		}
	}
	shape, typ, name := modeltest.Contents(1), modeltest.Contents(1), modeltest.Contents(1)
	modeltest.View(shape, "token_embd.weight").Shape = []uint64{7, 33}
	modeltest.View(typ, "token_embd.weight").Type = gguf.BF16
	modeltest.View(name, "token_embd.weight").Name = "tok"
	for what, c := range map[string]gguf.Contents{"shape": shape, "type": typ, "name": name} {
		if digest(c, gguf.Split{}, BuildOptions{}) == want {
			t.Errorf("another %s gives the same digest", what)
		}
	}
}

func TestBuildPinRefusesUnsoundModels(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	m, err := gguf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := BuildPin(context.Background(), m, BuildOptions{}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v, want an error for the missing shard", err)
	}
}

func TestBuildPinNoticesChange(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{})
	_, err := BuildPin(context.Background(), m, BuildOptions{Progress: func(done, total int64) {
		if done == total {
			if err := os.Truncate(m.Paths()[0], total+1); err != nil {
				t.Error(err)
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("got %v, want an error for the changed file", err)
	}
}

func TestBuildPinCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3})
	if _, err := BuildPin(ctx, m, BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestBuildPinNamesThePlaceOfAReadError(t *testing.T) {
	for cause, want := range map[error]error{modeltest.ErrInjected: modeltest.ErrInjected, io.EOF: io.ErrUnexpectedEOF, nil: io.ErrUnexpectedEOF} {
		m := modeltest.Broken(t, modeltest.Contents(1), 1001, cause)
		place := fmt.Sprintf("disk/m.gguf: reading at byte %d of %d: ", m.Files[0].DataOffset+1001, m.FileBytes())
		_, err := BuildPin(context.Background(), m, BuildOptions{})
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("got %v, want %s%v", err, place, want)
		}
	}
}
