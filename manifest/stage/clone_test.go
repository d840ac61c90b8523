package stage

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestShardsThatStayTheSame makes two of three shards of files that are there, on a disk that
// can clone and on one that cannot, with a fault at each operation.
func TestShardsThatStayTheSame(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	dir := t.TempDir()
	r.Same = map[int]string{}
	for _, i := range []int{1, 2} {
		r.Same[i] = filepath.Join(dir, releaseNames[i])
		if err := os.WriteFile(r.Same[i], []byte(want[releaseNames[i]]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	count := newTally(t, "clones")
	for _, clones := range []bool{false, true} {
		d := &memDisk{clones: clones}
		if err := runOn(d, r, Options{Workers: 1}); err != nil || !maps.Equal(d.files(), want) {
			t.Fatalf("clones %t: %v", clones, err)
		}
		if copied := d.wrote == r.Layout.Bytes(); copied == clones {
			t.Errorf("clones %t: wrote %d bytes of shards", clones, d.wrote)
		}
		for failAt := 1; failAt <= d.count; failAt++ {
			d := &memDisk{clones: clones, dieAt: failAt}
			if runOn(d, r, Options{Workers: 1}) == nil {
				t.Fatalf("operation %d was never reached", failAt)
			}
			count.kills++
			d.restart()
			count.finish(t, d, r, want, "after a kill")
		}
	}
	if err := os.WriteFile(r.Same[1], []byte("another"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := runOn(&memDisk{clones: true}, r, Options{}); err == nil {
		t.Error("a file of another size was taken")
	}
}

// TestRoomForSharedBlocks asks for no room for shards that take none.
func TestRoomForSharedBlocks(t *testing.T) {
	r := testRelease(t, 3)
	r.Same = map[int]string{1: "a", 2: "b"}
	for _, clones := range []bool{false, true} {
		d := &memDisk{clones: clones, size: r.Layout.Shards[0].Size + 64<<10}
		d.size = min(d.size, r.Layout.Bytes()-1)
		f, err := openFine(d, r, Options{})
		var space *SpaceError
		if errors.As(err, &space) == clones {
			t.Errorf("clones %t: got %v", clones, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// TestResumeKnowsEmptyTensors goes on with a shard that ends in a tensor without data.
func TestResumeKnowsEmptyTensors(t *testing.T) {
	r := testRelease(t, 1)
	r.Layout = testLayout(t, gguftest.Mixed(1), 1, func(c *gguf.Contents) {
		c.Views = append(c.Views, gguf.View{Name: "empty", Type: gguf.I8, Shape: []uint64{0}})
	})
	d := &memDisk{}
	f, err := openFine(d, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.WriteShards(t.Context())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if f, err = openFine(d, r, Options{Resume: true}); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := f.WriteShards(t.Context())
	if i := slices.IndexFunc(want.Tensors, func(t manifest.Tensor) bool { return t.Name == "empty" }); err != nil || i < 0 || want.Tensors[i].BLAKE3 == (manifest.Sum{}) {
		t.Fatal(i, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the pin is another one")
	}
}
