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
)

func mustPin(t testing.TB, m *gguf.Model, o BuildOptions) *Pin {
	t.Helper()
	pin, err := BuildPin(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

func TestBuildPin(t *testing.T) {
	for _, shards := range []int{1, 3, 7} {
		m := newModel(t, testContents(1), gguf.Split{Shards: shards})
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
		return mustPin(t, newModel(t, c, s), o).WeightsDigest
	}
	want := digest(testContents(1), gguf.Split{}, BuildOptions{})

	reordered, aligned, edited := testContents(1), testContents(1), testContents(1)
	slices.Reverse(reordered.Views)
	aligned.Metadata.Set(gguf.KeyAlignment, gguf.Uint32Value(256))
	edited.Metadata.Set("tokenizer.chat_template", gguf.TextValue("another"))
	for name, got := range map[string]Digest{
		"three shards": digest(testContents(1), gguf.Split{Shards: 3}, BuildOptions{}),
		"seven shards": digest(testContents(1), gguf.Split{Shards: 7}, BuildOptions{}),
		"with slabs":   digest(testContents(1), gguf.Split{Shards: 2}, BuildOptions{Slabs: gguftest.MixedSlabs}),
		"one worker":   digest(testContents(1), gguf.Split{Shards: 7}, BuildOptions{Workers: 1}),
		"reordered":    digest(reordered, gguf.Split{Shards: 2}, BuildOptions{}),
		"alignment":    digest(aligned, gguf.Split{}, BuildOptions{}),
		"metadata":     digest(edited, gguf.Split{}, BuildOptions{}),
	} {
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}

	for i := range testContents(1).Views {
		c := testContents(1)
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
	shape, typ, name := testContents(1), testContents(1), testContents(1)
	viewNamed(shape, "token_embd.weight").Shape = []uint64{7, 33}
	viewNamed(typ, "token_embd.weight").Type = gguf.BF16
	viewNamed(name, "token_embd.weight").Name = "tok"
	for what, c := range map[string]gguf.Contents{"shape": shape, "type": typ, "name": name} {
		if digest(c, gguf.Split{}, BuildOptions{}) == want {
			t.Errorf("another %s gives the same digest", what)
		}
	}
}

func TestBuildPinRefusesUnsoundModels(t *testing.T) {
	paths := writeModel(t, t.TempDir(), "m", testContents(1), gguf.Split{Shards: 3})
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
	m := newModel(t, testContents(1), gguf.Split{})
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
	m := newModel(t, testContents(1), gguf.Split{Shards: 3})
	if _, err := BuildPin(ctx, m, BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// brokenAt is a file whose bytes from some offset on cannot be read.
type brokenAt struct {
	io.ReaderAt
	offset int64
	err    error
}

func (b brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.offset {
		n, _ := b.ReaderAt.ReadAt(p[:max(b.offset-off, 0)], off)
		return n, b.err
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestBuildPinNamesThePlaceOfAReadError(t *testing.T) {
	data, err := os.ReadFile(writeModel(t, t.TempDir(), "m", testContents(1), gguf.Split{})[0])
	if err != nil {
		t.Fatal(err)
	}
	for cause, want := range map[error]error{errInjected: errInjected, io.EOF: io.ErrUnexpectedEOF, nil: io.ErrUnexpectedEOF} {
		broken := &brokenAt{bytes.NewReader(data), int64(len(data)), cause}
		f, err := gguf.NewFile("disk/m.gguf", broken, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := gguf.NewModel("m", f)
		if err != nil {
			t.Fatal(err)
		}
		broken.offset = f.DataOffset + 1001
		place := fmt.Sprintf("disk/m.gguf: reading at byte %d of %d: ", broken.offset, len(data))
		_, err = BuildPin(context.Background(), m, BuildOptions{})
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("got %v, want %s%v", err, place, want)
		}
	}
}
