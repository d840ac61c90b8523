package proof

import (
	"bytes"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
)

// routed are the tensors of layer 1 of which each expert has a part.
var routed = []string{"blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias", "blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"}

var expertForgeries = []forgeryKind{
	{name: "up experts swapped", contents: swapped(0, 5, "blk.1.ffn_up_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "gate experts swapped", contents: swapped(0, 5, "blk.1.ffn_gate_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "down experts swapped", contents: swapped(2, 15, "blk.2.ffn_down_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "router rows swapped", contents: swapped(1, 3, "blk.1.ffn_gate_inp.weight"), want: "other tensors of the layer have expert"},
	{name: "biases swapped", contents: swapped(0, 1, "blk.2.exp_probs_b.bias"), want: "other tensors of the layer have expert"},
	{name: "router and bias swapped together", contents: swapped(4, 9, "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias"), want: "other tensors of the layer have expert"},
	{name: "two experts swapped whole", contents: swapped(0, 5, routed...), want: "layer 1: the plan's experts in another order"},
	{name: "a dropped expert's part", contents: func(f *forgery, c *gguf.Contents) {
		own := f.data(c, "blk.1.ffn_up_exps.weight")
		source := programtest.TensorData(f.T, f.source, "blk.1.ffn_up_exps.weight")
		for i := range 32 {
			if !bytes.Contains(own, slab(source, 32, i)) {
				copy(slab(own, 16, 3), slab(source, 32, i))
				break
			}
		}
		f.set(c, "blk.1.ffn_up_exps.weight", own)
	}, want: "other tensors of the layer have expert"},
	{name: "a part of another layer", contents: fromSource("blk.1.ffn_up_exps.weight", 4, "blk.2.ffn_up_exps.weight", 7), want: `is expert 7 of the source's tensor "blk.2.ffn_up_exps.weight"`},
	{name: "a part of another projection", contents: fromSource("blk.1.ffn_up_exps.weight", 4, "blk.1.ffn_gate_exps.weight", 7), want: `is expert 7 of the source's tensor "blk.1.ffn_gate_exps.weight"`},
	{name: "a bit of an expert", contents: edited("blk.1.ffn_up_exps.weight", flipBit(100)), want: "is not among the source's"},
	{name: "the signs of an expert", contents: edited("blk.2.ffn_down_exps.weight", func(data []byte) {
		for i := range slab(data, 16, 3) {
			slab(data, 16, 3)[i] ^= 0x80
		}
	}), want: "is not among the source's"},
	{name: "a bit of a router", contents: edited("blk.2.ffn_gate_inp.weight", flipBit(3)), want: "is not among the source's"},
	{name: "a bit of a bias", contents: edited("blk.2.exp_probs_b.bias", flipBit(3)), want: "is not among the source's"},
	{name: "a hole of zeros", contents: edited("blk.1.ffn_down_exps.weight", func(data []byte) { clear(data[:len(data)/2]) }), want: "experts 0 to 7 are not among the source's"},
	{name: "up experts of all layers moved by one", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range []string{"blk.1.ffn_up_exps.weight", "blk.2.ffn_up_exps.weight"} {
			data := f.data(c, tensor)
			size := len(data) / 16
			f.set(c, tensor, slices.Concat(data[size:], data[:size]))
		}
	}, want: `layers 1 and 2, tensor "ffn_up_exps.weight" of each: experts 0 to 15 do not fit the other tensors of the layer`},
	{name: "an expert twice", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			edited(tensor, func(data []byte) { copy(slab(data, 16, 3), slab(data, 16, 0)) })(f, c)
		}
	}, want: "which is there already"},
	{name: "experts that another plan keeps", contents: func(f *forgery, c *gguf.Contents) {
		own := f.data(c, routed[0])
		for i := range 32 {
			if !bytes.Contains(own, slab(programtest.TensorData(f.T, f.source, routed[0]), 32, i)) {
				for _, tensor := range routed {
					fromSource(tensor, 3, tensor, i)(f, c)
				}
				return
			}
		}
	}, want: "not kept, which the plan keeps"},
	{name: "two layers swapped", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			a, b := viewOf(f.T, c, tensor), viewOf(f.T, c, strings.Replace(tensor, "blk.1", "blk.2", 1))
			a.Extents, b.Extents = b.Extents, a.Extents
		}
	}, want: "of the source's tensor"},
	{name: "an expert less in one tensor", contents: func(f *forgery, c *gguf.Contents) { f.shorten(c, "blk.1.ffn_up_exps.weight") }, want: "15"},
	{name: "an expert less in one layer", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			f.shorten(c, tensor)
		}
	}, want: "15"},
}

