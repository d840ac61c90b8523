package loadable

import "ggufreap/gguf"

// Mixtures of experts with usual attention in every layer.

// arctic is arctic.cpp, with a dense part beside the experts.
func arctic(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.need(i, "ffn_norm.weight", l.E)
		l.dense(i, l.E)
		l.need(i, "ffn_norm_exps.weight", l.E)
		l.mixture(i, l.ff(0))
	})
}

// dbrx is dbrx.cpp.
func dbrx(l *loader) {
	l.must(gguf.Float32, "attention.layer_norm_epsilon", "attention.clamp_kqv")
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "attn_qkv.weight", l.E, l.E+2*l.v(0))
		l.need(i, "attn_output.weight", l.E, l.E)
		l.need(i, "attn_output_norm.weight", l.E)
		l.mixture(i, l.ff(0))
	})
}

// grok is grok.cpp; its dense part may be absent.
func grok(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "logit_scale", "embedding_scale", "attention.output_scale", "attn_logit_softcapping",
		"router_logit_softcapping", "final_logit_softcapping", "rope.scaling.yarn_ext_factor",
		"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow")
	l.keyOr("attention.temperature_length", 0)
	width := l.keyOr("expert_feed_forward_length", 0)
	if l.stopped {
		return
	}
	if width == 0 {
		width = l.ff(0)
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.need(i, "attn_output_norm.weight", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		l.want(i, "ffn_gate.weight", l.E, l.ff(0))
		l.want(i, "ffn_down.weight", l.ff(0), l.E)
		l.want(i, "ffn_up.weight", l.E, l.ff(0))
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.want(i, "ffn_gate_exps.weight", l.E, width, l.experts)
		l.need(i, "ffn_down_exps.weight", width, l.E, l.experts)
		l.need(i, "ffn_up_exps.weight", l.E, width, l.experts)
		if !l.want(i, "layer_output_norm.weight", l.E) {
			l.need(i, "post_ffw_norm.weight", l.E)
		}
	})
}

// olmoe is olmoe.cpp.
func olmoe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.headNorms(i, l.E, l.E)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.ff(0))
	})
}

// phimoe is phimoe.cpp.
func phimoe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.vocabularyTensors(true)
	l.need(outer, "output_norm.bias", l.E)
	l.need(outer, "output.bias", l.V)
	if heads := l.heads(0); heads > 0 {
		l.want(outer, "rope_factors_long.weight", l.E/heads/2)
		l.want(outer, "rope_factors_short.weight", l.E/heads/2)
	}
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.need(i, "attn_norm.bias", l.E)
		l.need(i, "attn_output.bias", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		l.need(i, "ffn_norm.bias", l.E)
		l.mixture(i, l.ff(0))
	})
}

// lladaMoE is llada-moe.cpp.
func lladaMoE(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width := l.keyOr("expert_feed_forward_length", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.expertWidth(width))
	})
}

// mellum is mellum.cpp.
func mellum(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width := l.key("expert_feed_forward_length")
	if l.mayWindow(4, false); l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.expertWidth(width))
	})
}

// smallthinker is smallthinker.cpp.
func smallthinker(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width := l.keyOr("expert_feed_forward_length", 0)
	l.keyOr("expert_gating_func", 0)
	if l.mayWindow(4, true); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, width)
	})
}

// grovemoe is grovemoe.cpp: further experts for every few of the usual ones.
func grovemoe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon, "expert_group_scale")
	width, chunk := l.key("expert_feed_forward_length"), l.keyOr("expert_chunk_feed_forward_length", 0)
	each := l.key("experts_per_group")
	if l.positive("experts_per_group", each); l.stopped {
		return
	}
	if chunk == 0 {
		chunk = l.keyLen
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.expertWidth(width))
		l.need(i, "ffn_gate_chexps.weight", l.E, chunk, l.experts/each)
		l.need(i, "ffn_down_chexps.weight", chunk, l.E, l.experts/each)
		l.need(i, "ffn_up_chexps.weight", l.E, chunk, l.experts/each)
	})
}

