package loadable

import "ggufreap/gguf"

// gptOSS is openai-moe.cpp.
func gptOSS(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	l.may(gguf.Float32, "rope.freq_base_swa")
	width := l.key("expert_feed_forward_length")
	l.key("attention.sliding_window")
	l.slideEvery(2, false)
	if l.stopped {
		return
	}
	rot := l.rot
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