// shorten drops the last of 16 experts of a tensor.
func (f *forgery) shorten(c *gguf.Contents, tensor string) {
	v := viewOf(f.T, c, tensor)
	data := f.data(c, tensor)
	v.Shape = slices.Clone(v.Shape)
	v.Shape[len(v.Shape)-1] = 15
	f.set(c, tensor, data[:len(data)/16*15])
}

const attention = "blk.1.attn_norm.weight"

var tensorForgeries = []forgeryKind{
	{name: "a tensor dropped", contents: func(f *forgery, c *gguf.Contents) {
		c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == "blk.1.ffn_routed_norm.weight" })
	}, want: "is a tensor of the source, and not there"},
	{name: "a tensor added", contents: func(f *forgery, c *gguf.Contents) {
		v := gguf.View{Name: "blk.1.attn_extra.weight", Type: gguf.I8, Shape: []uint64{3}}
		v.Append(gguf.Extent{Source: strings.NewReader("abc"), Length: 3})
		c.Views = append(c.Views, v)
	}, want: "is no tensor of the source"},
	{name: "an empty tensor added", contents: func(f *forgery, c *gguf.Contents) {
		c.Views = append(c.Views, gguf.View{Name: "blk.1.attn_extra.weight", Type: gguf.F32, Shape: []uint64{0}})
	}, want: "is no tensor of the source"},
	{name: "a tensor renamed", contents: func(f *forgery, c *gguf.Contents) { viewOf(f.T, c, attention).Name = "blk.1.attn_normal.weight" }, want: "is no tensor of the source"},
	{name: "a bit of a tensor", contents: edited(attention, flipBit(2)), want: "the source has"},
	{name: "a bit of the embedding", contents: edited("token_embd.weight", flipBit(2)), want: "the source has"},
	{name: "a bit of the output", contents: edited("output.weight", flipBit(2)), want: "the source has"},
	{name: "a bit of a shared expert", contents: edited("blk.1.ffn_up_shexp.weight", flipBit(2)), want: "the source has"},
	{name: "a tensor of another layer", contents: func(f *forgery, c *gguf.Contents) {
		f.set(c, attention, f.data(c, "blk.2.attn_norm.weight"))
	}, want: "the source has"},
	{name: "a tensor retyped", contents: func(f *forgery, c *gguf.Contents) { viewOf(f.T, c, attention).Type = gguf.I32 }, want: "type is I32, the source has F32"},
	{name: "a tensor reshaped", contents: func(f *forgery, c *gguf.Contents) {
		v := viewOf(f.T, c, "blk.1.ffn_up_shexp.weight")
		v.Shape = []uint64{v.Shape[0], v.Shape[1] / 2, 2}
	}, want: "shape is"},
	{name: "a dim of 1 inside", contents: func(f *forgery, c *gguf.Contents) {
		v := viewOf(f.T, c, "blk.1.ffn_up_shexp.weight")
		v.Shape = []uint64{v.Shape[0], 1, v.Shape[1]}
	}, want: "shape is"},
}

const idTable = "blk.1.ffn_gate_tid2eid.weight"

var tableForgeries = []forgeryKind{
	{name: "a table of ids replaced", contents: edited(idTable, func(ids []byte) {
		for i := 0; i < len(ids); i += 4 {
			ids[i] = 7 - ids[i]
		}
	}), want: "are not what pruning makes of the source's table"},
	{name: "an id replaced", contents: edited(idTable, func(ids []byte) { ids[0], ids[4] = ids[4], ids[0] }), want: "are not what pruning makes of the source's table"},
	{name: "ids of another token", contents: edited(idTable, func(ids []byte) { copy(ids[len(ids)-16:], ids[:16]) }), want: "are not what pruning makes of the source's table"},
	{name: "the source's table", contents: func(f *forgery, c *gguf.Contents) { f.set(c, idTable, programtest.TensorData(f.T, f.source, idTable)) }, want: idTable},
}
