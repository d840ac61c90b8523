package gguftest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"ggufreap/gguf"
)

func TestK3IsTheSameEverywhere(t *testing.T) {
	file, err := K3(K3Options{}).File()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	if got, want := hex.EncodeToString(sum[:]), "f42f93292fe6a86a5955081c4c8481bb3d72c925464d2e62b7c9fd2cbc04fbd6"; got != want {
		t.Errorf("fixture has sha256 %s, want %s: every golden file that is made of it changes too", got, want)
	}
}

func TestK3IsSound(t *testing.T) {
	model, err := K3(K3Options{}).Model(gguf.Split{Shards: K3Shards})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range model.Problems {
		t.Error(p)
	}
	seen := map[gguf.ValueType]bool{}
	for _, v := range model.Metadata().All() {
		seen[v.Type()] = true
	}
	for typ := gguf.Uint8; typ <= gguf.Float64; typ++ {
		if !seen[typ] {
			t.Errorf("no metadata value of type %s", typ)
		}
	}
}

// A model on disk, one made as it is read and the bytes of a single file must be one and
// the same.
func TestK3OnDiskAndInMemoryAgree(t *testing.T) {
	spec := K3(K3Options{Experts: 24, Layers: 4})
	for _, split := range []gguf.Split{{}, {Shards: K3Shards}} {
		paths, err := spec.Write(t.TempDir(), split)
		if err != nil {
			t.Fatal(err)
		}
		layout, err := spec.Layout(split)
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range paths {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := newShardReader(layout.Shards[i])
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			for off := 0; off < len(got); off += 1000 { // many edges of tensors and paddings
				if _, err := r.ReadAt(got[off:min(off+1000, len(got))], int64(off)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: made as it is read it is another file", path)
			}
			if n, err := r.ReadAt(make([]byte, 8), int64(len(want)-3)); n != 3 || err == nil {
				t.Errorf("%s: read beyond the end gives %d bytes, error %v", path, n, err)
			}
		}
		if len(paths) > 1 {
			continue
		}
		file, err := spec.File()
		if err != nil {
			t.Fatal(err)
		}
		if onDisk, err := os.ReadFile(paths[0]); err != nil || !bytes.Equal(file, onDisk) {
			t.Errorf("File and Write differ (%v)", err)
		}
	}
}

func TestK3SeedAndNameDecideTheBytes(t *testing.T) {
	const name = "blk.1.ffn_up_exps.weight"
	data := func(o K3Options, name string) []byte {
		o.Experts = 20
		b, err := K3(o).Bytes(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := data(K3Options{}, name)
	if !bytes.Equal(first, data(K3Options{Layers: 3}, name)) {
		t.Error("more layers change the bytes of one")
	}
	if bytes.Equal(first, data(K3Options{Seed: 2}, name)) {
		t.Error("two seeds give the same bytes")
	}
	if bytes.Equal(first, data(K3Options{}, "blk.2.ffn_up_exps.weight")) {
		t.Error("two layers have the same bytes")
	}
}

// Numbers published for a real nine-shard release with IQ1_S experts of width 1536, and
// what is left of it when 568 of 896 experts stay.
func TestK3RealSizes(t *testing.T) {
	paths, err := K3Real(1536, gguf.IQ1_S).WriteSparse(t.TempDir(), gguf.Split{Shards: K3Shards})
	if err != nil {
		t.Fatal(err)
	}
	model, err := gguf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	if err := model.Err(); err != nil {
		t.Fatal(err)
	}
	if got := len(model.Tensors()); got != 2573 {
		t.Errorf("%d tensors, want 2573", got)
	}
	if got, want := model.TensorBytes(), int64(330_160_710_016); got != want {
		t.Errorf("%d bytes of data, want %d", got, want)
	}
	var pruned int64
	for _, tensor := range model.Tensors() {
		size := tensor.Size
		if n := len(tensor.Shape); tensor.Shape[n-1] == 896 {
			size = size / 896 * 568
		}
		pruned += size
	}
	if want := int64(231_959_677_440); pruned != want {
		t.Errorf("%d bytes of data with 568 experts, want %d", pruned, want)
	}
}
