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
	for clones, want := range map[bool]int64{false: r.Layout.Bytes(), true: r.Layout.Shards[0].Size} {
		f := &Folder{release: r, dir: memFolder{&memDisk{clones: clones}}, journal: &journal{}}
		if got := f.unwritten(); got != want {
			t.Errorf("clones %t: %d bytes are still to be written, want %d", clones, got, want)
		}
	}
	if err := os.WriteFile(r.Same[1], []byte("another"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := runOn(&memDisk{clones: true}, r, Options{}); err == nil {
		t.Error("a file of another size was taken")
	}
}

// TestShardsThatAreLinks makes two of three shards other names of files that are there, with a
// fault and a kill at each operation: they are never written, and need no room.
func TestShardsThatAreLinks(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	dir := t.TempDir()
	r.Same, r.Link = map[int]string{}, true
	for _, i := range []int{1, 2} {
		r.Same[i] = filepath.Join(dir, "source", releaseNames[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(r.Same[i]), 0o777), os.WriteFile(r.Same[i], []byte(want[releaseNames[i]]), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	count := newTally(t, "links")
	asking := &Folder{release: r, dir: memFolder{&memDisk{}}, journal: &journal{}}
	if need, err := asking.need(1); err != nil || need != r.Layout.Shards[0].Size {
		t.Errorf("%d bytes are needed, want those of one shard: %v", need, err)
	}
	d := &memDisk{}
	if err := runOn(d, r, Options{Workers: 1}); err != nil || !maps.Equal(d.files(), want) {
		t.Fatal(err)
	}
	if d.wrote != r.Layout.Shards[0].Size {
		t.Errorf("wrote %d bytes of shards, want those of one: %d", d.wrote, r.Layout.Shards[0].Size)
	}
	for at := 1; at <= d.count; at++ {
		killed := &memDisk{dieAt: at}
		if runOn(killed, r, Options{Workers: 1}) == nil {
			t.Fatalf("operation %d was never reached", at)
		}
		count.kills++
		killed.restart()
		count.finish(t, killed, r, want, "after a kill")
		failing := &memDisk{failAt: at}
		runOn(failing, r, Options{Workers: 1})
		failing.failAt = 0
		count.finish(t, failing, r, want, "after a fault")
	}
	copying := r
	copying.Link = false
	for at := 1; ; at++ {
		killed := &memDisk{dieAt: at}
		if runOn(killed, copying, Options{Workers: 1}) == nil {
			break
		}
		count.kills++
		killed.restart()
		count.finish(t, killed, r, want, "linked after it was copied in part")
	}
	out := filepath.Join(dir, "out")
	for range 2 { // the second finds it finished
		f, err := Open(out, r, Options{Sources: []string{r.Same[1], r.Same[2]}, Resume: true})
		if errors.Is(err, ErrFinished) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeAll(f); err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range r.Same {
		was, err := os.Stat(path)
		is, err2 := os.Stat(filepath.Join(out, releaseNames[i]))
		if err != nil || err2 != nil || !os.SameFile(was, is) {
			t.Errorf("shard %d is no other name of its source: %v, %v", i, err, err2)
		}
	}
	r.Link = false
	if _, err := Open(out, r, Options{Sources: []string{r.Same[1]}, Resume: true, Force: true}); err == nil {
		t.Error("a folder that holds the source was taken to be written to")
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
