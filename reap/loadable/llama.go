package loadable

import "ggufreap/gguf"

// The family of llama.cpp's own llama, whose loaders ask for the same tensors.

// llama is llama.cpp: dense models, and Mixtral.
func llama(l *loader) {
	if l.rot != l.keyLen {
		l.refuse(l.keyPlace(l.md.ArchKey("rope.dimension_count")), "is %d, llama.cpp wants a head's length, %d", l.rot, l.keyLen)
	}
	llamaBlocks(l, 0)
}

// granite is granite.cpp, and granite-moe.cpp, which reads one key less.
func granite(l *loader) {
	l.must(gguf.Float32, "logit_scale")
	l.may(gguf.Float32, "residual_scale", "embedding_scale", "attention.scale")
	if l.arch == "granite" {
		l.checkListOf("deepstack_mapping", gguf.Int32, gguf.Uint32, gguf.Bool)
	}
	shared := l.keyOr("expert_shared_feed_forward_length", 0)
	if l.stopped {
		return
	}
	llamaBlocks(l, shared)
}

// minicpm is minicpm.cpp.
func minicpm(l *loader) {
	l.may(gguf.Float32, "logit_scale", "residual_scale", "embedding_scale")
	llamaBlocks(l, 0)
}

// mistral3 is mistral3.cpp.
func mistral3(l *loader) {
	l.may(gguf.Float32, "attention.temperature_scale", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier")
	llamaBlocks(l, 0)
}

// refact is refact.cpp.
func refact(l *loader) { llamaBlocks(l, 0) }

// llamaBlocks asks for what the family has in common; shared is the width of a shared expert,
// 0 for none.
func llamaBlocks(l *loader, shared uint64) {
	l.must(gguf.Float32, rmsEpsilon)
	l.vocabularyTensors(false)
	l.rotations(l.rot)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.k(0), l.v(0))
		l.want(i, "attn_output.bias", l.E)
		l.need(i, "ffn_norm.weight", l.E)
		switch {
		case l.experts == 0:
			l.denseBiased(i, l.ff(0))
		case shared > 0:
			l.shared(i, shared)
			fallthrough
		default:
			l.ungated(i)
		}
	})
}

// rotations asks for the frequencies of a rotation of so many numbers, which may be absent.
func (l *loader) rotations(rot uint64) {
	if l.md.Text(l.md.ArchKey("rope.scaling.type")) == "longrope" {
		l.want(outer, "rope_factors_long.weight", rot/2)
		l.want(outer, "rope_factors_short.weight", rot/2)
	} else {
		l.want(outer, "rope_freqs.weight", rot/2)
	}
}

func (l *loader) denseBiased(block int, width uint64) {
	l.dense(block, width)
	l.want(block, "ffn_gate.bias", width)
	l.want(block, "ffn_down.bias", l.E)
	l.want(block, "ffn_up.bias", width)
}
