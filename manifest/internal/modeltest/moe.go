package modeltest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// MoEExperts is the number of experts of MoE.
const MoEExperts = 9

// MoESlabbed are the tensors of a block of MoE that carry slabs, innermost dims
// first and without the expert dim.
var MoESlabbed = []struct {
	Name  string
	typ   gguf.Type
	Shape []uint64
}{
	{"ffn_gate_inp.weight", gguf.F32, []uint64{24}},
	{"exp_probs_b.bias", gguf.F32, nil},
	{"ffn_gate_exps.weight", gguf.Q8_0, []uint64{32, 5}},
	{"ffn_up_exps.weight", gguf.Q8_0, []uint64{32, 5}},
	{"ffn_down_exps.weight", gguf.Q4_0, []uint64{32, 3}},
}

// MoESlabs says how many slabs the tensors of a model of n experts carry.
func MoESlabs(n int) func(tensor string) int {
	return func(tensor string) int {
		for _, t := range MoESlabbed {
			if strings.HasSuffix(tensor, "."+t.Name) {
				return n
			}
		}
		return 0
	}
}

// MoE returns a model with experts in blocks 1, 2 and 10.
func MoE() gguf.Contents {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("moe"))
	md.Set("moe.expert_count", gguf.Uint32Value(MoEExperts))
	md.Set("tokenizer.chat_template", gguf.TextValue("{{ x }}"))
	rng := rand.New(rand.NewPCG(3, 4))
	c := gguf.Contents{Version: 3, Metadata: md}
	add := func(name string, typ gguf.Type, shape ...uint64) {
		size, err := gguf.TypeSize(typ, shape)
		if err != nil {
			panic(err)
		}
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		c.Views = append(c.Views, DataView(name, typ, shape, data))
	}
	add("token_embd.weight", gguf.F16, 24, 7)
	add("blk.0.ffn_up.weight", gguf.F16, 24, 7)
	for _, block := range []int{1, 2, 10} {
		add(fmt.Sprintf("blk.%d.attn_norm.weight", block), gguf.F32, 24)
		for _, t := range MoESlabbed {
			add(fmt.Sprintf("blk.%d.%s", block, t.Name), t.typ, slices.Concat(t.Shape, []uint64{MoEExperts})...)
		}
	}
	return c
}

func DataView(name string, typ gguf.Type, shape []uint64, data []byte) gguf.View {
	v := gguf.View{Name: name, Type: typ, Shape: shape}
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
	return v
}

// SlabOf returns slab i of n of a tensor.
func SlabOf(c gguf.Contents, tensor string, n, i int) []byte {
	data := ViewData(*View(c, tensor))
	return data[len(data)/n*i : len(data)/n*(i+1)]
}

var MoEKeep = map[int][]int{1: {0, 2, 3, 7}, 2: {8, 1, 5, 4}, 10: {4, 5, 6, 7}}

// PrunedMoE returns what is left of MoE: the experts of MoEKeep.
func PrunedMoE() gguf.Contents {
	source := MoE()
	c := MoE()
	c.Metadata.Set("moe.expert_count", gguf.Uint32Value(4))
	c.Metadata.Set("reap.criterion", gguf.TextValue("test"))
	for i, v := range c.Views {
		if MoESlabs(MoEExperts)(v.Name) == 0 {
			continue
		}
		var block int
		fmt.Sscanf(v.Name, "blk.%d.", &block)
		var data []byte
		for _, id := range MoEKeep[block] {
			data = append(data, SlabOf(source, v.Name, MoEExperts, id)...)
		}
		c.Views[i] = DataView(v.Name, v.Type, slices.Concat(v.Shape[:len(v.Shape)-1], []uint64{4}), data)
	}
	return c
}

// PutSlab replaces slab i of n of a tensor.
func PutSlab(c gguf.Contents, tensor string, n, i int, slab []byte) {
	v := View(c, tensor)
	data := ViewData(*v)
	copy(data[len(data)/n*i:], slab)
	*v = DataView(v.Name, v.Type, v.Shape, data)
}

func SwapSlabs(c gguf.Contents, tensor string, i, j int) {
	a, b := bytes.Clone(SlabOf(c, tensor, 4, i)), bytes.Clone(SlabOf(c, tensor, 4, j))
	PutSlab(c, tensor, 4, i, b)
	PutSlab(c, tensor, 4, j, a)
}
