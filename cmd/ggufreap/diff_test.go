package main

import (
	"encoding/json"
	"os"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// writePin pins a model into a file, as the library writes it.
func writePin(t *testing.T, name, artifact string) {
	t.Helper()
	m := openModel(t, artifact)
	experts, _ := reap.FindExperts(m)
	pin, err := manifest.BuildPin(t.Context(), m, manifest.BuildOptions{Slabs: routedSlabs(experts)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := manifest.EncodePin(f, name, pin); err != nil {
		t.Fatal(err)
	}
}

func TestDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	named := func(name string, edit func(s *gguftest.Spec)) gguftest.Spec {
		s := smallMoE().Clone()
		s.Name = name
		edit(&s)
		return s
	}
	change := func(s *gguftest.Spec, tensor string, at int) {
		data, err := s.Bytes(tensor)
		if err != nil {
			t.Fatal(err)
		}
		data[at] ^= 1
		s.Tensor(tensor).Data = data
	}
	write(t, smallMoE(), gguf.Split{})
	write(t, smallMoE(), gguf.Split{Shards: 3})
	write(t, named("edited", func(s *gguftest.Spec) {
		s.Metadata.Set("general.name", gguf.TextValue("another \x1b name"))
		s.Metadata.Set("kimi-k3.expert_used_count", gguf.Int32Value(2))
		s.Metadata.Set("general.license", gguf.TextValue("mit"))
		s.Metadata = s.Metadata.Without(func(key string) bool { return key == "general.type" })
	}), gguf.Split{})
	write(t, named("changed", func(s *gguftest.Spec) {
		const slab = 32 * 34 // bytes of one expert: 32 rows of one block
		change(s, "blk.1.ffn_up_exps.weight", 5*slab+7)
		change(s, "output.weight", 0)
		s.Tensor("blk.0.attn_norm.weight").Name = "blk.0.renamed.weight"
		s.Tensor("blk.0.ffn_norm.weight").Type = gguf.F16
		s.Tensor("token_embd.weight").Shape = []uint64{384, 32}
	}), gguf.Split{})
	write(t, named("reordered", func(s *gguftest.Spec) { s.Tensors[0], s.Tensors[1] = s.Tensors[1], s.Tensors[0] }), gguf.Split{})
	broken := write(t, named("broken", func(*gguftest.Spec) {}), gguf.Split{})[0]
	if err := os.Truncate(broken, 100_000); err != nil {
		t.Fatal(err)
	}
	succeed(t, "prune", "--keep", "4", "--criterion", "seeded-random", "-o", "pruned", "small.gguf")
	writePin(t, "small.pin.json.zst", "small.gguf")
	writePin(t, "edited.pin.json", "edited.gguf")
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"same", []string{"small.gguf", "small-00002-of-00003.gguf"}},
		{"metadata", []string{"small.gguf", "edited.gguf"}},
		{"metadata-json", []string{"--json", "small.gguf", "edited.gguf"}},
		{"tensors", []string{"small.gguf", "changed.gguf"}},
		{"tensors-json", []string{"--json", "small.gguf", "changed.gguf"}},
		{"order", []string{"small.gguf", "reordered.gguf"}},
		{"pruned", []string{"small.gguf", "pruned"}},
		{"pin-same", []string{"small.pin.json.zst", "small-00001-of-00003.gguf"}},
		{"pin-changed", []string{"changed.gguf", "small.pin.json.zst"}},
		{"pins", []string{"small.pin.json.zst", "edited.pin.json"}},
		{"pins-json", []string{"--json", "small.pin.json.zst", "edited.pin.json"}},
		{"one", []string{"small.gguf"}},
		{"unsound", []string{"small.gguf", "broken.gguf"}},
		{"no-pin", []string{"small.gguf", "absent.json"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"diff"}, tc.args...)
			golden(t, "diff/"+tc.name+".txt", transcript(ggufreap(t, args...), args...))
		})
	}
}

// TestDiffIsSymmetric wants the verdict not to depend on which artifact comes first.
func TestDiffIsSymmetric(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	other := smallMoE()
	other.Name, other.Seed = "other", 2
	write(t, other, gguf.Split{})
	type verdict struct {
		SameWeights  bool `json:"same_weights"`
		SameMetadata bool `json:"same_metadata"`
		Tensors      []struct{ Change string }
	}
	var verdicts [2]verdict
	for i, args := range [][]string{{"small.gguf", "other.gguf"}, {"other.gguf", "small.gguf"}} {
		r := ggufreap(t, append([]string{"diff", "--json"}, args...)...)
		if r.code != exitDiffers {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		if err := json.Unmarshal([]byte(r.stdout), &verdicts[i]); err != nil {
			t.Fatal(err)
		}
	}
	a, b := verdicts[0], verdicts[1]
	if a.SameWeights || !a.SameMetadata || b.SameWeights || !b.SameMetadata || len(a.Tensors) != len(b.Tensors) || len(a.Tensors) == 0 {
		t.Errorf("%+v and %+v", a, b)
	}
}
