package verify

import (
	"fmt"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// A kind is what a well-known key's value must be to be of use. The width of a number does
// not matter here.
type kind struct {
	name string
	fits func(v gguf.Value) bool
}

var (
	aText   = kind{"a text", func(v gguf.Value) bool { return v.Type() == gguf.Text }}
	aCount  = kind{"a count", func(v gguf.Value) bool { _, ok := v.Uint(); return ok }}
	aNumber = kind{"a floating-point number", func(v gguf.Value) bool { _, ok := v.Float(); return ok }}
	aFlag   = kind{"a bool", func(v gguf.Value) bool { return v.Type() == gguf.Bool }}
	texts   = listOf("texts", gguf.Text)
	numbers = listOf("floating-point numbers", gguf.Float32, gguf.Float64)
	counts  = listOf("integers", gguf.Uint8, gguf.Int8, gguf.Uint16, gguf.Int16, gguf.Uint32, gguf.Int32, gguf.Uint64, gguf.Int64)
)

func listOf(what string, types ...gguf.ValueType) kind {
	return kind{"a list of " + what, func(v gguf.Value) bool {
		return v.Type() == gguf.Array && (slices.Contains(types, v.Elem()) || v.Len() == 0)
	}}
}

// or is for keys that have one value for the model, or one for each layer.
func (k kind) or(other kind) kind {
	return kind{k.name + " or " + other.name, func(v gguf.Value) bool { return k.fits(v) || other.fits(v) }}
}

// generalKeys are the well-known keys that every architecture shares, as gguf-py and
// llama.cpp write them. Package gguf looks at those that a file cannot be read without.
var generalKeys = []struct {
	kind kind
	keys []string
}{
	{aText, []string{
		"general.name", "general.type", "general.author", "general.organization", "general.version", "general.description",
		"general.basename", "general.finetune", "general.size_label", "general.quantized_by", "general.license",
		"general.license.name", "general.license.link", "general.url", "general.doi", "general.uuid", "general.repo_url",
		"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template",
	}},
	{texts, []string{"general.tags", "general.languages", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"}},
	{numbers, []string{"tokenizer.ggml.scores"}},
	{counts, []string{"tokenizer.ggml.token_type"}},
	{aCount, []string{
		"general.file_type", "general.quantization_version", "tokenizer.ggml.token_type_count", "tokenizer.ggml.bos_token_id",
		"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id", "tokenizer.ggml.unknown_token_id",
		"tokenizer.ggml.seperator_token_id", "tokenizer.ggml.padding_token_id", "tokenizer.ggml.cls_token_id", "tokenizer.ggml.mask_token_id",
	}},
	{aFlag, []string{"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix"}},
}

// architectureKeys are those that stand under the architecture's name.
var architectureKeys = []struct {
	kind     kind
	suffixes []string
}{
	{aCount, []string{
		"vocab_size", "context_length", "embedding_length", "block_count", "leading_dense_block_count", "nextn_predict_layers",
		"expert_count", "expert_shared_count", "expert_group_count", "expert_group_used_count", "expert_gating_func",
		"rope.scaling.original_context_length",
	}},
	{aCount.or(counts), []string{
		"feed_forward_length", "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_used_count",
		"attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count",
	}},
	{aNumber.or(numbers), []string{
		"attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor", "expert_weights_scale",
	}},
	{aFlag, []string{"expert_weights_norm"}},
	{aText, []string{"rope.scaling.type"}},
}

// maxText is the longest text that anything is made of, that of [gguf.Value.Raw].
const maxText = 64 << 20

// misfits returns a warning for each well-known key whose value is not of the kind that
// readers of the key want: they refuse the file, or go on without the value.
func misfits(m *gguf.Model) []gguf.Problem {
	md := m.Metadata()
	var list []gguf.Problem
	look := func(key string, want kind) {
		v, ok := md.Get(key)
		switch {
		case !ok:
		case !want.fits(v):
			list = append(list, keyWarning(m, key, fmt.Sprintf("is %s, want %s", v.Describe(), want.name)))
		case v.Type() == gguf.Text && v.Len() > maxText:
			list = append(list, keyWarning(m, key, fmt.Sprintf("is a text of %s, too long to be shown", words.Count(v.Len(), "byte"))))
		}
	}
	for _, k := range generalKeys {
		for _, key := range k.keys {
			look(key, k.kind)
		}
	}
	if md.Architecture() == "" {
		return list
	}
	for _, k := range architectureKeys {
		for _, suffix := range k.suffixes {
			look(md.ArchKey(suffix), k.kind)
		}
	}
	return list
}
