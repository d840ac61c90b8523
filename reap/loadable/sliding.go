package loadable

import "ggufreap/gguf"

// Mixtures of experts whose layers differ in their sliding windows, and which may draft.

// cohere2MoE is cohere2moe.cpp, whose layers have one norm.
func cohere2MoE(l *loader) {
	l.may(gguf.Float32, rmsEpsilon, "attention.layer_norm_epsilon", "rope.freq_base_swa")
	l.must(gguf.Float32, "logit_scale")
	l.expertKeys()
	l.key("attention.sliding_window")
	dense, width := l.key("leading_dense_block_count"), l.key("expert_feed_forward_length")
	shared, count := l.keyOr("expert_shared_feed_forward_length", 0), l.keyOr("expert_shared_count", 0)
	l.keyOr("expert_gating_func", 0)
	l.slideEvery(4, true)
	if l.wantEpsilon(); l.stopped {
		return
	}
	if width == 0 {
		width = l.ff(0)
	}
	if shared == 0 {
		shared = width * count
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.attention(i, l.q(0), l.v(0), l.v(0))
		if !l.unused && uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.merged(i, width)
		if count > 0 {
			l.shared(i, shared)
		}
		if l.unused {
			l.nextToken(i)
		}
	})
}

// wantEpsilon wants one of the two numbers that keep norms from dividing by zero.
func (l *loader) wantEpsilon() {
	_, rms := l.md.Arch(rmsEpsilon)
	if _, usual := l.md.Arch("attention.layer_norm_epsilon"); !rms && !usual {
		l.must(gguf.Float32, rmsEpsilon)
	}
}

// hyV3 is hy-v3.cpp; a layer is dense or has experts, and llama.cpp asks for neither.
func hyV3(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	width, shared := l.key("expert_feed_forward_length"), l.keyOr("expert_shared_feed_forward_length", 0)
	l.keyOr("expert_gating_func", 0)
	if l.stopped {
		return
	}
	if width = l.expertWidth(width); shared == 0 {
		shared = width
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.attention(i, l.q(0), l.k(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		if l.unused {
			l.nextToken(i)
		}
		l.optional = true
		l.unused = false // what follows is loaded in draft blocks too
		l.dense(i, l.ff(0))
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.need(i, "exp_probs_b", l.experts)
		l.merged(i, width)
		l.shared(i, shared)
	})
}

// mimo2 is mimo2.cpp; a layer is dense or has experts, and llama.cpp asks for neither.
func mimo2(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa", "attention.value_scale")
	width := l.key("expert_feed_forward_length")
	l.key("attention.sliding_window")
	if l.slideListed(); l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		l.queryKeyValue(i, l.keyLen*l.heads(i), l.k(i), l.v(i))
		l.need(i, "attn_output.weight", l.valueLen*l.heads(i), l.E)
		l.want(i, "attn_sinks.weight", l.heads(i))
		l.need(i, "ffn_norm.weight", l.E)
		if l.unused {
			l.nextToken(i)
			l.want(i, "layer_output_norm.weight", l.E)
		}
		l.optional = true
		l.dense(i, l.ff(0))
		l.mixture(i, width)
		l.need(i, "exp_probs_b.bias", l.experts)
	})
}

// step35 is step35.cpp; a layer is dense or has experts, and llama.cpp asks for neither. Layers
// without a sliding window rotate half as much as the metadata states.
func step35(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa")
	l.expertKeys()
	width, shared := l.key("expert_feed_forward_length"), l.keyOr("expert_shared_feed_forward_length", 0)
	l.keyOr("expert_gating_func", 0)
	l.key("attention.sliding_window")
	l.clamps(l.blocks)
	l.full.rot /= 2
	if l.slideListed(); l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.rotations(l.mostRotated())
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		l.queryKeyValue(i, l.keyLen*l.heads(i), l.k(i), l.v(i))
		l.need(i, "attn_output.weight", l.valueLen*l.heads(i), l.E)
		l.need(i, "ffn_norm.weight", l.E)
		if l.unused {
			l.nextToken(i)
		}
		l.optional, l.unused = true, false // what follows is loaded in draft blocks too
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "attn_gate.weight", l.E, l.heads(i))
		l.dense(i, l.ff(0))
		l.mixture(i, width)
		l.need(i, "exp_probs_b.bias", l.experts)
		l.shared(i, shared)
	})
}

