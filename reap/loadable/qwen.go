package loadable

import "ggufreap/gguf"

// qwen3moe is qwen3moe.cpp.
func qwen3moe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width := l.keyOr("expert_feed_forward_length", 0)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.q(0), l.v(0), l.v(0))
		l.headNorms(i, l.keyLen, l.keyLen)
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.expertWidth(width))
	})
}

// qwen3vlmoe is qwen3vlmoe.cpp.
func qwen3vlmoe(l *loader) {
	l.keyOr("n_deepstack_layers", 0)
	l.needAny(rotatedSections)
	l.sections()
	qwen3moe(l)
}

// qwen2moe is qwen2moe.cpp, with a gated shared expert.
func qwen2moe(l *loader) {
	l.must(gguf.Float32, rmsEpsilon)
	width, shared := l.keyOr("expert_feed_forward_length", 0), l.keyOr("expert_shared_feed_forward_length", 0)
	if l.stopped {
		return
	}
	if shared == 0 {
		shared = l.ff(0)
	}
	l.vocabularyTensors(true)
	l.eachBlock(l.trunk, func(i int) {
		l.attention(i, l.E, l.v(0), l.v(0))
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, l.expertWidth(width))
		l.need(i, "ffn_gate_inp_shexp.weight", l.E)
		l.shared(i, shared)
	})
}

// expertWidth is the stated width of an expert or, for old files, its share of a dense one.
func (l *loader) expertWidth(stated uint64) uint64 {
	if stated == 0 && l.used > 0 {
		return l.ff(0) / l.used
	}
	return stated
}

// deltaNet holds the sizes of the gated delta net of qwen3next and qwen35moe.
type deltaNet struct{ conv, head, keyHeads, valueHeads uint64 }

func (l *loader) deltaNet() deltaNet {
	l.key("ssm.inner_size")
	return deltaNet{conv: l.key("ssm.conv_kernel"), head: l.key("ssm.state_size"), valueHeads: l.key("ssm.time_step_rank"), keyHeads: l.key("ssm.group_count")}
}

// recurrent tells the blocks without attention: those of a list, or all but one of every few,
// as many as usual or as the metadata states, drafts aside.
func (l *loader) recurrent(usual uint64) func(block int) bool {
	const list = "attention.recurrent_layers"
	if _, there := l.md.Arch(list); there {
		l.checkList(list, gguf.Uint32, l.blocks)
		each := l.perBlock(list)
		return func(block int) bool { return each(block) != 0 }
	}
	interval := l.keyOr("full_attention_interval", usual)
	return func(block int) bool {
		return block < l.trunk && (interval == 0 || (uint64(block)+1)%interval != 0)
	}
}

func qwen3next(l *loader) { qwenHybrid(l, false) }

func qwen35moe(l *loader) {
	l.needAny(rotatedSections)
	l.sections()
	qwenHybrid(l, true)
}

// qwenHybrid is qwen3next.cpp and qwen35moe.cpp, which differ in how the delta net's small
// projections are stored.
func qwenHybrid(l *loader, separate bool) {
	l.must(gguf.Float32, rmsEpsilon)
	width, shared := l.keyOr("expert_feed_forward_length", 0), l.keyOr("expert_shared_feed_forward_length", 0)
	net := l.deltaNet()
	recurrent := l.recurrent(4)
	if l.stopped {
		return
	}
	l.vocabularyTensors(false)
	width = l.expertWidth(width)
	if shared == 0 {
		shared = l.ff(0)
	}
	l.needDrafts()
	l.eachBlock(l.blocks, func(i int) {
		l.unused = i >= l.trunk
		l.need(i, "attn_norm.weight", l.E)
		l.need(i, "post_attention_norm.weight", l.E)
		if recurrent(i) {
			l.delta(i, net, separate)
		} else {
			l.grouped(i, 2)
			l.need(i, "attn_output.weight", l.keyLen*l.heads(0), l.E)
			l.need(i, "attn_q_norm.weight", l.keyLen)
			l.need(i, "attn_k_norm.weight", l.keyLen)
		}
		l.need(i, "ffn_gate_inp.weight", l.E, l.experts)
		l.merged(i, width)
		l.need(i, "ffn_gate_inp_shexp.weight", l.E)
		l.shared(i, shared)
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}

func (l *loader) delta(block int, n deltaNet, separate bool) {
	key, value := n.head*n.keyHeads, n.head*n.valueHeads
	if !separate {
		l.want(block, "ssm_in.weight", l.E, 2*key+2*value)
	}
	l.want(block, "attn_qkv.weight", l.E, 2*key+value)
	l.want(block, "attn_gate.weight", l.E, value)
	l.need(block, "ssm_conv1d.weight", n.conv, 2*key+value)
	l.need(block, "ssm_dt.bias", n.valueHeads)
	l.need(block, "ssm_a", n.valueHeads)
	if separate {
		l.need(block, "ssm_beta.weight", l.E, n.valueHeads)
		l.need(block, "ssm_alpha.weight", l.E, n.valueHeads)
	} else {
		l.need(block, "ssm_ba.weight", l.E, 2*n.valueHeads)
	}
	l.need(block, "ssm_norm.weight", n.head)
	l.need(block, "ssm_out.weight", value, l.E)
}
