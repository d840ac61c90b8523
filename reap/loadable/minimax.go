package loadable

import "ggufreap/gguf"

// minimaxM2 is minimax-m2.cpp.
func minimaxM2(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.key("expert_feed_forward_length") // read; the shapes follow feed_forward_length
	l.keyOr("expert_gating_func", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.queryKeyValue(i, l.keyLen*l.heads(0), l.valueLen*l.kv(0), l.valueLen*l.kv(0))
		l.need(i, "attn_output.weight", l.keyLen*l.heads(0), l.E)
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "attn_q_norm.weight", l.keyLen*l.heads(0))
		l.need(i, "attn_k_norm.weight", l.keyLen*l.kv(0))
		l.need(i, "ffn_norm.weight", l.E)
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.routed(i, l.E, l.ff(0))
		l.need(i, "exp_probs_b.bias", l.experts)
	})
}

// minimaxM3 is minimax-m3.cpp, whose routed layers have an indexer.
func minimaxM3(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	dense := l.keyOr("leading_dense_block_count", 0)
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	l.key("expert_gating_func")
	heads, head := l.key("attention.indexer.head_count"), l.key("attention.indexer.key_length")
	l.key("attention.indexer.top_k")
	l.positive("attention.indexer.block_size", l.key("attention.indexer.block_size"))
	l.key("attention.indexer.local_blocks")
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "exp_probs_b.bias", l.experts)
		l.mixture(i, width)
		l.shared(i, width*shared)
		l.need(i, "indexer.q_proj.weight", l.E, heads*head)
		l.need(i, "indexer.k_proj.weight", l.E, head)
		l.need(i, "indexer.q_norm.weight", head)
		l.need(i, "indexer.k_norm.weight", head)
	})
}

// minimax01 is minimax-01.cpp: linear attention in all layers but every eighth.
func minimax01(l *loader) {
	l.must(gguf.Float32, rmsEpsilon, "residual_scale")
	linear := l.recurrent(8)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		if linear(i) {
			l.need(i, "attn_norm.weight", l.E)
			l.need(i, "attn_norm_2.weight", l.q(0))
			l.need(i, "attn_qkv.weight", l.E, 3*l.q(0))
			l.need(i, "attn_gate.weight", l.E, l.q(0))
			l.need(i, "attn_output.weight", l.q(0), l.E)
		} else {
			l.attention(i, l.q(0), l.k(0), l.v(0))
		}
		l.need(i, "ffn_norm.weight", l.E)
		l.ungated(i)
	})
}
