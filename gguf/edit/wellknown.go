package edit

import (
	"slices"
	"strings"
)

// wellKnown are keys that need no type: llama.cpp's converter writes them with these, and
// others read them with no other.
var wellKnown = []struct {
	typ  string
	keys []string
}{
	{"str", []string{
		"general.architecture", "general.type", "general.name", "general.author", "general.version", "general.organization",
		"general.finetune", "general.basename", "general.description", "general.quantized_by", "general.size_label",
		"general.license", "general.license.name", "general.license.link", "general.url", "general.doi", "general.uuid",
		"general.repo_url", "general.source.url", "general.source.doi", "general.source.uuid", "general.source.repo_url",
		"tokenizer.chat_template", "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.huggingface.json",
	}},
	{"str[]", []string{"general.tags", "general.languages", "general.datasets", "tokenizer.chat_templates", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"}},
	{"u32", []string{"general.file_type", "general.quantization_version", "general.alignment", "general.base_model.count", "general.dataset.count", "tokenizer.ggml.token_type_count"}},
	{"i32[]", []string{"tokenizer.ggml.token_type"}},
	{"f32[]", []string{"tokenizer.ggml.scores"}},
	{"bool", []string{"tokenizer.ggml.remove_extra_whitespaces"}},
}

// wellKnownParts are keys of which a part is a number, or a name that others choose.
var wellKnownParts = []struct{ typ, prefix, suffix string }{
	{"str", "general.base_model.", ""},
	{"str", "general.dataset.", ""},
	{"str", "tokenizer.chat_template.", ""},
	{"u32", "tokenizer.ggml.", "_token_id"},
	{"i32[]", "tokenizer.ggml.", "_token_ids"},
	{"bool", "tokenizer.ggml.add_", ""},
}

// wellKnownArch are keys below the architecture's name.
var wellKnownArch = map[string][]string{
	"u32": {
		"vocab_size", "context_length", "embedding_length", "block_count", "leading_dense_block_count", "nextn_predict_layers",
		"feed_forward_length", "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_count", "expert_used_count",
		"expert_shared_count", "expert_group_count", "expert_group_used_count", "expert_gating_func", "attention.head_count",
		"attention.head_count_kv", "attention.key_length", "attention.value_length", "attention.sliding_window",
		"rope.dimension_count", "rope.scaling.original_context_length",
	},
	"f32": {
		"attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon", "attention.scale", "rope.freq_base", "rope.scaling.factor",
		"rope.scaling.attn_factor", "expert_weights_scale", "logit_scale",
	},
	"bool": {"expert_weights_norm", "attention.causal", "rope.scaling.finetuned"},
	"str":  {"rope.scaling.type"},
}

// knownType returns the type that a well-known key of a model of this architecture has, "" for
// other keys.
func knownType(arch, key string) string {
	for _, known := range wellKnown {
		if slices.Contains(known.keys, key) {
			return known.typ
		}
	}
	for _, known := range wellKnownParts {
		if rest, ok := strings.CutPrefix(key, known.prefix); ok && rest != "" && strings.HasSuffix(rest, known.suffix) {
			return known.typ
		}
	}
	rest, ok := strings.CutPrefix(key, arch+".")
	for typ, names := range wellKnownArch {
		if ok && arch != "" && slices.Contains(names, rest) {
			return typ
		}
	}
	return ""
}
