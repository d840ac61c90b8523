package loadable

import "ggufreap/gguf"

// Mixtures of experts whose layers have a state space or a short convolution in the place of
// attention.

// A stateSpace is the sizes of Mamba layers.
type stateSpace struct{ conv, inner, state, rank, groups uint64 }

// stateSpace reads the sizes; the second version of Mamba has groups.
func (l *loader) stateSpace(grouped bool) stateSpace {
	s := stateSpace{conv: l.key("ssm.conv_kernel"), inner: l.key("ssm.inner_size"), state: l.key("ssm.state_size"), rank: l.key("ssm.time_step_rank")}
	if grouped {
		s.groups = l.key("ssm.group_count")
		l.positive("ssm.group_count", s.groups)
	}
	return s
}

// wantTwice refuses an inner size other than the one that llama.cpp builds for.
func (l *loader) wantTwice(s stateSpace) {
	if s.inner != 2*l.E && !l.stopped {
		l.refuse(l.keyPlace(l.md.ArchKey("ssm.inner_size")), "is %d, llama.cpp wants twice the model's width, %d", s.inner, 2*l.E)
		l.stopped = true
	}
}

// mamba2 asks for a layer of the second version.
func (l *loader) mamba2(block int, s stateSpace) {
	mixed := s.inner + 2*s.groups*s.state
	l.need(block, "ssm_in.weight", l.E, s.inner+mixed+s.rank)
	l.need(block, "ssm_conv1d.weight", s.conv, mixed)
	l.want(block, "ssm_conv1d.bias", mixed)
	l.need(block, "ssm_dt.bias", s.rank)
	l.need(block, "ssm_a", 1, s.rank)
	l.need(block, "ssm_d", 1, s.rank)
	l.need(block, "ssm_norm.weight", s.inner/s.groups, s.groups)
	l.need(block, "ssm_out.weight", s.inner, l.E)
}

// mamba asks for a layer of the first version, with Jamba's norms.
func (l *loader) mamba(block int, s stateSpace) {
	l.need(block, "ssm_in.weight", l.E, 2*s.inner)
	l.need(block, "ssm_conv1d.weight", s.conv, s.inner)
	l.need(block, "ssm_conv1d.bias", s.inner)
	l.need(block, "ssm_x.weight", s.inner, s.rank+2*s.state)
	l.need(block, "ssm_dt_norm.weight", s.rank)
	l.need(block, "ssm_dt.weight", s.rank, s.inner)
	l.need(block, "ssm_dt.bias", s.inner)
	l.need(block, "ssm_b_norm.weight", s.state)
	l.need(block, "ssm_c_norm.weight", s.state)
	l.need(block, "ssm_a", s.state, s.inner)
	l.need(block, "ssm_d", s.inner)
	l.need(block, "ssm_out.weight", s.inner, l.E)
}

// jamba is jamba.cpp: the layers with a router have experts.
func jamba(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	s := l.stateSpace(false)
	if l.wantTwice(s); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		if l.keyless(i) {
			l.need(i, "attn_norm.weight", l.E)
			l.mamba(i, s)
		} else {
			l.attention(i, l.E, l.v(i), l.v(i))
		}
		l.need(i, "ffn_norm.weight", l.E)
		if l.want(i, "ffn_gate_inp.weight", l.E, l.experts) {
			l.routed(i, l.E, l.ff(0))
		} else {
			l.dense(i, l.ff(0))
		}
	})
}

// graniteHybrid is granite-hybrid.cpp.
func graniteHybrid(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "logit_scale", "residual_scale", "embedding_scale", "attention.scale")
	s, shared := l.stateSpace(true), l.keyOr("expert_shared_feed_forward_length", 0)
	if l.wantTwice(s); l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.want(outer, "rope_freqs.weight", l.rot/2)
	l.eachBlock(l.trunk, func(i int) {
		if l.keyless(i) {
			l.need(i, "attn_norm.weight", l.E)
			l.mamba2(i, s)
		} else {
			l.attention(i, l.keyLen*l.heads(i), l.k(i), l.v(i))
			l.want(i, "attn_output.bias", l.E)
		}
		l.need(i, "ffn_norm.weight", l.E)
		if l.experts == 0 {
			l.denseBiased(i, l.ff(0))
			return
		}
		l.ungated(i)
		if shared > 0 {
			l.shared(i, shared)
		}
	})
}

