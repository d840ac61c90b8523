package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// TestRealSize runs what reads headers only on sparse files of the real model's size.
// With experts of width 1536 the bytes of data are those of a published release, and of
// its derivative that keeps 568 of 896 experts: 328 dropped experts in 92 layers have
// 3,225,600 bytes in the projections, 28,672 in the router and 4 in the bias each. With
// width 3072 an expert has twice the projections.
func TestRealSize(t *testing.T) {
	for _, tc := range []struct {
		width, shards int
		before, after int64
	}{
		{1536, 9, 330_160_710_016, 231_959_677_440},
		{3072, 14, 596_053_369_216, 596_053_369_216 - 92*328*(2*3_225_600+28_672+4)},
	} {
		t.Run(strconv.Itoa(tc.width), func(t *testing.T) {
			files, err := gguftest.K3Real(tc.width, gguf.IQ1_S).WriteSparse(t.TempDir(), gguf.Split{Shards: tc.shards})
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"inspect", "--json"},
				{"prune", "--keep", "568", "--criterion", "seeded-random", "--shards", "14", "--dry-run", "--json"},
				{"reshard", "--shards", "40", "--dry-run", "--json"},
			} {
				var got struct {
					TensorBytes int64 `json:"tensor_bytes"`
					TensorCount int   `json:"tensor_count"`
					FileBytes   int64 `json:"file_bytes"`
					Shards      []struct{ Size int64 }
				}
				if err := json.Unmarshal([]byte(succeed(t, append(args, files[0])...)), &got); err != nil {
					t.Fatal(err)
				}
				want := tc.before
				if args[0] == "prune" {
					want = tc.after
				}
				if got.TensorBytes != want {
					t.Errorf("%s: %d bytes of data, want %d", args[0], got.TensorBytes, want)
				}
				if args[0] == "inspect" && got.TensorCount != 2573 {
					t.Errorf("%d tensors, want 2573", got.TensorCount)
				}
				var sum int64
				for _, s := range got.Shards {
					sum += s.Size
				}
				if sum != got.FileBytes || got.FileBytes <= want {
					t.Errorf("%s: files of %d bytes together, %d are said, %d are data", args[0], sum, got.FileBytes, want)
				}
			}
		})
	}
}

// TestPruneBeyond4GiB prunes one sparse file whose last routed tensor lies between 3 and
// 5 GiB. Each slab of it begins and ends with its number.
func TestPruneBeyond4GiB(t *testing.T) {
	const name = "blk.1.ffn_down_exps.weight"
	spec := gguftest.K3(gguftest.K3Options{Name: "large", Layers: 2, Experts: 64, Used: 2, Latent: 12288, Width: 11264, GateUp: gguf.IQ1_S})
	files, err := spec.WriteSparse(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	m := openModel(t, files[0])
	tensor := m.Tensor(name)
	slab := tensor.Size / 64
	if tensor.DataOffset() > 4<<30 || tensor.DataOffset()+62*slab < 4<<30 {
		t.Fatalf("the tensor begins at %d", tensor.DataOffset())
	}
	f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(64) {
		mark := binary.LittleEndian.AppendUint64(nil, uint64(i)+1)
		for _, at := range []int64{i * slab, (i+1)*slab - 8} {
			if _, err := f.WriteAt(mark, tensor.DataOffset()+at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	keep := []int{0, 31, 63}
	plan, dir := filepath.Join(t.TempDir(), "plan.json"), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(plan, fmt.Appendf(nil, `{"layers":{"1":{"keep":[%d,%d,%d]}}}`, keep[0], keep[1], keep[2]), 0o666); err != nil {
		t.Fatal(err)
	}
	succeed(t, "prune", "--plan", plan, "-o", dir, files[0])
	var got []int
	r := openModel(t, dir).Tensor(name).Reader()
	for i := range keep {
		for _, at := range []int64{int64(i) * slab, int64(i+1)*slab - 8} {
			mark := make([]byte, 8)
			if _, err := r.ReadAt(mark, at); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			got = append(got, int(binary.LittleEndian.Uint64(mark))-1)
		}
	}
	if want := []int{0, 0, 31, 31, 63, 63}; !slices.Equal(got, want) {
		t.Errorf("slabs begin and end with %v, want %v", got, want)
	}
}
