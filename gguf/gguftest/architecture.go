package gguftest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// ArchitectureOptions vary a model of [Architecture]. A zero field takes the usual value.
type ArchitectureOptions struct {
	Seed    uint64 // 1
	Experts int    // 16
	Hidden  int    // 256, or 128 where attention is latent
	Width   int    // 32: the inner width of an expert
	// Projections is the type of the routed projections, F32 unless set. Their rows, which
	// are Hidden and Width long (2*Width in kimi-k3), must be whole blocks of it.
	Projections gguf.Type
	// Groups divides the experts into routing groups, of which GroupsUsed are used.
	Groups, GroupsUsed int
	// Separate gives gate and up projections of their own to an architecture whose usual
	// form here is the merged one.
	Separate bool
	// Unbiased leaves out the selection bias.
	Unbiased bool
	// Draft appends a next-token-prediction block with experts of its own.
	Draft bool
}

// Architectures returns the names of all architectures that [Architecture] knows.
func Architectures() []string {
	all, _ := allFacts()
	names := slices.Sorted(maps.Keys(all))
	return slices.DeleteFunc(names, func(name string) bool { return name == commonFacts })
}

const commonFacts = "common"

// Architecture describes a small model of an architecture with routed experts that
// llama.cpp loads and runs: 16 experts, 4 used, two layers with experts at least, the
// optional scales present and different from one another, no tokenizer, a vocabulary of
// 128.
func Architecture(name string, o ArchitectureOptions) (Spec, error) {
	all, err := allFacts()
	if err != nil {
		return Spec{}, err
	}
	f, known := all[name]
	if !known || name == commonFacts {
		return Spec{}, fmt.Errorf("no facts of architecture %q", name)
	}
	hidden, err := (sizes{}).number(f.hidden)
	if err != nil {
		return Spec{}, fmt.Errorf("architecture %q: %w", name, err)
	}
	b := builder{
		facts: f,
		o:     o,
		sizes: sizes{hidden: orElse(o.Hidden, int(hidden)), width: orElse(o.Width, 32), experts: orElse(o.Experts, 16)},
		spec:  Spec{Name: name, Seed: orElse(o.Seed, 1), Metadata: gguf.NewMetadata()},
	}
	if err := b.build(all[commonFacts]); err != nil {
		return Spec{}, fmt.Errorf("architecture %q: %w", name, err)
	}
	return b.spec, nil
}

// A builder turns facts into a model.
type builder struct {
	*facts
	sizes
	o    ArchitectureOptions
	spec Spec
}

func (b *builder) build(common *facts) error {
	if err := b.metadata(common); err != nil {
		return err
	}
	if err := b.tensors("", b.parts[0].tensors); err != nil {
		return err
	}
	blocks := b.blocks()
	if b.o.Draft {
		blocks = append(blocks, draft(blocks[len(blocks)-1]))
	}
	for i, tensors := range blocks {
		if err := b.tensors(fmt.Sprintf("blk.%d.", i), tensors); err != nil {
			return err
		}
	}
	return nil
}

// draft makes a draft block of the tensors of another one. It has no scales: llama.cpp
// skips the tensors of draft blocks unless asked to load them, and then takes their scales
// for tensors that nobody knows.
func draft(block []tensorFact) []tensorFact {
	block = append(slices.Clone(block),
		tensorFact{name: "nextn.eh_proj.weight", dims: []string{"2E", "E"}},
		tensorFact{name: "nextn.enorm.weight", dims: []string{"E"}},
		tensorFact{name: "nextn.hnorm.weight", dims: []string{"E"}},
		tensorFact{name: "nextn.shared_head_norm.weight", dims: []string{"E"}},
	)
	for i := range block {
		block[i].scaled = false
	}
	return block
}

func (b *builder) metadata(common *facts) error {
	md := b.spec.Metadata
	md.Set(gguf.KeyArchitecture, gguf.TextValue(b.spec.Name))
	md.Set("general.name", gguf.TextValue(b.spec.Name))
	for _, k := range slices.Concat(common.keys, b.keys) {
		v, err := b.value(b.adapted(k))
		if err != nil {
			return err
		}
		md.Set(md.ArchKey(k.suffix), v)
	}
	md.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	return nil
}

