package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// with returns a model to which keys were added, or set anew.
func with(s gguftest.Spec, set func(md *gguf.Metadata)) gguftest.Spec {
	s.Metadata = s.Metadata.Clone()
	set(s.Metadata)
	return s
}

// withoutFirst writes a split model and removes its first shard.
func withoutFirst(t *testing.T) {
	write(t, smallMoE(), gguf.Split{Shards: 3})
	if err := os.Remove("small-00001-of-00003.gguf"); err != nil {
		t.Fatal(err)
	}
}

// TestInspectStatesOnlyWhatIsThere looks at models that lack something, or have it in a
// form that says nothing.
func TestInspectStatesOnlyWhatIsThere(t *testing.T) {
	single := func(s gguftest.Spec) func(*testing.T) {
		return func(t *testing.T) { write(t, s, gguf.Split{}) }
	}
	moe := func(key string, v gguf.Value) func(*testing.T) {
		return single(with(smallMoE(), func(md *gguf.Metadata) { md.Set(key, v) }))
	}
	longName := strings.Repeat("\x01", 1<<20)
	for _, tc := range []struct {
		name  string
		make  func(t *testing.T)
		args  []string
		code  int
		want  []string
		never []string
	}{
		{"no first shard", withoutFirst, []string{"."}, exitFailed,
			[]string{"architecture not known: the first shard, which has the metadata, is missing or cannot be read\nGGUF version 3",
				"experts         8 a layer, number used for a token not known, gating not known\n"},
			[]string{"no architecture", "0 used", "unknown(0)", "tokenizer"}},
		{"no first shard, as JSON", withoutFirst, []string{"--json", "."}, exitFailed,
			[]string{`"used": null`, `"shared": null`, `"groups": null`, `"gating": null`, `"active_parameter_count": null`}, []string{"unknown(0)"}},
		{"key of no first shard", withoutFirst, []string{"--key", "general.name", "."}, exitFailed,
			[]string{`small: metadata key "general.name" is not known: the first shard, which has the metadata, is missing or cannot be read`}, []string{"no metadata key", "hint"}},
		{"tensors of missing shards", withoutFirst, []string{"."}, exitFailed, []string{"\ntensors         66 of 78, "}, nil},
		{"negative count", moe("kimi-k3.expert_used_count", gguf.Int32Value(-1)), []string{"small.gguf"}, exitFailed,
			[]string{"8 a layer, number used for a token not known, 2 shared, sigmoid gating\n"}, []string{"0 used"}},
		{"blocks as a float", moe("kimi-k3.block_count", gguf.Float32Value(2)), []string{"small.gguf"}, exitFailed, nil, []string{"layers end before"}},
		{"gating as a text", moe("kimi-k3.expert_gating_func", gguf.TextValue("sigmoid")), []string{"small.gguf"}, exitFailed,
			[]string{"2 shared, gating not known\n"}, []string{"softmax"}},
		{"tokenizer without a model", single(with(bare(), func(md *gguf.Metadata) { md.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b", "c", "d")) })),
			[]string{"bare.gguf"}, exitOK, []string{"\ntokenizer       4 tokens\n"}, nil},
		{"count of other experts", moe("kimi-k3.expert_count", gguf.Uint32Value(9)), []string{"small.gguf"}, exitDiffers,
			[]string{"experts         8 a layer in the tensors, 9 by the key, ", `key "kimi-k3.expert_count": is 9, but the tensors have 8 experts`, "numbers may be wrong"}, nil},
		{"count of other experts, as JSON", moe("kimi-k3.expert_count", gguf.Uint32Value(9)), []string{"--json", "small.gguf"}, exitDiffers,
			[]string{`"count": 8`, "is 9, but the tensors have 8 experts"}, nil},
		{"adapter of experts", single(adapter()), []string{"adapter.gguf"}, exitOK,
			[]string{"kind            an adapter (LoRA), which goes beside a model\n", "problems        none found"}, []string{"\nexperts", "gating", "pruned"}},
		{"adapter as JSON", single(adapter()), []string{"--json", "adapter.gguf"}, exitOK,
			[]string{`"kind": "adapter"`, `"experts": null`, `"active_parameter_count": null`}, nil},
		{"draft layers alone", single(draftLayers()), []string{"--json", "draft.gguf"}, exitOK,
			[]string{`"kind": "draft"`, `"dense": 0`, `"draft": 1`}, nil},
		{"draft layers alone, on screen", single(draftLayers()), []string{"draft.gguf"}, exitOK,
			[]string{"kind            draft layers alone: ", "layers          1 draft, of the 4 that the metadata counts\n"}, []string{"dense"}},
		{"tokenizer alone", single(with(bare(), func(md *gguf.Metadata) {
			md.Set("made-up.block_count", gguf.Uint32Value(4))
			md.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b"))
		})), []string{"bare.gguf"}, exitOK, []string{"kind            a tokenizer alone: there are no weights\n", "tensors         none\n", "2 tokens"}, []string{"\nlayers"}},
		{"long title", single(with(bare(), func(md *gguf.Metadata) { md.Set("general.name", gguf.TextValue(longName)) })),
			[]string{"bare.gguf"}, exitOK, []string{"bare: " + strings.Repeat(`\x01`, inspect.LongTitle/4-1) + "\\...\n"}, nil},
		{"long architecture", single(with(bare(), func(md *gguf.Metadata) { md.Set("general.architecture", gguf.TextValue(longName)) })),
			[]string{"bare.gguf"}, exitOK, []string{"\n" + strings.Repeat(`\x01`, text.LineColumns/4-1) + "\\..., GGUF"}, nil},
		{"types of a fork", single(bare(
			gguftest.Tensor{Name: "a", Type: 64, Shape: []uint64{256, 2}, Data: make([]byte, 92)},
			gguftest.Tensor{Name: "b", Type: 65, Shape: []uint64{256}, Data: make([]byte, 42)},
			gguftest.Tensor{Name: "c", Type: 1000, Shape: []uint64{256}, Data: make([]byte, 7)})),
			[]string{"bare.gguf"}, exitOK, []string{"can teach it: --type 64=46/256, --type 65=42/256, --type 1000=BYTES/ELEMENTS\n"}, nil},
		{"keep and tensors", single(smallMoE()), []string{"--keep", "4", "--tensors", "small.gguf"}, exitFailed,
			[]string{"--tensors lists tensors, --keep shows what would be left"}, []string{"shard"}},
		{"errors that are not listed", overlapping(30), []string{"bare.gguf"}, exitFailed,
			[]string{"problems        21 errors, 1 warning\n", "and 10 more; --json lists them", "error: 21 errors were found, of which 12 are listed above; numbers may be wrong\n"}, nil},
		{"errors that are listed", overlapping(3), []string{"bare.gguf"}, exitFailed,
			[]string{"error: 2 errors were found, listed above; numbers may be wrong\n"}, nil},
		{"errors of a list of tensors", overlapping(3), []string{"--tensors", "bare.gguf"}, exitFailed,
			[]string{`error: bare.gguf: tensor "t01.": overlaps`, `error: bare.gguf: tensor "t02.": overlaps`}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			tc.make(t)
			r := ggufreap(t, append([]string{"inspect"}, tc.args...)...)
			out := r.stdout + r.stderr
			if r.code != tc.code {
				t.Errorf("exit %d, want %d", r.code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in:\n%.3000s", want, out)
				}
			}
			for _, never := range tc.never {
				if strings.Contains(out, never) {
					t.Errorf("%q stands in:\n%.3000s", never, out)
				}
			}
		})
	}
}

// adapter is a LoRA of routed tensors, as llama.cpp's converter writes it.
func adapter() gguftest.Spec {
	md := gguf.NewMetadata()
	for key, value := range map[string]string{"general.type": "adapter", "general.architecture": "qwen3moe", "adapter.type": "lora"} {
		md.Set(key, gguf.TextValue(value))
	}
	s := gguftest.Spec{Name: "adapter", Seed: 1, Metadata: md}
	for _, part := range []string{"a", "b"} {
		s.Tensors = append(s.Tensors, vector("blk.0.ffn_gate_exps.weight.lora_"+part, 8))
	}
	return s
}

// draftLayers has tensors in the last of four blocks, which drafts.
func draftLayers() gguftest.Spec {
	s := bare(vector("token_embd.weight", 8), vector("blk.3.nextn.eh_proj.weight", 8))
	s.Name = "draft"
	s.Metadata.Set("made-up.block_count", gguf.Uint32Value(4))
	s.Metadata.Set("made-up.nextn_predict_layers", gguf.Uint32Value(1))
	return s
}

// TestInspectTellsAlignmentsApart has a model whose shards are aligned in three ways.
func TestInspectTellsAlignmentsApart(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, alignment := range []uint32{64, 32, 256} {
		s := with(bare(vector(fmt.Sprint(i), 8)), func(md *gguf.Metadata) {
			md.Set(gguf.KeyAlignment, gguf.Uint32Value(alignment))
			md.Set("xplit.no", gguf.Uint16Value(uint16(i)))
			md.Set("xplit.count", gguf.Uint16Value(3))
			md.Set("xplit.tensors.count", gguf.Int32Value(3))
		})
		writeBytes(t, s, func(file []byte) []byte { return bytes.ReplaceAll(file, []byte("xplit."), []byte("split.")) })
		if err := os.Rename("bare.gguf", gguf.ShardName("bare", i, 3)); err != nil {
			t.Fatal(err)
		}
	}
	r := ggufreap(t, "inspect", ".")
	if want := "alignment 32 to 256, as shards differ\n"; !strings.Contains(r.stdout, want) || r.code != exitOK {
		t.Errorf("exit %d, want %q in:\n%s%s", r.code, want, r.stdout, r.stderr)
	}
}

// overlapping is a file of n tensors of which each but the first stands at the place of
// the one before.
func overlapping(n int) func(t *testing.T) {
	return func(t *testing.T) {
		s := bare()
		for i := range n {
			s.Tensors = append(s.Tensors, vector(fmt.Sprintf("t%02d.", i), 8))
		}
		writeBytes(t, s, func(file []byte) []byte {
			for _, x := range s.Tensors {
				const behindName = 4 + 8 + 4 // the count of dims, one dim, the type
				at := bytes.Index(file, []byte(x.Name)) + len(x.Name) + behindName
				clear(file[at : at+8])
			}
			return file
		})
	}
}
