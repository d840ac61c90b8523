package loadable

import (
	"fmt"

	"ggufreap/gguf"
)

// A compressor is what deepseek4's compressed attention has in a layer: the ratio, 0 where
// there is none, and the sizes of heads and of the indexer beside it.
type compressor struct{ ratio, qRank, heads, head uint64 }

// deepseek4 is deepseek4.cpp: hash-routed first layers, compressed attention, hyper-connections.
func deepseek4(l *loader) {
	l.needDrafts()
	if l.trunk < l.blocks && l.trunkOnly() {
		l.trunk = l.blocks // llama.cpp then takes all for the trunk
	}
	l.must(gguf.Float32, rmsEpsilon, "expert_weights_scale", "attention.compress_rope_freq_base", "hyper_connection.epsilon")
	l.must(gguf.Bool, "expert_weights_norm")
	l.must(gguf.Uint32, "attention.sliding_window", "attention.indexer.top_k", "hyper_connection.sinkhorn_iterations")
	l.needAny("swiglu_clamp_exp")
	l.clamps(l.blocks)
	c := compressor{qRank: l.key("attention.q_lora_rank"), heads: l.key("attention.indexer.head_count"), head: l.key("attention.indexer.key_length")}
	groups, rank := l.key("attention.output_group_count"), l.key("attention.output_lora_rank")
	width, shared := l.key("expert_feed_forward_length"), l.key("expert_shared_count")
	streams, hashed := l.key("hyper_connection.count"), l.key("hash_layer_count")
	l.wantGating(4, l.key("expert_gating_func"))
	l.positive("attention.output_group_count", groups)
	ratios := l.ratios()
	l.slide(func(int) bool { return true })
	if l.stopped {
		return
	}
	l.vocabularyTensors(true)
	l.hyperOutput(streams)
	l.eachBlock(l.blocks, func(i int) {
		l.unused = i >= l.trunk
		l.attention4(i, c.qRank, groups, rank)
		l.hyperConnections(i, streams)
		l.compressed4(i, compressor{ratios(i), c.qRank, c.heads, c.head})
		if uint64(i) < hashed {
			l.need(i, "ffn_gate_tid2eid.weight", l.used, l.V)
		} else {
			l.need(i, "exp_probs_b.bias", l.experts)
		}
		l.need(i, "ffn_norm.weight", l.E)
		l.mixture(i, width)
		l.shared(i, width*shared)
		if i >= l.trunk {
			l.nextToken(i)
		}
	})
}

// wantGating refuses another way to weigh the experts than the one that llama.cpp has for the
// architecture.
func (l *loader) wantGating(want, got uint64) {
	if got != want && !l.stopped {
		l.refuse(l.keyPlace(l.md.ArchKey("expert_gating_func")), "is %d, llama.cpp wants %d for %s", got, want, l.arch)
	}
}

// ratios reads by how much the layers compress, and refuses what llama.cpp cannot.
func (l *loader) ratios() func(block int) uint64 {
	const suffix = "attention.compress_ratios"
	l.needAny(suffix)
	v := l.value(suffix)
	switch place := l.keyPlace(l.md.ArchKey(suffix)); {
	case v.Type() != gguf.Array:
		l.refuse(place, "is %s, llama.cpp reads a list only", v.TypeName())
		l.stopped = true
	case v.Len() < int64(l.blocks):
		l.refuse(place, "has %s, llama.cpp wants %d at least", entries(v.Len()), l.blocks)
		l.stopped = true
	case v.Elem() != gguf.Uint32 && v.Elem() != gguf.Int32:
		l.refuse(place, "is a list of %s, llama.cpp reads u32 and i32 only", v.Elem())
		l.stopped = true
	}
	each := l.perBlock(suffix)
	for block := range l.blocks {
		if r := each(block); r != 0 && r != 4 && r != 128 && !l.stopped {
			l.refuse(l.keyPlace(l.md.ArchKey(suffix)), "is %d for layer %d, llama.cpp wants 0, 4 or 128", r, block)
			l.stopped = true
		}
	}
	return each
}

// attention4 asks for a layer's attention, whose output is projected by groups of heads.
func (l *loader) attention4(block int, qRank, groups, rank uint64) {
	l.need(block, "attn_norm.weight", l.E)
	l.need(block, "attn_sinks.weight", l.heads(0))
	l.need(block, "attn_q_a.weight", l.E, qRank)
	l.need(block, "attn_q_a_norm.weight", qRank)
	l.need(block, "attn_q_b.weight", qRank, l.q(0))
	l.need(block, "attn_kv.weight", l.E, l.keyLen)
	l.need(block, "attn_kv_a_norm.weight", l.keyLen)
	l.needReshaped(block, "attn_output_a.weight", l.q(0)/groups, rank, groups)
	l.need(block, "attn_output_b.weight", groups*rank, l.E)
}

// hyperOutput asks for what makes one stream of all before the output.
func (l *loader) hyperOutput(streams uint64) {
	l.need(outer, "output_hc_fn.weight", streams*l.E, streams)
	l.need(outer, "output_hc_base.weight", streams)
	l.need(outer, "output_hc_scale.weight", 1)
}

// hyperConnections asks for what mixes the streams around attention and experts.
func (l *loader) hyperConnections(block int, streams uint64) {
	mixed := (2 + streams) * streams
	for _, part := range []string{"attn", "ffn"} {
		l.need(block, "hc_"+part+"_fn.weight", streams*l.E, mixed)
		l.need(block, "hc_"+part+"_base.weight", mixed)
		l.need(block, "hc_"+part+"_scale.weight", 3)
	}
}

// compressed4 asks for the compressor of a layer that has one, and for the indexer beside the
// one by four.
func (l *loader) compressed4(block int, c compressor) {
	if c.ratio == 0 {
		return
	}
	times := uint64(1)
	if c.ratio == 4 {
		times = 2
	}
	l.need(block, "attn_compressor_kv.weight", l.E, times*l.keyLen)
	l.need(block, "attn_compressor_gate.weight", l.E, times*l.keyLen)
	l.need(block, "attn_compressor_ape.weight", times*l.keyLen, c.ratio)
	l.need(block, "attn_compressor_norm.weight", l.keyLen)
	if c.ratio == 4 {
		l.need(block, "indexer.proj.weight", l.E, c.heads)
		l.need(block, "indexer.attn_q_b.weight", c.qRank, c.heads*c.head)
		l.need(block, "indexer_compressor_kv.weight", l.E, 2*c.head)
		l.need(block, "indexer_compressor_gate.weight", l.E, 2*c.head)
		l.need(block, "indexer_compressor_ape.weight", 2*c.head, c.ratio)
		l.need(block, "indexer_compressor_norm.weight", c.head)
	}
}

// needReshaped asks for a tensor of which llama.cpp wants the count of numbers only.
func (l *loader) needReshaped(block int, name string, dims ...uint64) {
	t := l.tensor(block, name)
	if t == nil {
		l.need(block, name, dims...)
		return
	}
	want := uint64(1)
	for _, d := range dims {
		want *= d
	}
	if l.asked[t.Name] = true; t.Elements() != want {
		l.misshapen(t, fmt.Sprintf("%s, or as many numbers in another one", shapeText(dims)))
	}
}
