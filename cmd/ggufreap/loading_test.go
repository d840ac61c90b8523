package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/planfile"
)

// TestNotLoadable has models that are sound by their format and that llama.cpp does not load:
// inspect calls that an error, verify a finding, and prune refuses them unless told to go on.
func TestNotLoadable(t *testing.T) {
	key := func(suffix string, v gguf.Value) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) { s.Metadata.Set("kimi-k3."+suffix, v) }
	}
	for i, c := range []struct {
		name   string
		damage func(*gguftest.Spec)
		want   string
	}{
		{"a router renamed", func(s *gguftest.Spec) { s.Tensor("blk.1.attn_norm.weight").Name = "blk.1.attention_norm.weight" },
			`layer 1: no tensor "attn_norm.weight"`},
		{"a key of another type", key("expert_shared_count", gguf.Uint64Value(1)), "is u64, llama.cpp reads u32 only"},
		{"an unknown way to stretch rotation", key("rope.scaling.type", gguf.TextValue("yam")), `is "yam", llama.cpp wants one of none, linear, yarn, longrope`},
		{"no last norm", func(s *gguftest.Spec) { s.Tensor("output_norm.weight").Name = "output_nrm.weight" },
			`has no tensor "output_norm.weight"`},
		{"a list for other layers", key("attention.head_count_kv", gguf.Int32sValue(0, 0)), "has 2 entries, llama.cpp wants 3"},
		{"no norm", func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return t.Name == "blk.1.attn_norm.weight" })
		}, `layer 1: no tensor "attn_norm.weight"`},
		{"short token types", func(s *gguftest.Spec) {
			s.Metadata.Set("tokenizer.ggml.token_type", gguf.Int32sValue(1, 1))
		}, `key "tokenizer.ggml.token_type": has 2 entries`},
		{"an embedding row more", func(s *gguftest.Spec) { s.Tensor("token_embd.weight").Shape[1]++ },
			`has 385 rows, "tokenizer.ggml.tokens" states 384 tokens`},
		{"a block more stated", func(s *gguftest.Spec) {
			s.Metadata.Set("kimi-k3.block_count", gguf.Uint32Value(4))
			s.Metadata.Set("kimi-k3.attention.head_count_kv", gguf.Int32sValue(0, 0, 1, 0))
		}, `layer 3: announced by "kimi-k3.block_count"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := smallMoE().Clone()
			c.damage(&s)
			source := write(t, s, gguf.Split{Shards: 1 + i%2*2})[0]

			for _, line := range [][]string{{"inspect", source}, {"inspect", "--json", source}} {
				r := ggufreap(t, line...)
				if r.code != exitFailed || !strings.Contains(r.stdout+r.stderr, c.want) || !strings.Contains(r.stderr, "llama.cpp does not load the model") {
					t.Errorf("%s: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
				}
			}
			r := ggufreap(t, "verify", "--json", source)
			var report struct {
				Findings []struct{ Kind, What string }
			}
			if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
				t.Fatal(err)
			}
			if r.code != exitDiffers || len(report.Findings) != 1 || report.Findings[0].Kind != "loading" || !strings.Contains(report.Findings[0].What, c.want) {
				t.Errorf("verify: exit %d, findings %+v", r.code, report.Findings)
			}
			if text := refuse(t, "hint: complete the model, or go on with --allow-incomplete", "prune", "--keep", "4", "--force", "-o", "out", source); !strings.Contains(text, c.want) {
				t.Errorf("prune: %s", text)
			}
			if exists("out") {
				t.Error("a folder was made")
			}
			text := succeed(t, "prune", "--keep", "4", "--allow-incomplete", "-o", "out", source)
			data, err := os.ReadFile("out/plan.json")
			if err != nil {
				t.Fatal(err)
			}
			plan, err := planfile.Decode(data)
			if err != nil || plan.Rules.Incomplete != "allowed" {
				t.Errorf("the plan's rules are %+v, %v\n%s", plan.Rules, err, text)
			}
		})
	}
}

// TestAllowIncompleteNotNeeded names no rule in the plan of a model that llama.cpp loads.
func TestAllowIncompleteNotNeeded(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	if out := succeed(t, "plan", "--keep", "4", "--allow-incomplete", "--json", source); strings.Contains(out, "incomplete") {
		t.Error(out)
	}
	if out := succeed(t, "verify", source); !strings.Contains(out, "not checked     whether an engine loads it") {
		t.Error(out)
	}
}