// hunyuanMoE is hunyuan-moe.cpp; the width of an expert is that of a dense layer.
func hunyuanMoE(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.key("expert_feed_forward_length")
	shared := l.keyOr("expert_shared_feed_forward_length", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.k(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.ff(0))
		if shared > 0 {
			l.shared(i, shared)
		} else {
			l.shared(i, l.ff(i))
		}
	})
}

// dots1 is dots1.cpp, with as many heads for keys and values as for queries.
func dots1(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	dense := l.keyOr("leading_dense_block_count", 0)
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	l.keyOr("expert_gating_func", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.q(0), l.q(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.deepseekFeedForward(i, uint64(i) < dense, false, width, shared)
	})
}

// afmoe is afmoe.cpp.
func afmoe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	dense := l.keyOr("leading_dense_block_count", 0)
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	l.keyOr("expert_gating_func", 0)
	if l.mayWindow(4, false); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.k(0), l.v(0))
		l.need(i, "post_attention_norm.weight", l.E)
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "attn_gate.weight", l.E, l.q(0))
		l.need(i, "ffn_norm.weight", l.E)
		l.need(i, "post_ffw_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "exp_probs_b.bias", l.experts)
		l.mixture(i, width)
		if shared > 0 {
			l.shared(i, width*shared)
		}
	})
}

// laguna is laguna.cpp; its attention has a gate for each head or for each of their numbers.
func laguna(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	dense, width := l.key("leading_dense_block_count"), l.key("expert_feed_forward_length")
	shared := l.keyOr("expert_shared_count", 1) * width
	if stated := l.keyOr("expert_shared_feed_forward_length", 0); stated > 0 {
		shared = stated
	}
	l.keyOr("expert_gating_func", 0)
	if l.mayWindow(4, true); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		q := l.keyLen * l.heads(i)
		l.attention(i, q, l.keyLen*l.kv(i), l.valueLen*l.kv(i))
		l.headNorms(i, l.keyLen, l.keyLen)
		gate := l.heads(i)
		if t := l.tensor(i, "attn_gate.weight"); t != nil && dim(t, 1) == q {
			gate = q
		}
		l.need(i, "attn_gate.weight", l.E, gate)
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "exp_probs_b.bias", l.experts)
		l.mixture(i, width)
		l.shared(i, shared)
	})
}

// ernieMoE is ernie4-5.cpp with experts.
func ernieMoE(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.sections()
	width, shared := l.key("expert_feed_forward_length"), l.keyOr("expert_shared_feed_forward_length", 0)
	l.key("interleave_moe_layer_step")
	dense := l.keyOr("leading_dense_block_count", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.want(i, "attn_output.bias", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.want(i, "exp_probs_b.bias", l.experts)
		l.want(i, "ffn_gate_exps.weight", l.E, width, l.experts)
		l.need(i, "ffn_down_exps.weight", width, l.E, l.experts)
		l.need(i, "ffn_up_exps.weight", l.E, width, l.experts)
		if shared > 0 {
			l.shared(i, shared)
		}
	})
}

// llama4 is llama4.cpp: experts in every layer or in one of every few.
func llama4(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width, step := l.key("expert_feed_forward_length"), l.key("interleave_moe_layer_step")
	if _, there := l.md.Arch("attention.sliding_window"); l.hasWindow() || !there {
		l.may(gguf.Float32, "rope.freq_base_swa")
		l.slideEvery(4, false)
	}
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.want(outer, "rope_freqs.weight", l.rot/2)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.k(0), l.v(0))
		l.need(i, "ffn_norm.weight", l.E)
		if step == 0 || (uint64(i)+1)%step != 0 {
			l.dense(i, l.ff(0))
			return
		}
		l.mixture(i, width)
		l.shared(i, width)
	})
}
