package loadable_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/loadable"
)

// small makes a model of an architecture without facts. A line of keys is "SUFFIX NUMBER..."
// and of tensors "NAME DIM..."; a name that begins with "N." is that of a tensor in each of
// the two blocks.
func small(arch, keys, tensors string) gguftest.Spec {
	s := gguftest.Spec{Name: arch, Metadata: gguf.NewMetadata()}
	s.Metadata.Set(gguf.KeyArchitecture, gguf.TextValue(arch))
	s.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	s.Metadata.Set("tokenizer.ggml.token_type_count", gguf.Uint32Value(2))
	for _, name := range []string{"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"} {
		s.Metadata.Set(arch+"."+name, gguf.Float32Value(1e-5))
	}
	usual := "context_length 64\nembedding_length 32\nblock_count 2\nfeed_forward_length 48\nattention.head_count 2\nvocab_size 8\n"
	for line := range strings.Lines(usual + keys) {
		addKey(&s, arch, strings.Fields(line))
	}
	for line := range strings.Lines(tensors) {
		if f := strings.Fields(line); len(f) > 0 {
			addTensor(&s, f[0], f[1:])
		}
	}
	return s
}

func addKey(s *gguftest.Spec, arch string, fields []string) {
	numbers := make([]int32, max(len(fields)-1, 0))
	for i := range numbers {
		fmt.Sscan(fields[i+1], &numbers[i])
	}
	switch {
	case len(numbers) == 1:
		s.Metadata.Set(arch+"."+fields[0], gguf.Uint32Value(uint32(numbers[0])))
	case len(numbers) > 1:
		s.Metadata.Set(arch+"."+fields[0], gguf.Int32sValue(numbers...))
	}
}

func addTensor(s *gguftest.Spec, name string, dims []string) {
	shape := make([]uint64, len(dims))
	for i, d := range dims {
		fmt.Sscan(d, &shape[i])
	}
	if !strings.Contains(name, "N.") {
		s.Tensors = append(s.Tensors, gguftest.Tensor{Name: name, Type: gguf.F32, Shape: shape})
		return
	}
	for block := range 2 {
		in := strings.Replace(name, "N.", fmt.Sprintf("blk.%d.", block), 1)
		s.Tensors = append(s.Tensors, gguftest.Tensor{Name: strings.Replace(in, "enc.blk.blk", "enc.blk", 1), Type: gguf.F32, Shape: shape})
	}
}

// Parts of small models.
const (
	vocabulary = "token_embd.weight 32 8\noutput_norm.weight 32\n"
	attention  = "N.attn_norm.weight 32\nN.attn_q.weight 32 32\nN.attn_k.weight 32 32\nN.attn_v.weight 32 32\nN.attn_output.weight 32 32\n"
	dense48    = "N.ffn_norm.weight 32\nN.ffn_gate.weight 32 48\nN.ffn_up.weight 32 48\nN.ffn_down.weight 48 32\n"
	encoder    = "token_embd.weight 32 8\ntoken_types.weight 32 2\ntoken_embd_norm.weight 32\ntoken_embd_norm.bias 32\n" +
		"N.attn_q.weight 32 32\nN.attn_k.weight 32 32\nN.attn_v.weight 32 32\nN.attn_output.weight 32 32\n" +
		"N.attn_output_norm.weight 32\nN.attn_output_norm.bias 32\nN.layer_output_norm.weight 32\nN.layer_output_norm.bias 32\n"
	mamba = "ssm_in.weight 32 128\nssm_conv1d.weight 4 64\nssm_conv1d.bias 64\nssm_x.weight 64 34\nssm_dt.weight 2 64\nssm_dt.bias 64\nssm_a 16 64\nssm_d 64\nssm_out.weight 64 32\n"
)

// in puts the tensors of some lines into one block.
func in(block int, lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		fmt.Fprintf(&b, "blk.%d.%s", block, strings.TrimPrefix(line, "N."))
	}
	return b.String()
}