// mostRotated is the largest length that a layer of the trunk rotates.
func (l *loader) mostRotated() uint64 {
	most := uint64(0)
	for block := range l.trunk {
		most = max(most, l.head(block).rot)
	}
	return most
}

// exaoneMoE is exaone-moe.cpp. Its draft blocks are dense and never used.
func exaoneMoE(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa")
	l.expertKeys()
	width, shared := l.key("expert_feed_forward_length"), l.keyOr("expert_shared_feed_forward_length", 0)
	dense := l.keyOr("leading_dense_block_count", 0)
	l.keyOr("expert_shared_count", 0)
	l.key("expert_gating_func")
	l.key("attention.sliding_window")
	if l.slideEvery(4, false); l.stopped {
		return
	}
	if shared == 0 {
		shared = width
	}
	l.vocabularyTensors(true)
	l.want(outer, "rope_freqs.weight", l.rot/2)
	l.needDrafts()
	l.eachBlock(l.blocks, func(i int) {
		l.unused = i >= l.trunk
		l.attention(i, l.q(0), l.k(0), l.k(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense || l.unused {
			l.dense(i, l.ff(0))
		} else {
			l.want(i, "exp_probs_b.bias", l.experts)
			l.mixture(i, width)
			l.shared(i, shared)
		}
		if l.unused {
			l.nextToken(i)
		}
	})
}

// gemma4 is gemma4.cpp: the layers with a router have experts beside the dense part, and the
// last ones may share keys and values with earlier ones.
func gemma4(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa", "final_logit_softcapping")
	l.must(gguf.Uint32, "attention.sliding_window", "attention.key_length_swa", "attention.value_length_swa")
	sharing, perLayer := l.keyOr("attention.shared_kv_layers", 0), l.key("embedding_length_per_layer_input")
	width := l.keyOr("expert_feed_forward_length", 0)
	l.slideListed()
	l.wantEqualHeads(l.head(0), "")
	if l.wantEqualHeads(l.sliding, "_swa"); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	if perLayer > 0 {
		l.need(outer, "per_layer_token_embd.weight", perLayer*uint64(l.trunk), l.V)
		l.need(outer, "per_layer_model_proj.weight", l.E, perLayer*uint64(l.trunk))
		l.need(outer, "per_layer_proj_norm.weight", perLayer)
	}
	l.eachBlock(l.trunk, func(i int) {
		l.gemmaAttention(i, i >= l.blocks-int(sharing))
		l.need(i, "ffn_norm.weight", l.E)
		l.dense(i, l.ff(i))
		l.need(i, "post_ffw_norm.weight", l.E)
		if l.want(i, "ffn_gate_inp.weight", l.E, l.experts) {
			l.need(i, "ffn_gate_inp.scale", l.E)
			l.need(i, "pre_ffw_norm_2.weight", l.E)
			l.need(i, "post_ffw_norm_1.weight", l.E)
			l.need(i, "post_ffw_norm_2.weight", l.E)
			l.merged(i, width)
		}
		if perLayer > 0 {
			l.need(i, "inp_gate.weight", l.E, perLayer)
			l.need(i, "proj.weight", perLayer, l.E)
			l.need(i, "post_norm.weight", l.E)
		}
	})
}

// wantEqualHeads refuses keys and values of different lengths.
func (l *loader) wantEqualHeads(h headSize, suffix string) {
	if key := l.md.ArchKey("attention.key_length" + suffix); h.key != h.value && !l.stopped {
		l.refuse(l.keyPlace(key), "is %d, %q is %d: llama.cpp wants them equal for %s", h.key, l.md.ArchKey("attention.value_length"+suffix), h.value, l.arch)
	}
}

// gemmaAttention asks for the attention of a layer; one that takes its keys from another layer
// may be without its own.
func (l *loader) gemmaAttention(block int, sharing bool) {
	keys := l.need
	if sharing {
		keys = l.want
	}
	head := l.head(block).key
	l.need(block, "attn_norm.weight", l.E)
	l.need(block, "attn_q.weight", l.E, l.q(block))
	keys(block, "attn_k.weight", l.E, l.k(block))
	l.want(block, "attn_v.weight", l.E, l.v(block))
	l.need(block, "attn_output.weight", l.q(block), l.E)
	l.need(block, "attn_q_norm.weight", head)
	keys(block, "attn_k_norm.weight", head)
	l.need(block, "post_attention_norm.weight", l.E)
	l.want(block, "layer_output_scale.weight", 1)
	if !l.windowed(block) {
		l.need(outer, "rope_freqs.weight", head/2)
	}
}
