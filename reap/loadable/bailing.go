package loadable

import "ggufreap/gguf"

// bailingmoe is bailingmoe.cpp: Ling, whose heads are as long as what is rotated of them.
func bailingmoe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	l.keyOr("leading_dense_block_count", 0) // read, and not heeded
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.heads(0)*l.rot, l.kv(0)*l.rot, l.kv(0)*l.rot)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, width)
		l.shared(i, width*shared)
	})
}

// bailingmoe2 is bailingmoe2.cpp. Its draft blocks are never used.
func bailingmoe2(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.expertKeys()
	dense := l.keyOr("leading_dense_block_count", 0)
	width, count := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	shared := l.keyOr("expert_shared_feed_forward_length", 0)
	l.key("expert_gating_func")
	if l.stopped {
		return
	}
	if shared == 0 {
		shared = width
	}
	l.vocabularyTensors(true)
	l.needDrafts()
	l.eachBlock(l.blocks, func(i int) {
		l.unused = i >= l.trunk
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "attn_qkv.weight", l.E, l.E+2*l.v(0))
		l.need(i, "attn_output.weight", l.q(0), l.E)
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
		} else {
			l.want(i, "exp_probs_b.bias", l.experts)
			l.mixture(i, width)
			l.shared(i, shared*count)
		}
		if i >= l.trunk {
			l.nextToken(i)
			l.need(i, "layer_output_norm.weight", l.E)
		}
	})
}

// bailingmoe3 is bailingmoe3.cpp: KDA and MLA layers, as in Kimi's.
func bailingmoe3(l *loader) {
	l.must(gguf.Float32, rmsEpsilon, "kda.gate_lower_bound")
	l.may(gguf.Bool, "kda.safe_gate")
	l.expertKeys()
	l.clamps(l.blocks)
	a := latentAttention{key: l.key("attention.key_length_mla"), value: l.key("attention.value_length_mla"),
		kvRank: l.key("attention.kv_lora_rank"), qRank: l.keyOr("attention.q_lora_rank", 0)}
	conv, head := l.key("ssm.conv_kernel"), l.key("kda.head_dim")
	width, count := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	shared, dense := l.keyOr("expert_shared_feed_forward_length", 0), l.key("leading_dense_block_count")
	l.key("expert_gating_func")
	if l.wantSafeGate(); l.stopped {
		return
	}
	if shared == 0 {
		shared = width * max(count, 1)
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.blocks, func(i int) {
		l.beginBlock(i)
		l.need(i, "attn_norm.weight", l.E)
		if i < l.trunk && l.keyless(i) {
			l.bailingDelta(i, conv, head)
		} else {
			l.query(i, a)
			l.latentKeyValue(i, a)
			l.need(i, "attn_gate.weight", l.E, l.heads(0))
			l.need(i, "attn_output.weight", l.heads(0)*a.value, l.E)
		}
		l.need(i, "ffn_norm.weight", l.E)
		if i < l.trunk && uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.need(i, "exp_probs_b.bias", l.experts)
		l.mixture(i, width)
		l.shared(i, shared)
		if i >= l.trunk {
			l.draftInput(i)
			l.need(i, "layer_output_norm.weight", l.E)
		}
	})
}

// wantSafeGate refuses gates that llama.cpp has no formula for.
func (l *loader) wantSafeGate() {
	if v := l.value("kda.safe_gate"); v.Type() == gguf.Bool {
		if safe, _ := v.Bool(); !safe {
			l.refuse(l.keyPlace(l.md.ArchKey("kda.safe_gate")), "is false, llama.cpp wants true")
		}
	}
	if bound, ok := l.value("kda.gate_lower_bound").Float(); ok && !(bound < 0) {
		l.refuse(l.keyPlace(l.md.ArchKey("kda.gate_lower_bound")), "is %v, llama.cpp wants a number below 0", bound)
	}
}

func (l *loader) bailingDelta(block int, conv, head uint64) {
	inner := head * l.heads(0)
	l.convolved(block, conv, inner)
	l.need(block, "ssm_f_a.weight", l.E, inner)
	l.need(block, "ssm_beta.weight", l.E, l.heads(0))
	l.need(block, "ssm_a", 1, l.heads(0))
	l.need(block, "ssm_dt.bias", inner)
	l.need(block, "ssm_g_a.weight", l.E, inner)
	l.need(block, "ssm_norm.weight", head)
	l.need(block, "attn_output.weight", inner, l.E)
}
