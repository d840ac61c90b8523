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
		l.unused = i >= l.trunk
		l.optional = l.unused && l.trunkOnly()
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
	heads := l.heads(0)
	if a.qRank > 0 {
		l.need(block, "attn_q_a_norm.weight", a.qRank)
		l.need(block, "attn_q_a.weight", l.E, a.qRank)
		l.need(block, "attn_q_b.weight", a.qRank, heads*a.key)
	} else {
		l.need(block, "attn_q.weight", l.E, heads*a.key)
	}
	l.need(block, "attn_kv_a_norm.weight", a.kvRank)
	l.need(block, "attn_kv_a_mqa.weight", l.E, a.kvRank+l.rot)
	if latent {
		l.need(block, "attn_k_b.weight", a.key-l.rot, a.kvRank, heads)
		l.need(block, "attn_v_b.weight", a.kvRank, a.value, heads)
	} else {
		l.need(block, "attn_kv_b.weight", a.kvRank, heads*(a.key-l.rot+a.value))
	}
	l.need(block, "attn_output.weight", heads*a.value, l.E)
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