// variants are models of kinds that the ones with facts do not have.
func variants(t *testing.T) map[string]gguftest.Spec {
	moe := func(arch string, change func(*gguftest.Spec)) gguftest.Spec {
		s := architecture(t, arch, gguftest.ArchitectureOptions{}).Clone()
		change(&s)
		return s
	}
	drop := func(names ...string) func(*gguftest.Spec) {
		return func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool {
				return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(t.Name, n) })
			})
		}
	}
	return map[string]gguftest.Spec{
		"dense, tied embedding":      small("qwen2", "", vocabulary+attention+dense48),
		"embedding model":            small("qwen3", "pooling_type 3\nattention.key_length 16\n", vocabulary+attention+dense48+"N.attn_q_norm.weight 16\nN.attn_k_norm.weight 16\n"),
		"encoder":                    small("bert", "", encoder+"position_embd.weight 32 64\nN.ffn_up.weight 32 48\nN.ffn_down.weight 48 32\n"),
		"encoder with experts":       small("nomic-bert-moe", "moe_every_n_layers 2\nexpert_count 4\nexpert_used_count 2\n", encoder+in(0, "ffn_up.weight 32 48\nffn_down.weight 48 32\n")+in(1, "ffn_gate_inp.weight 32 4\nffn_up_exps.weight 32 48 4\nffn_down_exps.weight 48 32 4\n")),
		"encoder of two":             small("t5encoder", "attention.relative_buckets_count 8\n", "token_embd.weight 32 8\nenc.output_norm.weight 32\nenc.blk.0.attn_rel_b.weight 2 8\n"+encoderOfTwo()),
		"state space":                small("mamba", "attention.head_count 0\nssm.conv_kernel 4\nssm.inner_size 64\nssm.state_size 16\nssm.time_step_rank 2\n", vocabulary+in(0, "attn_norm.weight 32\n"+mamba)+in(1, "attn_norm.weight 32\n"+mamba)),
		"deci, a layer of nothing":   small("deci", "attention.head_count 2 0\nattention.head_count_kv 2 0\nfeed_forward_length 48 0\n", vocabulary+in(0, attention+dense48)),
		"deci, a layer of attention": small("deci", "attention.head_count 2 2\nattention.head_count_kv 2 2\nfeed_forward_length 48 0\n", vocabulary+attention+in(0, dense48)),
		"embedding of llama":         small("llama-embed", "", vocabulary+attention+dense48),
		"phi3, gate and up in one":   small("phi3", "", vocabulary+"N.attn_norm.weight 32\nN.attn_qkv.weight 32 96\nN.attn_output.weight 32 32\nN.ffn_norm.weight 32\nN.ffn_up.weight 32 96\nN.ffn_down.weight 48 32\n"),
		"short convolution":          small("lfm2", "shortconv.l_cache 3\nattention.head_count_kv 0 2\n", "token_embd.weight 32 8\ntoken_embd_norm.weight 32\n"+dense48+in(0, "attn_norm.weight 32\nshortconv.conv.weight 3 32\nshortconv.in_proj.weight 32 96\nshortconv.out_proj.weight 32 32\n")+in(1, attention+"attn_q_norm.weight 16\nattn_k_norm.weight 16\n")),
		"gemma4, a layer that shares": moe("gemma4", func(s *gguftest.Spec) {
			drop("blk.1.attn_k", "blk.1.attn_v")(s)
			s.Metadata.Set("gemma4.attention.shared_kv_layers", gguf.Uint32Value(1))
		}),
		"gemma4, dense": moe("gemma4", drop("blk.0.ffn_gate_inp", "blk.0.pre_ffw_norm_2", "blk.0.post_ffw_norm_", "blk.0.ffn_gate_up_exps", "blk.0.ffn_down_exps")),
		"mimo2, a layer without a feed-forward part": moe("mimo2", drop("blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down")),
		"step35, no gates in attention":              moe("step35", drop("blk.0.attn_gate", "blk.1.attn_gate")),
		"no scales":                                  moe("olmoe", func(s *gguftest.Spec) { dropScales(s) }),
		"hybrid, first layer without keys":           keylessFirst(t),
	}
}

func dropScales(s *gguftest.Spec) {
	s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return strings.HasSuffix(t.Name, "scale") })
}

func encoderOfTwo() string {
	var b strings.Builder
	for block := range 2 {
		for _, line := range []string{"attn_norm.weight 32", "attn_q.weight 32 32", "attn_k.weight 32 32", "attn_v.weight 32 32", "attn_o.weight 32 32", "ffn_norm.weight 32", "ffn_down.weight 48 32", "ffn_up.weight 32 48"} {
			fmt.Fprintf(&b, "enc.blk.%d.%s\n", block, line)
		}
	}
	return b.String()
}

// keylessFirst is a hybrid whose first layer has no heads for keys, and the others half as
// many as for queries, whose length is left to the model's width.
func keylessFirst(t *testing.T) gguftest.Spec {
	s := architecture(t, "granitehybrid", gguftest.ArchitectureOptions{}).Clone()
	blocks, _ := s.Metadata.ArchUint("block_count")
	kv := make([]int32, blocks)
	for i := range kv {
		if k := s.Tensor(fmt.Sprintf("blk.%d.attn_k.weight", i)); k != nil {
			kv[i] = 4
			k.Shape = []uint64{256, 128}
			s.Tensor(fmt.Sprintf("blk.%d.attn_v.weight", i)).Shape = []uint64{256, 128}
		}
	}
	s.Metadata = s.Metadata.Without(func(key string) bool {
		return strings.Contains(key, "key_length") || strings.Contains(key, "value_length") || strings.Contains(key, "dimension_count")
	})
	s.Metadata.Set("granitehybrid.attention.head_count", gguf.Uint32Value(8))
	s.Metadata.Set("granitehybrid.attention.head_count_kv", gguf.Int32sValue(kv...))
	return s
}

// TestEngineLoadsVariants has llama.cpp load what the rules must not refuse.
func TestEngineLoadsVariants(t *testing.T) {
	list := variants(t)
	for _, pre := range loadable.PreTokenizers {
		s := gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4}).Clone()
		s.Metadata.Set("tokenizer.ggml.pre", gguf.TextValue(pre))
		list["pre-tokenizer "+pre] = s
	}
	var paths, names []string
	for name, s := range list {
		written, err := s.WriteSparse(filepath.Join(t.TempDir(), fmt.Sprint(len(paths))), gguf.Split{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths, names = append(paths, written[0]), append(names, name)
	}
	for i, reason := range engineSays(t, paths) {
		if problems := check(t, paths[i]); reason != "" || len(problems) > 0 {
			t.Errorf("%s: llama.cpp says %q, the rules %q", names[i], reason, problems)
		}
	}
}