// nemotronHMoE is nemotron-h.cpp with experts: each layer is a state space, attention or
// experts without a gate, which may live in a latent space.
func nemotronHMoE(l *loader) {
	l.may(gguf.Float32, rmsEpsilon)
	l.must(gguf.Float32, "attention.layer_norm_epsilon")
	l.expertKeys()
	s, width := l.stateSpace(true), l.keyOr("expert_feed_forward_length", 0)
	shared, in := l.keyOr("expert_shared_feed_forward_length", 0), l.keyOr("moe_latent_size", 0)
	l.keyOr("expert_shared_count", 0)
	if l.stopped {
		return
	}
	if in == 0 {
		in = l.E
	}
	l.vocabularyTensors(false)
	l.needDrafts()
	l.eachBlock(l.blocks, func(i int) {
		l.unused = i >= l.trunk
		switch {
		case l.unused:
			l.attention(i, l.keyLen*l.heads(i), l.k(i), l.v(i))
			l.want(i, "attn_output.bias", l.E)
			l.need(i, "post_attention_norm.weight", l.E)
			l.nemotronExperts(i, in, l.expertWidth(width), shared)
			l.draftInput(i)
			l.need(i, "nextn.shared_head_norm.weight", l.E)
		case l.ff(i) == 0 && l.keyless(i):
			l.need(i, "attn_norm.weight", l.E)
			l.mamba2(i, s)
		case l.ff(i) == 0:
			l.attention(i, l.keyLen*l.heads(i), l.k(i), l.v(i))
			l.want(i, "attn_output.bias", l.E)
		default:
			l.need(i, "attn_norm.weight", l.E)
			l.want(i, "ffn_latent_down.weight", l.E, in)
			l.want(i, "ffn_latent_up.weight", in, l.E)
			l.nemotronExperts(i, in, l.expertWidth(width), shared)
		}
	})
}

func (l *loader) nemotronExperts(block int, in, width, shared uint64) {
	if l.experts == 0 {
		l.need(block, "ffn_down.weight", l.ff(block), l.E)
		l.need(block, "ffn_up.weight", l.E, l.ff(block))
		l.want(block, "ffn_down.bias", l.E)
		l.want(block, "ffn_up.bias", l.ff(block))
		return
	}
	l.need(block, "ffn_gate_inp.weight", l.E, l.experts)
	l.need(block, "exp_probs_b.bias", l.experts)
	l.need(block, "ffn_down_exps.weight", width, in, l.experts)
	l.need(block, "ffn_up_exps.weight", in, width, l.experts)
	l.need(block, "ffn_down_shexp.weight", shared, l.E)
	l.need(block, "ffn_up_shexp.weight", l.E, shared)
}

// lfm2MoE is lfm2moe.cpp.
func lfm2MoE(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	cached, width := l.key("shortconv.l_cache"), l.key("expert_feed_forward_length")
	dense := l.keyOr("leading_dense_block_count", 0)
	l.key("expert_gating_func")
	if l.stopped {
		return
	}
	l.need(outer, "token_embd.weight", l.E, l.V)
	l.need(outer, "token_embd_norm.weight", l.E)
	l.want(outer, "output.weight", l.E, l.V)
	out := l.keyOr("embedding_length_out", l.E)
	l.want(outer, "dense_2.weight", l.E, out)
	l.want(outer, "dense_2.bias", out)
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "ffn_norm.weight", l.E)
		if uint64(i) < dense {
			l.dense(i, l.ff(0))
		} else {
			l.mixture(i, width)
			l.need(i, "exp_probs_b.bias", l.experts)
		}
		if l.keyless(i) {
			l.need(i, "attn_norm.weight", l.E)
			l.need(i, "shortconv.conv.weight", cached, l.E)
			l.need(i, "shortconv.in_proj.weight", l.E, 3*l.E)
			l.need(i, "shortconv.out_proj.weight", l.E, l.E)
		} else {
			l.attention(i, l.E, l.k(i), l.v(i))
			l.headNorms(i, l.keyLen, l.keyLen)
		}
	})
}
