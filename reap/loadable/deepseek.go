package loadable

import (
	"fmt"

	"ggufreap/gguf"
)

// deepseek2 is deepseek2.cpp: DeepSeek V2 to V3.1, Kimi K2, GLM 4.7 Flash.
func deepseek2(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "attention.temperature_scale", "rope.scaling.yarn_log_multiplier")
	l.may(gguf.Uint32, "attention.temperature_length")
	l.expertKeys()
	dense := l.keyOr("leading_dense_block_count", 0)
	a := latentAttention{kvRank: l.key("attention.kv_lora_rank"), key: l.keyOr("attention.key_length_mla", 0), value: l.keyOr("attention.value_length_mla", 0)}
	if !l.lite() {
		a.qRank = l.key("attention.q_lora_rank")
	}
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	l.keyOr("expert_gating_func", 0)
	latent := a.stated()
	if a = l.expanded(a); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		l.compressed(i, a, latent)
		l.need(i, "ffn_norm.weight", l.E)
		l.deepseekFeedForward(i, uint64(i) < dense, true, width, shared)
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}

// lite tells V2 Lite and its like by their blocks: their query is not compressed, whatever
// the metadata says.
func (l *loader) lite() bool {
	return l.trunk == 26 || l.trunk == 27 || l.trunk == 48 && l.V == 128256
}

// trunkOnly reports whether the draft blocks lie in another file.
func (l *loader) trunkOnly() bool {
	return l.m.Tensor(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", l.trunk)) == nil
}

// compressed asks for latent attention, or for the older form that expands key and value
// where the metadata has no lengths of latent heads.
func (l *loader) compressed(block int, a latentAttention, latent bool) {
	l.query(block, a)
	if latent {
		l.latentKeyValue(block, a)
	} else {
		l.need(block, "attn_kv_a_norm.weight", a.kvRank)
		l.need(block, "attn_kv_a_mqa.weight", l.E, a.kvRank+l.rot)
		l.need(block, "attn_kv_b.weight", a.kvRank, l.heads(0)*(a.key-l.rot+a.value))
	}
	l.need(block, "attn_output.weight", l.heads(0)*a.value, l.E)
}

// query asks for the query, compressed or not.
func (l *loader) query(block int, a latentAttention) {
	if a.qRank > 0 {
		l.need(block, "attn_q_a_norm.weight", a.qRank)
		l.need(block, "attn_q_a.weight", l.E, a.qRank)
		l.need(block, "attn_q_b.weight", a.qRank, l.heads(0)*a.key)
	} else {
		l.need(block, "attn_q.weight", l.E, l.heads(0)*a.key)
	}
}

// latentKeyValue asks for the compressed key and value, and what expands them.
func (l *loader) latentKeyValue(block int, a latentAttention) {
	l.need(block, "attn_kv_a_norm.weight", a.kvRank)
	l.need(block, "attn_kv_a_mqa.weight", l.E, a.kvRank+l.rot)
	l.need(block, "attn_k_b.weight", a.key-l.rot, a.kvRank, l.heads(0))
	l.need(block, "attn_v_b.weight", a.kvRank, a.value, l.heads(0))
}

// deepseekFeedForward asks for a dense or a routed part; merged says that gate and up may be
// one tensor.
func (l *loader) deepseekFeedForward(block int, dense, merged bool, width, shared uint64) {
	if dense {
		l.dense(block, l.ff(0))
		return
	}
	l.need(block, "ffn_gate_inp.weight", l.E, l.experts)
	l.want(block, "exp_probs_b.bias", l.experts)
	if merged {
		l.merged(block, width)
	} else {
		l.routed(block, l.E, width)
	}
	l.shared(block, width*shared)
}

// deepseek is deepseek.cpp: the first DeepSeek MoE, with usual attention.
func deepseek(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "expert_weights_scale")
	dense := l.keyOr("leading_dense_block_count", 0)
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.mixture(i, width)
		l.shared(i, width*shared)
	})
}

// deepseek32 is deepseek32.cpp: latent attention with an indexer in every layer.
func deepseek32(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.scaling.yarn_log_multiplier")
	l.sections()
	l.expertKeys()
	width, shared, dense := l.key("expert_feed_forward_length"), l.key("expert_shared_count"), l.keyOr("leading_dense_block_count", 0)
	l.key("expert_count")
	l.key("expert_used_count")
	l.key("expert_gating_func")
	a := latentAttention{qRank: l.key("attention.q_lora_rank"), kvRank: l.key("attention.kv_lora_rank"),
		key: l.keyOr("attention.key_length_mla", 0), value: l.keyOr("attention.value_length_mla", 0)}
	heads, head := l.key("attention.indexer.head_count"), l.key("attention.indexer.key_length")
	l.key("attention.indexer.top_k")
	l.positive("attention.key_length_mla", a.key)
	if l.positive("attention.value_length_mla", a.value); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		l.query(i, a)
		l.latentKeyValue(i, a)
		l.need(i, "attn_output.weight", l.heads(0)*a.value, l.E)
		l.need(i, "ffn_norm.weight", l.E)
		l.need(i, "indexer.k_norm.weight", head)
		l.need(i, "indexer.k_norm.bias", head)
		l.need(i, "indexer.proj.weight", l.E, heads)
		l.need(i, "indexer.attn_k.weight", l.E, head)
		l.need(i, "indexer.attn_q_b.weight", a.qRank, heads*head)
		l.deepseekFeedForward(i, uint64(i) < dense, false, width, shared)
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}
