package loadable

import "ggufreap/gguf"

// glm4moe is glm4-moe.cpp: GLM 4.5 to 4.7. Its draft blocks are never used.
func glm4moe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.sections()
	l.expertKeys()
	width := l.key("expert_feed_forward_length")
	l.key("expert_count")
	shared, dense := l.key("expert_shared_count"), l.keyOr("leading_dense_block_count", 0)
	l.keyOr("expert_gating_func", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	width = l.expertWidth(width)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		l.grouped(i, 1)
		l.need(i, "attn_output.weight", l.keyLen*l.heads(0), l.E)
		l.want(i, "attn_q_norm.weight", l.keyLen)
		l.want(i, "attn_k_norm.weight", l.keyLen)
		l.need(i, "post_attention_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
		} else {
			l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
			l.need(i, "exp_probs_b.bias", l.experts)
			l.routed(i, l.E, width)
			if shared > 0 {
				l.shared(i, width*shared)
			}
		}
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}

// glmDSA is glm-dsa.cpp: GLM 5, latent attention with an indexer.
func glmDSA(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.sections()
	l.checkList("attention.indexer.types", gguf.Uint32, l.trunk)
	l.expertKeys()
	width := l.key("expert_feed_forward_length")
	l.key("expert_count")
	shared, dense := l.key("expert_shared_count"), l.keyOr("leading_dense_block_count", 0)
	l.keyOr("expert_gating_func", 0)
	a := latentAttention{qRank: l.key("attention.q_lora_rank"), kvRank: l.key("attention.kv_lora_rank"),
		key: l.key("attention.key_length_mla"), value: l.key("attention.value_length_mla")}
	heads, head := l.key("attention.indexer.head_count"), l.key("attention.indexer.key_length")
	l.key("attention.indexer.top_k")
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
		l.want(i, "indexer.k_norm.weight", head)
		l.want(i, "indexer.k_norm.bias", head)
		l.want(i, "indexer.proj.weight", l.E, heads)
		l.want(i, "indexer.attn_k.weight", l.E, head)
		l.want(i, "indexer.attn_q_b.weight", a.qRank, heads*head)
		l.deepseekFeedForward(i, uint64(i) < dense, false, width, shared)
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}
