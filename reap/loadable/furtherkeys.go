package loadable

import (
	"slices"
	"strings"

	"ggufreap/gguf"
)

// furtherKeys are the keys that llama.cpp reads for architectures without a table, besides
// [commonKeys]: as it says itself when they are missing or of another type. A model needs those
// with a mark.
var furtherKeys = map[string]string{
	"afmoe": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!
		expert_gating_func expert_shared_count! expert_weights_norm expert_weights_scale
		leading_dense_block_count rope.freq_base_swa`,
	"arctic": `attention.layer_norm_rms_epsilon!`,
	"bailingmoe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_shared_count!
		expert_weights_norm expert_weights_scale leading_dense_block_count`,
	"bailingmoe2": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_gating_func
		expert_shared_count! expert_shared_feed_forward_length expert_weights_norm expert_weights_scale
		leading_dense_block_count`,
	"bailingmoe3": `attention.layer_norm_rms_epsilon! attention.key_length_mla attention.kv_lora_rank!
		attention.q_lora_rank attention.value_length_mla expert_feed_forward_length! expert_gating_func
		expert_shared_count! expert_shared_feed_forward_length expert_weights_norm expert_weights_scale
		kda.gate_lower_bound kda.head_dim kda.safe_gate leading_dense_block_count! ssm.conv_kernel!`,
	"cohere2moe": `attention.layer_norm_rms_epsilon attention.layer_norm_epsilon attention.sliding_window
		expert_feed_forward_length! expert_gating_func expert_shared_count expert_shared_feed_forward_length
		expert_weights_norm expert_weights_scale leading_dense_block_count! logit_scale rope.freq_base_swa`,
	"dbrx": `attention.clamp_kqv attention.layer_norm_epsilon`,
	"deepseek": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_shared_count!
		expert_weights_scale leading_dense_block_count`,
	"deepseek32": `attention.layer_norm_rms_epsilon! attention.indexer.head_count attention.indexer.key_length
		attention.indexer.top_k attention.key_length_mla attention.kv_lora_rank! attention.q_lora_rank
		attention.value_length_mla expert_feed_forward_length! expert_gating_func expert_shared_count!
		expert_weights_norm expert_weights_scale leading_dense_block_count rope.scaling.yarn_log_multiplier`,
	"deepseek4": `attention.layer_norm_rms_epsilon! attention.compress_rope_freq_base attention.indexer.head_count
		attention.indexer.key_length attention.indexer.top_k attention.output_group_count
		attention.output_lora_rank attention.q_lora_rank attention.sliding_window
		expert_feed_forward_length! expert_gating_func expert_shared_count! expert_weights_norm
		expert_weights_scale hash_layer_count hyper_connection.count hyper_connection.epsilon
		hyper_connection.sinkhorn_iterations`,
	"dots1": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_gating_func
		expert_shared_count! expert_weights_norm expert_weights_scale leading_dense_block_count`,
	"ernie4_5-moe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_shared_feed_forward_length
		interleave_moe_layer_step leading_dense_block_count`,
	"exaone-moe": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!
		expert_gating_func expert_shared_count expert_shared_feed_forward_length expert_weights_norm
		expert_weights_scale leading_dense_block_count rope.freq_base_swa`,
	"gemma4": `attention.layer_norm_rms_epsilon! attention.sliding_window embedding_length_per_layer_input
		expert_feed_forward_length final_logit_softcapping rope.freq_base_swa`,
	"granite": `attention.layer_norm_rms_epsilon! attention.scale embedding_scale expert_shared_feed_forward_length
		logit_scale residual_scale`,
	"granitehybrid": `attention.layer_norm_rms_epsilon! attention.scale embedding_scale expert_shared_feed_forward_length
		logit_scale residual_scale ssm.conv_kernel! ssm.group_count! ssm.inner_size! ssm.state_size!
		ssm.time_step_rank!`,
	"granitemoe": `attention.layer_norm_rms_epsilon! attention.scale embedding_scale expert_shared_feed_forward_length
		logit_scale residual_scale`,
	"grok": `attention.layer_norm_rms_epsilon! attention.output_scale attention.temperature_length
		attn_logit_softcapping embedding_scale expert_feed_forward_length final_logit_softcapping
		logit_scale rope.scaling.yarn_attn_factor rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow
		rope.scaling.yarn_ext_factor router_logit_softcapping`,
	"grovemoe": `attention.layer_norm_rms_epsilon! expert_chunk_feed_forward_length expert_feed_forward_length!
		expert_group_scale experts_per_group`,
	"hunyuan-moe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_shared_feed_forward_length`,
	"hy_v3": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_gating_func
		expert_shared_feed_forward_length expert_weights_norm expert_weights_scale`,
	"jamba": `attention.layer_norm_rms_epsilon! ssm.conv_kernel! ssm.inner_size! ssm.state_size!
		ssm.time_step_rank!`,
	"laguna": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!
		expert_gating_func expert_shared_count expert_shared_feed_forward_length expert_weights_norm
		expert_weights_scale leading_dense_block_count! rope.freq_base_swa`,
	"lfm2moe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length! expert_gating_func
		leading_dense_block_count shortconv.l_cache`,
	"llada-moe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length`,
	"llama4": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!
		interleave_moe_layer_step rope.freq_base_swa`,
	"mellum": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!`,
	"mimo2": `attention.layer_norm_rms_epsilon! attention.sliding_window attention.value_scale
		expert_feed_forward_length! rope.freq_base_swa`,
	"minicpm":    `attention.layer_norm_rms_epsilon! embedding_scale logit_scale residual_scale`,
	"minimax-01": `attention.layer_norm_rms_epsilon! residual_scale`,
	"minimax-m3": `attention.layer_norm_rms_epsilon! attention.indexer.block_size attention.indexer.head_count
		attention.indexer.key_length attention.indexer.local_blocks attention.indexer.top_k
		expert_feed_forward_length! expert_gating_func expert_shared_count! expert_weights_norm
		expert_weights_scale leading_dense_block_count`,
	"mistral3": `attention.layer_norm_rms_epsilon! attention.temperature_scale rope.scaling.yarn_beta_fast
		rope.scaling.yarn_beta_slow rope.scaling.yarn_log_multiplier`,
	"mistral4": `attention.layer_norm_rms_epsilon! attention.key_length_mla attention.kv_lora_rank!
		attention.q_lora_rank attention.temperature_length attention.temperature_scale
		attention.value_length_mla expert_feed_forward_length! expert_gating_func expert_shared_count!
		expert_weights_norm expert_weights_scale leading_dense_block_count rope.scaling.yarn_log_multiplier`,
	"nemotron_h_moe": `attention.layer_norm_rms_epsilon attention.layer_norm_epsilon expert_feed_forward_length
		expert_shared_count expert_shared_feed_forward_length expert_weights_norm expert_weights_scale
		moe_latent_size ssm.conv_kernel! ssm.group_count! ssm.inner_size! ssm.state_size!
		ssm.time_step_rank!`,
	"olmoe":      `attention.layer_norm_rms_epsilon!`,
	"phimoe":     `attention.layer_norm_rms_epsilon!`,
	"qwen2moe":   `attention.layer_norm_rms_epsilon! expert_feed_forward_length expert_shared_feed_forward_length`,
	"qwen3vlmoe": `attention.layer_norm_rms_epsilon! expert_feed_forward_length n_deepstack_layers`,
	"refact":     `attention.layer_norm_rms_epsilon!`,
	"rnd1":       `attention.layer_norm_rms_epsilon! expert_feed_forward_length`,
	"smallthinker": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length
		expert_gating_func rope.freq_base_swa`,
	"step35": `attention.layer_norm_rms_epsilon! attention.sliding_window expert_feed_forward_length!
		expert_gating_func expert_shared_feed_forward_length expert_weights_norm expert_weights_scale
		rope.freq_base_swa`,
}

// otherTypes are the types of further keys that are no u32.
var otherTypes = map[gguf.ValueType]string{
	gguf.Float32: `attention.clamp_kqv attention.compress_rope_freq_base attention.layer_norm_epsilon
		attention.layer_norm_rms_epsilon attention.output_scale attention.scale attention.temperature_scale
		attention.value_scale attn_logit_softcapping embedding_scale expert_group_scale expert_weights_scale
		final_logit_softcapping hyper_connection.epsilon kda.gate_lower_bound logit_scale residual_scale
		rope.freq_base_swa rope.scaling.yarn_attn_factor rope.scaling.yarn_beta_fast
		rope.scaling.yarn_beta_slow rope.scaling.yarn_ext_factor rope.scaling.yarn_log_multiplier
		router_logit_softcapping`,
	gguf.Bool: `expert_weights_norm kda.safe_gate`,
}

// checkFurtherKeys looks at the keys that the architecture has.
func (c *check) checkFurtherKeys() {
	for key := range strings.FieldsSeq(furtherKeys[c.arch]) {
		suffix := strings.TrimSuffix(key, "!")
		rule := keyRule{suffix, gguf.Uint32, suffix != key}
		for typ, suffixes := range otherTypes {
			if slices.Contains(strings.Fields(suffixes), suffix) {
				rule.typ = typ
			}
		}
		if v := c.value(suffix); v.Type() == gguf.Array && rule.typ != gguf.Bool {
			continue // one for each block, which some keys may be
		}
		c.read(rule)
	}
}
