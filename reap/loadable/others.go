package loadable

import "ggufreap/gguf"

// gptOSS is openai-moe.cpp.
func gptOSS(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa")
	width := l.key("expert_feed_forward_length")
	l.key("attention.sliding_window")
	if l.stopped {
		return
	}
	rot := l.rot
	if l.windowed() {
		rot = l.keyOr("rope.dimension_count_swa", rot)
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "post_attention_norm.weight", l.E)
		l.queryKeyValue(i, l.heads(0)*rot, l.kv(0)*rot, l.kv(0)*rot)
		l.need(i, "attn_output.weight", l.heads(0)*rot, l.E)
		l.need(i, "attn_output.bias", l.E)
		l.need(i, "attn_sinks.weight", l.heads(0))
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.need(i, "ffn_gate_inp.bias", l.experts)
		l.routed(i, l.E, width)
		l.need(i, "ffn_gate_exps.bias", width, l.experts)
		l.need(i, "ffn_down_exps.bias", l.E, l.experts)
		l.need(i, "ffn_up_exps.bias", width, l.experts)
	})
}

// windowed reports whether the first block has a sliding window; every second one has unless
// the metadata states another pattern.
func (l *loader) windowed() bool {
	v := l.value("attention.sliding_window_pattern")
	period, stated := v.Uint()
	return !stated || period != 1
}

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

// llama is llama.cpp: dense models, and Mixtral.
func llama(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	if l.stopped {
		return
	}
	if l.rot != l.keyLen {
		l.refuse(l.keyPlace(l.md.ArchKey("rope.dimension_count")), "is %d, llama.cpp wants a head's length, %d", l.rot, l.keyLen)
	}
	l.vocabularyTensors(false)
	if l.md.Text(l.md.ArchKey("rope.scaling.type")) == "longrope" {
		l.want(outer, "rope_factors_long.weight", l.rot/2)
		l.want(outer, "rope_factors_short.weight", l.rot/2)
	} else {
		l.want(outer, "rope_freqs.weight", l.rot/2)
	}
	l.eachBlock(l.trunk, func(i int) {
		l.need(i, "attn_norm.weight", l.E)
		l.grouped(i, 1)
		l.need(i, "attn_output.weight", l.keyLen*l.heads(0), l.E)
		l.want(i, "attn_output.bias", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		if l.experts == 0 {
			l.dense(i, l.ff(0))
			l.want(i, "ffn_gate.bias", l.ff(0))
			l.want(i, "ffn_down.bias", l.E)
			l.want(i, "ffn_up.bias", l.ff(0))
			return
		}
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.want(i, "ffn_gate_exps.weight", l.E, l.ff(0), l.experts)
		l.need(i, "ffn_down_exps.weight", l.ff(0), l.E, l.experts)
		l.need(i, "ffn_up_exps.weight", l.E, l.ff(0), l.experts)
	})
}
