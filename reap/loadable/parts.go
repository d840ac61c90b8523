package loadable

import "ggufreap/gguf"

// The parts that architectures share.

// vocabularyTensors asks for embedding, last norm and output; a model whose output may be
// absent takes the embedding in its place.
func (l *loader) vocabularyTensors(outputNeeded bool) {
	l.need(outer, "token_embd.weight", l.E, l.V)
	l.need(outer, "output_norm.weight", l.E)
	if outputNeeded {
		l.need(outer, "output.weight", l.E, l.V)
	} else {
		l.want(outer, "output.weight", l.E, l.V)
	}
}

// queryKeyValue asks for the three projections, or for one that holds all
// (llama_model_base::create_tensor_qkv).
func (l *loader) queryKeyValue(block int, q, k, v uint64) {
	ask := l.need
	if l.unused {
		ask = l.want
	}
	if l.want(block, "attn_qkv.weight", l.E, q+k+v) {
		l.want(block, "attn_qkv.bias", q+k+v)
		if !l.unused {
			return
		}
	} else if l.unused {
		l.want(block, "attn_qkv.bias", q+k+v)
	}
	ask(block, "attn_q.weight", l.E, q)
	ask(block, "attn_k.weight", l.E, k)
	ask(block, "attn_v.weight", l.E, v)
	l.want(block, "attn_q.bias", q)
	l.want(block, "attn_k.bias", k)
	l.want(block, "attn_v.bias", v)
}

// attention asks for a block's first norm, its projections, and the one of its output.
func (l *loader) attention(block int, q, k, v uint64) {
	l.need(block, "attn_norm.weight", l.E)
	l.queryKeyValue(block, q, k, v)
	l.need(block, "attn_output.weight", q, l.E)
}

// headNorms asks for the norms of queries and keys.
func (l *loader) headNorms(block int, q, k uint64) {
	l.need(block, "attn_q_norm.weight", q)
	l.need(block, "attn_k_norm.weight", k)
}

// grouped is queryKeyValue with the lengths of grouped-query attention; a query takes times
// as many.
func (l *loader) grouped(block int, times uint64) {
	l.queryKeyValue(block, l.keyLen*l.heads(0)*times, l.keyLen*l.kv(0), l.valueLen*l.kv(0))
}

func (l *loader) dense(block int, width uint64) {
	l.need(block, "ffn_gate.weight", l.E, width)
	l.need(block, "ffn_down.weight", width, l.E)
	l.need(block, "ffn_up.weight", l.E, width)
}

// routed asks for the projections of the experts, whose input is in numbers long.
func (l *loader) routed(block int, in, width uint64) {
	l.need(block, "ffn_gate_exps.weight", in, width, l.experts)
	l.need(block, "ffn_down_exps.weight", width, in, l.experts)
	l.need(block, "ffn_up_exps.weight", in, width, l.experts)
}

// mixture asks for the router and the experts.
func (l *loader) mixture(block int, width uint64) {
	l.need(block, "ffn_gate_inp.weight", l.E, l.experts)
	l.routed(block, l.E, width)
}

// ungated asks for the router and for experts as wide as a dense layer, which may be without a
// gate.
func (l *loader) ungated(block int) {
	l.need(block, "ffn_gate_inp.weight", l.E, l.experts)
	l.want(block, "ffn_gate_exps.weight", l.E, l.ff(0), l.experts)
	l.need(block, "ffn_down_exps.weight", l.ff(0), l.E, l.experts)
	l.need(block, "ffn_up_exps.weight", l.E, l.ff(0), l.experts)
}

// merged asks for the projections of the experts, of which gate and up may be one
// (llama_model_base::create_tensor_gate_up_exps).
func (l *loader) merged(block int, width uint64) {
	l.need(block, "ffn_down_exps.weight", width, l.E, l.experts)
	if l.want(block, "ffn_gate_up_exps.weight", l.E, 2*width, l.experts) {
		return
	}
	ask := l.need
	if l.unused {
		ask = l.want
	}
	ask(block, "ffn_gate_exps.weight", l.E, width, l.experts)
	ask(block, "ffn_up_exps.weight", l.E, width, l.experts)
}

func (l *loader) shared(block int, width uint64) {
	l.need(block, "ffn_gate_shexp.weight", l.E, width)
	l.need(block, "ffn_down_shexp.weight", width, l.E)
	l.need(block, "ffn_up_shexp.weight", l.E, width)
}

// draftInput asks for what joins the last token with the model's state before a draft block.
func (l *loader) draftInput(block int) {
	l.need(block, "nextn.eh_proj.weight", 2*l.E, l.E)
	l.need(block, "nextn.enorm.weight", l.E)
	l.need(block, "nextn.hnorm.weight", l.E)
}

// nextToken asks for what a draft block has besides those of a common one.
func (l *loader) nextToken(block int) {
	l.draftInput(block)
	l.want(block, "nextn.embed_tokens.weight", l.E, l.V)
	l.want(block, "nextn.shared_head_head.weight", l.E, l.V)
	l.want(block, "nextn.shared_head_norm.weight", l.E)
}

// expertKeys are those of the experts' weights that an architecture reads when it has them.
func (l *loader) expertKeys() {
	l.may(gguf.Float32, "expert_weights_scale")
	l.may(gguf.Bool, "expert_weights_norm")
}

// positive refuses a key that is 0.
func (l *loader) positive(suffix string, n uint64) {
	if n == 0 && !l.stopped {
		l.refuse(l.keyPlace(l.md.ArchKey(suffix)), "is 0, llama.cpp wants 1 at least")
		l.stopped = true
	}
}

const rmsEpsilon = "attention.layer_norm_rms_epsilon"
