package loadable_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/loadable"
)

func findings(t *testing.T, s gguftest.Spec) []gguf.Problem {
	t.Helper()
	m, err := s.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return loadable.Check(m)
}

// TestDamages takes a kimi-k3 that llama.cpp loads and does to it one thing at a time.
// [TestEngineAgrees] shows that llama.cpp refuses the like.
func TestDamages(t *testing.T) {
	key := func(suffix string, v gguf.Value) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) { s.Metadata.Set("kimi-k3."+suffix, v) }
	}
	drop := func(match func(name string) bool) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return match(t.Name) })
		}
	}
	is := func(name string) func(string) bool { return func(s string) bool { return s == name } }
	reshape := func(name string, shape ...uint64) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) { s.Tensor(name).Shape = shape }
	}
	tokens := func(key string, v gguf.Value) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) { s.Metadata.Set("tokenizer.ggml."+key, v) }
	}
	for _, c := range []struct {
		name     string
		damage   func(*gguftest.Spec)
		severity gguf.Severity
		want     string
	}{
		{"no last block", drop(func(n string) bool { return strings.HasPrefix(n, "blk.4.") }), gguf.Error,
			`layer 4: announced by "kimi-k3.block_count", which is 5, and no tensor of it is there`},
		{"no blocks in the middle", drop(func(n string) bool { return strings.HasPrefix(n, "blk.2.") || strings.HasPrefix(n, "blk.3.") }), gguf.Error, "layers 2-3: announced by"},
		{"no embedding", drop(is("token_embd.weight")), gguf.Error, `has no tensor "token_embd.weight"`},
		{"no output", drop(is("output.weight")), gguf.Error, `has no tensor "output.weight"`},
		{"a norm less", drop(is("blk.2.attn_norm.weight")), gguf.Error, `layer 2: no tensor "attn_norm.weight"`},
		{"no selection bias", drop(is("blk.4.exp_probs_b.bias")), gguf.Error, `layer 4: no tensor "exp_probs_b.bias"`},
		{"a token less", func(s *gguftest.Spec) {
			v, _ := s.Metadata.Get("tokenizer.ggml.tokens")
			s.Metadata.Set("tokenizer.ggml.tokens", shorter(v))
		}, gguf.Error, `"token_embd.weight": has 384 rows, "tokenizer.ggml.tokens" states 383 tokens`},
		{"short token types", tokens("token_type", gguf.Int32sValue(make([]int32, 188)...)), gguf.Error, "has 188 entries"},
		{"token types of 64 bits", tokens("token_type", gguf.ArrayValue(gguf.Int64, gguf.Int64Value(1))), gguf.Error, "llama.cpp reads a list of i32 only"},
		{"short scores", tokens("scores", gguf.Float32sValue(1)), gguf.Error, "has 1 entry"},
		{"merges that are numbers", tokens("merges", gguf.Int32sValue(1)), gguf.Error, "llama.cpp reads a list of texts only"},
		{"a token twice", tokens("tokens", gguf.TextsValue(slices.Repeat([]string{"a"}, 384)...)), gguf.Error, "383 tokens stand more than once"},
		{"a bool that is a text", tokens("add_space_prefix", gguf.TextValue("1")), gguf.Error, `key "tokenizer.ggml.add_space_prefix": is str, llama.cpp reads bool only`},
		{"tokens to suppress of 64 bits", tokens("suppress_tokens", gguf.ArrayValue(gguf.Int64, gguf.Int64Value(1))), gguf.Error, "is i64[], llama.cpp reads a list of i32 only"},
		{"a file type that is a text", func(s *gguftest.Spec) { s.Metadata.Set("general.file_type", gguf.TextValue("F16")) }, gguf.Error,
			`key "general.file_type": is str, llama.cpp reads u32 only`},
		{"labels that are numbers", key("classifier.output_labels", gguf.Int32sValue(1)), gguf.Error, "is i32[], llama.cpp reads a list of str only"},
		{"a scale of 64 bits", key("rope.scaling.alpha", gguf.Float64Value(1)), gguf.Error, "is f64, llama.cpp reads f32 only"},
		{"a scale under its older name", key("rope.scale_linear", gguf.Float64Value(1)), gguf.Error, "is f64, llama.cpp reads f32 only"},
		{"a key without a name", func(s *gguftest.Spec) { s.Metadata.Set("", gguf.Uint32Value(1)) }, gguf.Error, `key "": has no name`},
		{"lists in a list", func(s *gguftest.Spec) {
			s.Metadata.Set("x", gguf.ArrayValue(gguf.Array, gguf.TextsValue("y")))
		}, gguf.Error, `key "x": is a list of lists, llama.cpp loads no file with one`},
		{"no tokenizer", func(s *gguftest.Spec) {
			s.Metadata = s.Metadata.Without(func(k string) bool { return k == "tokenizer.ggml.model" })
		}, gguf.Error, `key "tokenizer.ggml.model": is not there`},
		{"down with half its rows", reshape("blk.2.ffn_down_exps.weight", 32, 32, 896), gguf.Error, "has the shape 32 x 32 x 896, llama.cpp wants"},
		{"gate that does not fit", reshape("blk.2.ffn_gate_exps.weight", 64, 64, 896), gguf.Error, "has the shape 64 x 64 x 896"},
		{"a key says another width", key("expert_feed_forward_length", gguf.Uint32Value(64)), gguf.Error, "has the shape 64 x 32 x 896"},
		{"fewer blocks stated", key("block_count", gguf.Uint32Value(4)), gguf.Error, `layer 4: "kimi-k3.block_count" says that layers end before 4`},
		{"a list for other blocks", key("attention.head_count_kv", gguf.Int32sValue(0, 0, 0, 1)), gguf.Error, "has 4 entries, llama.cpp wants 5"},
		{"a key that fits no layer", key("expert_latent_length", gguf.Uint32Value(65)), gguf.Error,
			`layers 1-4, tensor "ffn_gate_exps.weight" of each: has the shape 64 x 32 x 896, llama.cpp wants 65 x 32 x 896`},
		{"more dense blocks stated", key("leading_dense_block_count", gguf.Uint32Value(2)), gguf.Error, `layer 1: no tensor "ffn_gate.weight"`},
		{"keys shorter than what is rotated of them", key("attention.key_length_mla", gguf.Uint32Value(7)), gguf.Error,
			`key "kimi-k3.attention.key_length_mla": is 7, of which "kimi-k3.rope.dimension_count" takes 16`},
		{"a key of 64 bits", key("embedding_length", gguf.Uint64Value(64)), gguf.Error, "is u64, llama.cpp reads u32 only"},
		{"a required key less", func(s *gguftest.Spec) {
			s.Metadata = s.Metadata.Without(func(k string) bool { return k == "kimi-k3.attention.kv_lora_rank" })
		}, gguf.Error, `key "kimi-k3.attention.kv_lora_rank": is not there`},
		{"more experts used than there are", key("expert_used_count", gguf.Uint32Value(900)), gguf.Error, "900 experts used of 896"},
		{"a tensor that nobody asks for", func(s *gguftest.Spec) {
			s.Tensors = append(s.Tensors, gguftest.Tensor{Name: "blk.1.extra.weight", Type: gguf.F32, Shape: []uint64{4}})
		}, gguf.Warning, `tensor "blk.1.extra.weight": is not known in kimi-k3`},
		{"a tokenizer that nobody knows", tokens("model", gguf.TextValue("new")), gguf.Warning, `names a tokenizer that is not known, "new"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := gguftest.K3(gguftest.K3Options{}).Clone()
			if list := findings(t, s); len(list) > 0 {
				t.Fatalf("undamaged: %q", list)
			}
			c.damage(&s)
			list := findings(t, s)
			if !slices.ContainsFunc(list, func(p gguf.Problem) bool {
				return p.Severity == c.severity && strings.Contains(p.String(), c.want)
			}) {
				t.Errorf("findings %q, want %s: %s", list, c.severity, c.want)
			}
		})
	}
}

func shorter(v gguf.Value) gguf.Value {
	var items []gguf.Value
	v.Each(func(_ int64, e gguf.Value) error {
		items = append(items, e)
		return nil
	})
	return gguf.ArrayValue(v.Elem(), items[:len(items)-1]...)
}

// dense is a model of an architecture without a table.
func dense(blocks int) gguftest.Spec {
	md := gguf.NewMetadata()
	md.Set(gguf.KeyArchitecture, gguf.TextValue("qwen2"))
	for suffix, n := range map[string]uint32{"context_length": 64, "embedding_length": 32, "block_count": uint32(blocks), "feed_forward_length": 48,
		"attention.head_count": 2} {
		md.Set("qwen2."+suffix, gguf.Uint32Value(n))
	}
	md.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	md.Set("qwen2.vocab_size", gguf.Uint32Value(8))
	s := gguftest.Spec{Name: "dense", Seed: 1, Metadata: md}
	add := func(name string, shape ...uint64) {
		s.Tensors = append(s.Tensors, gguftest.Tensor{Name: name, Type: gguf.F32, Shape: shape})
	}
	add("token_embd.weight", 32, 8)
	for i := range blocks {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"attn_norm.weight", 32)
		add(p+"attn_q.weight", 32, 32)
		add(p+"attn_output.weight", 32, 32)
		add(p+"ffn_norm.weight", 32)
		add(p+"ffn_gate.weight", 32, 48)
		add(p+"ffn_up.weight", 32, 48)
		add(p+"ffn_down.weight", 48, 32)
	}
	return s
}

// TestDamagesOfAnyArchitecture tries the rules that need no table.
func TestDamagesOfAnyArchitecture(t *testing.T) {
	for name, want := range map[string]string{
		"":                           "",
		"blk.3.attn_norm.weight":     `layer 3: no "attn_norm.weight", which all other layers of the kind have`,
		"blk.0.ffn_down.weight":      `layer 0: no "ffn_down.weight"`,
		"token_embd.weight":          `has no tensor "token_embd.weight"`,
		"blk.1.ffn_up.weight 32 40":  `"blk.1.ffn_up.weight": has the shape 32 x 40, llama.cpp wants 32 x 48, as tensor "blk.1.ffn_gate.weight" beside it has`,
		"blk.1.ffn_down.weight 40 8": `"blk.1.ffn_down.weight": has the shape 40 x 8, llama.cpp wants rows of 48`,
		"token_embd.weight 32 9":     `has 9 rows, "qwen2.vocab_size" states 8 tokens`,
	} {
		s := dense(4)
		tensor, shape, reshaped := strings.Cut(name, " ")
		if reshaped {
			t := s.Tensor(tensor)
			t.Shape = make([]uint64, 2)
			fmt.Sscan(shape, &t.Shape[0], &t.Shape[1])
		} else {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return t.Name == name })
		}
		list := findings(t, s)
		if want == "" && len(list) > 0 || want != "" && (len(list) != 1 || !strings.Contains(list[0].String(), want)) {
			t.Errorf("%q: findings %q, want %q", name, list, want)
		}
	}
}

// TestNotRefused has files that are no whole language model, or that lack what others have
// and need not have it.
func TestNotRefused(t *testing.T) {
	k3 := gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4})
	kept := func(s gguftest.Spec, keep func(name string) bool) gguftest.Spec {
		s = s.Clone()
		s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return !keep(t.Name) })
		return s
	}
	typed := func(s gguftest.Spec, kind string) gguftest.Spec {
		s = s.Clone()
		s.Metadata.Set("general.type", gguf.TextValue(kind))
		return s
	}
	draft := func(arch string) gguftest.Spec {
		return architecture(t, arch, gguftest.ArchitectureOptions{Draft: true})
	}
	behind := func(block int) func(string) bool {
		return func(name string) bool {
			b, _, ok := reap.SplitBlock(name)
			return ok && b >= block
		}
	}
	deci := dense(4)
	deci.Metadata = renamed(deci.Metadata, "qwen2", "deci")
	lora := kept(k3, func(n string) bool { return n == "blk.1.attn_q.weight" })
	lora.Metadata = lora.Metadata.Clone()
	lora.Metadata.Set("adapter.lora.alpha", gguf.Float32Value(16))
	for name, s := range map[string]gguftest.Spec{
		"an adapter without a type":   lora,
		"tokenizer only":              kept(k3, func(string) bool { return false }),
		"one tensor of an adapter":    typed(kept(k3, func(n string) bool { return n == "blk.1.attn_q.weight" }), "adapter"),
		"a projector":                 typed(kept(k3, func(n string) bool { return strings.HasPrefix(n, "blk.0.") }), "mmproj"),
		"draft blocks alone":          kept(draft("glm4moe"), behind(3)),
		"more draft blocks alone":     kept(draft("qwen35moe"), behind(2)),
		"trunk alone":                 kept(draft("deepseek2"), func(n string) bool { return !behind(3)(n) }),
		"deci with blocks of nothing": kept(deci, func(n string) bool { return !strings.HasPrefix(n, "blk.2.") && n != "blk.1.ffn_norm.weight" }),
		"the real K3":                 gguftest.K3Real(3072, gguf.MXFP4),
		"another of its size":         gguftest.K3Real(1536, gguf.IQ1_S),
	} {
		if list := findings(t, s); len(list) > 0 {
			t.Errorf("%s: findings %q", name, list)
		}
	}
}

// renamed gives the keys of an architecture to another one.
func renamed(md *gguf.Metadata, from, to string) *gguf.Metadata {
	other := gguf.NewMetadata()
	for key, v := range md.All() {
		if rest, ok := strings.CutPrefix(key, from+"."); ok {
			key = to + "." + rest
		}
		other.Set(key, v)
	}
	other.Set(gguf.KeyArchitecture, gguf.TextValue(to))
	return other
}

// TestHostile has headers that ask for much.
func TestHostile(t *testing.T) {
	k3 := gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4})
	s := k3.Clone()
	for _, n := range []uint32{0, 513, 1 << 31, 1<<32 - 1} {
		s.Metadata.Set("kimi-k3.block_count", gguf.Uint32Value(n))
		if list := findings(t, s); len(list) == 0 || len(list) > 10 {
			t.Errorf("%d blocks: findings %q", n, list)
		}
	}
	s = k3.Clone()
	for i := range 5000 {
		s.Tensors = append(s.Tensors, gguftest.Tensor{Name: fmt.Sprintf("blk.%d.x", i), Type: gguf.F32, Shape: []uint64{1}})
	}
	if list := findings(t, s); len(list) > 205 {
		t.Errorf("%d findings", len(list))
	}
}

// TestDamagesOfJudgedArchitectures tries the tables of some. [TestEngineAgrees] shows that
// llama.cpp refuses the like.
func TestDamagesOfJudgedArchitectures(t *testing.T) {
	drop := func(name string) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return t.Name == name })
		}
	}
	reshape := func(name string, dim int, n uint64) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) {
			tensor := s.Tensor(name)
			tensor.Shape = slices.Clone(tensor.Shape)
			tensor.Shape[dim] = n
		}
	}
	for _, c := range []struct {
		arch, name string
		damage     func(*gguftest.Spec)
		want       string
	}{
		{"olmoe", "a model's width", reshape("blk.1.attn_q.weight", 0, 32), `"blk.1.attn_q.weight": has the shape 32 x`},
		{"olmoe", "a norm's length", reshape("blk.0.ffn_norm.weight", 0, 31), `"blk.0.ffn_norm.weight": has the shape 31`},
		{"olmoe", "heads", reshape("blk.0.attn_k.weight", 1, 33), `"blk.0.attn_k.weight": has the shape 256 x 33`},
		{"olmoe", "no router", drop("blk.1.ffn_gate_inp.weight"), `layer 1: no tensor "ffn_gate_inp.weight"`},
		{"olmoe", "no last norm", drop("output_norm.weight"), `has no tensor "output_norm.weight"`},
		{"olmoe", "no norm before attention", drop("blk.0.attn_norm.weight"), `layer 0: no tensor "attn_norm.weight"`},
		{"qwen2moe", "a bias that does not fit", reshape("blk.0.attn_q.bias", 0, 7), `"blk.0.attn_q.bias": has the shape 7`},
		{"qwen2moe", "no shared down", drop("blk.1.ffn_down_shexp.weight"), `layer 1: no tensor "ffn_down_shexp.weight"`},
		{"mistral4", "a part of latent attention", drop("blk.1.attn_kv_a_norm.weight"), `layer 1: no tensor "attn_kv_a_norm.weight"`},
		{"dots1", "a key less", func(s *gguftest.Spec) {
			s.Metadata = s.Metadata.Without(func(k string) bool { return k == "dots1.attention.layer_norm_rms_epsilon" })
		}, `key "dots1.attention.layer_norm_rms_epsilon": is not there`},
		{"dots1", "a key of 64 bits", func(s *gguftest.Spec) {
			s.Metadata.Set("dots1.expert_feed_forward_length", gguf.Uint64Value(32))
		}, "is u64, llama.cpp reads u32 only"},
	} {
		t.Run(c.arch+", "+c.name, func(t *testing.T) {
			s := architecture(t, c.arch, gguftest.ArchitectureOptions{}).Clone()
			if list := findings(t, s); len(list) > 0 {
				t.Fatalf("undamaged: %q", list)
			}
			c.damage(&s)
			if list := findings(t, s); !slices.ContainsFunc(list, func(p gguf.Problem) bool { return p.Severity == gguf.Error && strings.Contains(p.String(), c.want) }) {
				t.Errorf("findings %q, want %s", list, c.want)
			}
		})
	}
}

// TestKnown wants a table for every architecture of the engine tests.
func TestKnown(t *testing.T) {
	for _, arch := range gguftest.Architectures() {
		if !loadable.Known(arch) {
			t.Errorf("no table for %s", arch)
		}
	}
}