// adapted changes a key as the options want it.
func (b *builder) adapted(k keyFact) keyFact {
	blocks := len(b.blocks())
	set := func(n int) { k.values = []string{fmt.Sprint(n)} }
	switch k.suffix {
	case "expert_group_count":
		if b.o.Groups > 0 {
			set(b.o.Groups)
		}
	case "expert_group_used_count":
		if b.o.GroupsUsed > 0 {
			set(b.o.GroupsUsed)
		}
	case "nextn_predict_layers":
		if b.o.Draft {
			set(1)
		}
	case "block_count":
		if b.o.Draft {
			set(blocks + 1)
		}
	default:
		if b.o.Draft && strings.HasSuffix(k.typ, "[]") && len(k.values) == blocks {
			k.values = append(slices.Clone(k.values), k.values[blocks-1])
		}
	}
	return k
}

// tensors adds the tensors of one block.
func (b *builder) tensors(prefix string, list []tensorFact) error {
	var scales []Tensor
	for _, t := range b.formed(list) {
		shape := make([]uint64, len(t.dims))
		for i, word := range t.dims {
			n, err := b.number(word)
			if err != nil {
				return fmt.Errorf("tensor %q: %w", t.name, err)
			}
			shape[i] = uint64(n)
		}
		b.spec.Tensors = append(b.spec.Tensors, b.tensor(prefix, t.name, shape))
		if !t.scaled {
			continue
		}
		count := []uint64{1}
		if strings.Contains(t.name, "_exps.") {
			count[0] = uint64(b.experts)
		}
		for _, suffix := range []string{"scale", "input_scale"} {
			scales = append(scales, b.tensor(prefix, strings.TrimSuffix(t.name, "weight")+suffix, count))
		}
	}
	b.spec.Tensors = append(b.spec.Tensors, scales...)
	return nil
}

// formed leaves out and takes apart tensors as the options want it.
func (b *builder) formed(list []tensorFact) []tensorFact {
	var out []tensorFact
	for _, t := range list {
		switch {
		case b.o.Unbiased && strings.HasPrefix(t.name, "exp_probs_b"):
		case b.o.Separate && t.name == "ffn_gate_up_exps.weight":
			for _, name := range []string{"ffn_gate_exps.weight", "ffn_up_exps.weight"} {
				out = append(out, tensorFact{name, []string{t.dims[0], "F", "N"}, true})
			}
		default:
			out = append(out, t)
		}
	}
	return out
}

func (b *builder) tensor(prefix, name string, shape []uint64) Tensor {
	t := Tensor{Name: prefix + name, Type: gguf.F32, Shape: shape, Fill: fillOf(name, shape)}
	switch {
	case len(shape) == 3 && strings.Contains(name, "_exps."):
		t.Type = orElse(b.o.Projections, gguf.F32)
	case name == "ffn_gate_tid2eid.weight":
		t.Type, t.Data = gguf.I32, b.idTable(t.Name, shape)
	}
	return t
}

// idTable draws different experts for each token.
func (b *builder) idTable(name string, shape []uint64) []byte {
	var data []byte
	w := words{keyOf(b.spec.Seed, name)}
	for range shape[1] {
		ids := make([]uint32, b.experts)
		for i := range ids { // a shuffle: what came before changes places with the newcomer
			at := w.next() % uint64(i+1)
			ids[i], ids[at] = ids[at], uint32(i)
		}
		for _, id := range ids[:shape[0]] {
			data = binary.LittleEndian.AppendUint32(data, id)
		}
	}
	return data
}

// fillOf chooses values by a tensor's name, so that a model computes numbers of moderate
// size and a change of any routed tensor shows in its logits.
func fillOf(name string, shape []uint64) Fill {
	has := func(part string) bool { return strings.Contains(name, part) }
	switch {
	case strings.HasSuffix(name, "scale"):
		return Fill{Mean: 1, Spread: 0.5}
	case has("norm") && strings.HasSuffix(name, ".weight"), has("rope_"):
		return Fill{Mean: 1, Spread: 0.1}
	case has("ssm_a"):
		return Fill{Mean: -2, Spread: 1.5} // -exp(A)
	case has("token_embd"):
		return Fill{Spread: 1}
	case has("conv"), has("_exps.bias"), has("gate_inp.bias"), has("sinks"):
		return Fill{Spread: 0.5}
	case has("exp_probs_b"), strings.HasSuffix(name, ".bias"):
		return Fill{Spread: 0.1}
	}
	return Fill{Spread: float32(math.Sqrt(3 / float64(shape[0]))), Uneven: has("_exps.") || has("ffn_gate_inp.")}
}
