package loadable

import "ggufreap/gguf"

// latentAttention holds the sizes of multi-head latent attention (MLA).
type latentAttention struct {
	qRank, kvRank uint64 // of the compressed query, 0 without one, and of key and value
	key, value    uint64 // of a head when it is not compressed
}

// stated reports whether the metadata gives the lengths of latent heads.
func (a latentAttention) stated() bool { return a.key != 0 && a.value != 0 }

// expanded takes the lengths of usual heads where those of latent ones are not stated. Of a
// key's length a part is rotated, and the rest is what is compressed.
func (l *loader) expanded(a latentAttention) latentAttention {
	suffix := "attention.key_length_mla"
	if !a.stated() {
		a.key, a.value = l.keyLen, l.valueLen
		suffix = "attention.key_length"
	}
	if a.key < l.rot && !l.stopped {
		l.refuse(l.keyPlace(l.md.ArchKey(suffix)), "is %d, of which %q takes %d: llama.cpp wants no less", a.key, l.md.ArchKey("rope.dimension_count"), l.rot)
		l.stopped = true
	}
	return a
}

// kimiK3 is kimi-k3.cpp: KDA and MLA blocks, experts in a latent space.
func kimiK3(l *loader) {
	l.must(gguf.Float32, rmsEpsilon, "activation.situ_beta", "activation.situ_linear_beta")
	l.may(gguf.Float32, "kda.gate_lower_bound")
	l.expertKeys()
	a := latentAttention{key: l.key("attention.key_length_mla"), value: l.key("attention.value_length_mla"),
		qRank: l.keyOr("attention.q_lora_rank", 0), kvRank: l.key("attention.kv_lora_rank")}
	conv, head := l.key("ssm.conv_kernel"), l.key("kda.head_dim")
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	dense := l.keyOr("leading_dense_block_count", 0)
	l.key("expert_gating_func")
	latent := l.keyOr("expert_latent_length", 0)
	residual := l.key("attn_res.block_size") > 0
	if l.stopped {
		return
	}
	l.valueLen = a.kvRank
	if a = l.expanded(a); l.stopped {
		return
	}
	l.vocabularyTensors(true)
	if residual {
		l.need(outer, "output_res_score.weight", l.E)
	}
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		if residual {
			l.need(i, "attn_res_score.weight", l.E)
			l.need(i, "ffn_res_score.weight", l.E)
		}
		if l.kv(i) == 0 {
			l.kda(i, conv, head)
			l.need(i, "ssm_a", l.heads(0))
			l.need(i, "ssm_g.weight", l.E, head*l.heads(0))
		} else {
			l.mla(i, a)
			l.want(i, "attn_gate.weight", l.E, l.heads(0)*a.value)
		}
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.kimiExperts(i, latent, width, shared)
	})
}

// kimiExperts asks for the experts of both; latent is the width of their input, 0 for the
// model's.
func (l *loader) kimiExperts(block int, latent, width, shared uint64) {
	l.need(block, "ffn_gate_inp.weight", l.E, l.experts)
	l.need(block, "exp_probs_b.bias", l.experts)
	if latent > 0 {
		l.routed(block, latent, width)
		l.need(block, "ffn_routed_down.weight", l.E, latent)
		l.need(block, "ffn_routed_up.weight", latent, l.E)
		l.want(block, "ffn_routed_norm.weight", latent)
	} else {
		l.routed(block, l.E, width)
	}
	shared = width * max(shared, 1)
	l.want(block, "ffn_gate_shexp.weight", l.E, shared)
	l.want(block, "ffn_down_shexp.weight", shared, l.E)
	l.want(block, "ffn_up_shexp.weight", l.E, shared)
}

// kda asks for what the linear attention of both has.
func (l *loader) kda(block int, conv, head uint64) {
	heads := l.heads(0)
	inner := head * heads
	l.convolved(block, conv, inner)
	l.need(block, "ssm_f_a.weight", l.E, head)
	l.need(block, "ssm_f_b.weight", head, inner)
	l.need(block, "ssm_beta.weight", l.E, heads)
	l.need(block, "ssm_dt.bias", inner)
	l.need(block, "ssm_norm.weight", head)
	l.need(block, "attn_output.weight", inner, l.E)
}

// convolved asks for queries, keys and values of a linear attention, with a convolution each.
func (l *loader) convolved(block int, conv, inner uint64) {
	for _, name := range []string{"ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight"} {
		l.need(block, name, conv, 1, inner)
	}
	l.queryKeyValue(block, inner, inner, inner)
}

// mla asks for latent attention in the form that may leave the query uncompressed.
func (l *loader) mla(block int, a latentAttention) {
	heads := l.heads(0)
	l.need(block, "attn_kv_a_norm.weight", a.kvRank)
	if l.want(block, "attn_q_a_norm.weight", a.qRank) {
		l.need(block, "attn_q_a.weight", l.E, a.qRank)
		l.need(block, "attn_q_b.weight", a.qRank, heads*a.key)
	} else {
		l.need(block, "attn_q.weight", l.E, heads*a.key)
	}
	l.need(block, "attn_kv_a_mqa.weight", l.E, a.kvRank+l.rot)
	if !l.want(block, "attn_kv_b.weight", a.kvRank, heads*(a.key-l.rot+a.value)) {
		l.need(block, "attn_k_b.weight", a.key-l.rot, a.kvRank, heads)
		l.need(block, "attn_v_b.weight", a.kvRank, a.value, heads)
	}
	l.need(block, "attn_output.weight", heads*a.value, l.E)
}

// kimiLinear is kimi-linear.cpp.
func kimiLinear(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "expert_weights_scale")
	a := latentAttention{key: l.key("attention.key_length_mla"), value: l.key("attention.value_length_mla"), kvRank: l.key("attention.kv_lora_rank")}
	conv, head := l.key("ssm.conv_kernel"), l.key("kda.head_dim")
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	dense := l.keyOr("leading_dense_block_count", 0)
	l.key("expert_gating_func")
	if l.stopped {
		return
	}
	if a = l.expanded(a); l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		if l.kv(i) == 0 {
			l.kda(i, conv, head)
			l.need(i, "ssm_a", 1, l.heads(0))
			l.need(i, "ssm_g_a.weight", l.E, head)
			l.need(i, "ssm_g_b.weight", head, head*l.heads(0))
		} else {
			l.mla(i, a)
		}
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
			return
		}
		l.kimiExperts(i, 0, width, shared)
	})
}
