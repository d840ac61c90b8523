package manifest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/modeltest"
)

// TestDigestsAreOfWhatIsWritten prunes a model whose bytes are others whenever they are read
// again, in any number of lanes, with experts in any order. The digests that a draft has of
// experts are those of the bytes that were written, wherever they were taken.
func TestDigestsAreOfWhatIsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	taken := map[bool]int{} // tensors, by whether the source's digests count
	for range 60 {
		m, readers := countedModel(t, modeltest.MoE(), gguf.Split{Shards: 1 + rng.IntN(4)})
		for _, r := range readers {
			r.fickle = true
		}
		recorder, err := NewRecorder(t.Context(), m, BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts)})
		if err != nil {
			t.Fatal(err)
		}
		keep := keepSome(rng, m)
		c := m.Contents()
		c.Views = keptViews(m, keep)
		layout, err := gguf.NewLayout(c, gguf.Split{Shards: 1 + rng.IntN(6)})
		if err != nil {
			t.Fatal(err)
		}
		lanes := recorder.Lanes(layout, 1+rng.IntN(4))
		draft, err := NewDraft("out", layout, func(name string) int { return len(keep[name]) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		next := 0
		for _, n := range lanes {
			shards := []int{}
			for range n {
				shards, next = append(shards, next), next+1
			}
			group.Go(func() {
				for _, i := range shards {
					known := writeShard(t, draft, layout.Shards[i], i, func() {})
					mu.Lock()
					taken[true] += known
					taken[false] += len(keep)
					mu.Unlock()
				}
			})
		}
		group.Wait()
	}
	if taken[true]*10 < taken[false] {
		t.Errorf("of %d tensors only %d have the digests that were taken of the source", taken[false], taken[true])
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestAnotherLaneInBetween has another lane pass by while a tensor is being written: the rest
// of it is read again.
func TestAnotherLaneInBetween(t *testing.T) {
	for at := range 200 {
		m, readers := countedModel(t, modeltest.MoE(), gguf.Split{})
		readers[0].fickle = true
		recorder, err := NewRecorder(t.Context(), m, BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts)})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := gguf.NewLayout(m.Contents(), gguf.Split{Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		if lanes := recorder.Lanes(layout, 2); len(lanes) != 2 {
			t.Fatalf("got %d lanes", len(lanes))
		}
		draft, err := NewDraft("out", layout, modeltest.MoESlabs(modeltest.MoEExperts), nil)
		if err != nil {
			t.Fatal(err)
		}
		last := layout.Shards[1].Views
		e := last[len(last)-1].Extents[0]
		writes := 0
		writeShard(t, draft, layout.Shards[0], 0, func() {
			if writes++; writes == at {
				if _, err := e.Source.ReadAt(make([]byte, 1), e.Offset); err != nil {
					t.Error(err)
				}
			}
		})
		if writes < at {
			return
		}
	}
	t.Error("the shard takes more writes")
}

// keepSome draws which experts each tensor that has some keeps, mostly in ascending order.
func keepSome(rng *rand.Rand, m *gguf.Model) map[string][]int {
	keep := map[string][]int{}
	for _, tensor := range m.Tensors() {
		if modeltest.MoESlabs(1)(tensor.Name) == 0 {
			continue
		}
		list := rng.Perm(modeltest.MoEExperts)[:1+rng.IntN(modeltest.MoEExperts)]
		if rng.IntN(4) > 0 {
			slices.Sort(list)
		}
		keep[tensor.Name] = list
	}
	return keep
}

// writeShard writes a shard, fails when a digest is not that of the bytes, and counts the
// tensors whose experts have the digests that were taken of the source. It calls meanwhile
// before each write.
func writeShard(t *testing.T, draft *Draft, layout *gguf.ShardLayout, i int, meanwhile func()) (known int) {
	var file bytes.Buffer
	shard := draft.Shard(i, nil)
	listen := func(n int) io.Writer {
		w := shard.Copy(n)
		if shard.listener.hasher.known != nil {
			known++
		}
		return w
	}
	out := writerFunc(func(p []byte) (int, error) {
		meanwhile()
		return file.Write(p)
	})
	if err := layout.Write(t.Context(), out, make([]byte, 50), listen); err != nil {
		t.Error(err)
	}
	if err := shard.End(); err != nil {
		t.Error(err)
	}
	for n, tensor := range draft.Tensors(i) {
		data := file.Bytes()[layout.DataOffset+layout.Offsets[n]:][:tensor.Size]
		if tensor.BLAKE3 != blake3.Sum256(data) {
			t.Errorf("the digest of %s is not that of its bytes", tensor.Name)
		}
		if tensor.Slabs == nil || tensor.Slabs.BLAKE3 == nil {
			continue
		}
		for slab := range slices.Chunk(data, int(tensor.Size)/tensor.Slabs.Count) {
			var want Sum
			want, tensor.Slabs.BLAKE3 = Sum(tensor.Slabs.BLAKE3), tensor.Slabs.BLAKE3[len(want):]
			if want != blake3.Sum256(slab) {
				t.Errorf("a digest of an expert of %s is not that of its bytes", tensor.Name)
			}
		}
	}
	return known
}
