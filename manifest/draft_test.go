package manifest

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

func TestDraft(t *testing.T) {
	for _, shards := range []int{1, 3, 7} {
		dir, pin := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, shards)
		m := modeltest.Open(t, dir)
		checkTensors(t, pin, m)
		if read := mustPin(t, m, BuildOptions{Slabs: gguftest.MixedSlabs}); !reflect.DeepEqual(read, pin) {
			t.Errorf("read again %+v, want %+v", read, pin)
		}
	}
}

// TestDraftOfAShardTakenAgain gives up each shard in the middle of its first tensor, and
// takes it from the start.
func TestDraftOfAShardTakenAgain(t *testing.T) {
	_, want := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
	layout, err := gguf.NewLayout(modeltest.Contents(1), gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := NewDraft("out", layout, gguftest.MixedSlabs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sums []Sum
	for i, shard := range layout.Shards {
		draft.Shard(i, nil).Tensor(0).Write([]byte("abc"))
		whole := draft.Shard(i, nil)
		if err := shard.Write(t.Context(), io.Discard, nil, whole.Tensor); err != nil {
			t.Fatal(err)
		}
		if err := whole.End(); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, want.Files[i].SHA256)
	}
	if _, err := draft.Finish(sums[1:]); err == nil {
		t.Error("a pin without the sum of a shard")
	}
	if pin, err := draft.Finish(sums); err != nil || !reflect.DeepEqual(pin, want) {
		t.Errorf("got %+v, %v, want %+v", pin, err, want)
	}
}

// TestDraftWantsWholeTensors ends a shard, and begins a tensor, before the one before is whole.
func TestDraftWantsWholeTensors(t *testing.T) {
	layout, err := gguf.NewLayout(modeltest.Contents(1), gguf.Split{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := NewDraft("out", layout, gguftest.MixedSlabs, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `tensor "token_embd.weight": got 3 bytes of a tensor that has 462`
	for what, next := range map[string]func(s *ShardDraft){
		"the end":        func(*ShardDraft) {},
		"another tensor": func(s *ShardDraft) { s.Tensor(1) },
	} {
		shard := draft.Shard(0, nil)
		shard.Tensor(0).Write([]byte("abc"))
		next(shard)
		if err := shard.End(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
}

func TestDraftChecksSlabs(t *testing.T) {
	layout, err := gguf.NewLayout(modeltest.Contents(1), gguf.Split{Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, slabs := range map[string]SlabCount{
		"count":  func(name string) int { return gguftest.MixedSlabs(name) / 2 },
		"scalar": func(name string) int { return map[string]int{"blk.0.scale": 1}[name] },
		"less":   func(string) int { return -1 },
		"empty":  func(name string) int { return map[string]int{"blk.0.empty": 3}[name] },
	} {
		if _, err := NewDraft("out", layout, slabs, nil); err == nil || !strings.Contains(err.Error(), "tensor ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
