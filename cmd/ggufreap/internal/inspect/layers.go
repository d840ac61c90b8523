package inspect

import (
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/reap"
)

// layersInfo says what the blocks of a model are. A count is 0 when the metadata does
// not tell.
type layersInfo struct {
	Count int         `json:"count"` // blocks, draft layers included
	Dense int         `json:"dense"` // without routed experts
	MoE   int         `json:"moe"`   // with routed experts, draft layers excluded
	Draft int         `json:"draft"` // next-token-prediction (MTP) layers behind the others
	Kinds []layerKind `json:"kinds"` // of sequence mixing, in a hybrid model
}

// countLayers says what is known of the layers of a model with the given experts. With
// tensors missing, nobody knows which layers have experts.
func countLayers(m *gguf.Model, experts *reap.Experts) layersInfo {
	md := m.Metadata()
	blocks, _ := md.ArchUint("block_count")
	draft, _ := md.ArchUint("nextn_predict_layers")
	if blocks > maxLayers || draft > blocks {
		return layersInfo{Kinds: []layerKind{}}
	}
	layers := layersInfo{Count: int(blocks), Draft: int(draft), Kinds: layerKinds(md)}
	if layers.Kinds == nil {
		layers.Kinds = []layerKind{}
	}
	if experts != nil {
		for _, l := range experts.Layers {
			if !l.Draft {
				layers.MoE++
			}
		}
	}
	layers.Dense = max(layers.Count-layers.Draft-layers.MoE, 0)
	if !m.Complete() || len(m.Tensors()) == 0 || draftAlone(m) {
		layers.MoE, layers.Dense = 0, 0
	}
	return layers
}

// A layerKind counts the layers that mix the sequence in one way.
type layerKind struct {
	Kind   string `json:"kind"`
	Layers int    `json:"layers"`
}

// zeroHeads names what the layers without key-value heads have in place of attention,
// and what the others have. Any other architecture has "recurrent" and "attention".
var zeroHeads = map[string][2]string{
	"kimi-k3":     {"KDA", "MLA"},
	"kimi-linear": {"KDA", "MLA"},
	"bailingmoe3": {"KDA", "MLA"},
	"lfm2":        {"short convolution", "attention"},
	"lfm2moe":     {"short convolution", "attention"},
}

// layerKinds tells the layers of a hybrid model apart by the keys that llama.cpp goes
// by: attention.head_count_kv with a zero for each layer that has no attention,
// full_attention_interval (qwen3next, qwen35), and attention.sliding_window_pattern as
// a list of flags; see load_arch_hparams of its models. It returns nil for a model of
// one kind, or when no key tells.
func layerKinds(md *gguf.Metadata) []layerKind {
	if heads, ok := archUints(md, "attention.head_count_kv"); ok {
		if kinds := kindsByHeads(md, heads); kinds != nil {
			return kinds
		}
	}
	if pattern, ok := archFlags(md, "attention.sliding_window_pattern"); ok {
		return twoKinds([2]string{"full attention", "sliding window"}, pattern)
	}
	every, ok := md.ArchUint("full_attention_interval")
	blocks, _ := md.ArchUint("block_count")
	draft, _ := md.ArchUint("nextn_predict_layers")
	if ok && every > 1 && draft <= blocks && blocks <= maxLayers {
		trunk := blocks - draft
		full := int(trunk / every)
		return []layerKind{{"linear attention", int(trunk) - full}, {"full attention", full + int(draft)}}
	}
	return nil
}

// deciKinds counts the blocks of Nemotron NAS: without heads a block has no attention, and
// without key-value heads alone a linear map in its place; see llama.cpp's models/deci.
func deciKinds(md *gguf.Metadata, kv []uint64) []layerKind {
	heads, ok := archUints(md, "attention.head_count")
	kinds := []layerKind{{"without attention", 0}, {"linear attention", 0}, {"attention", 0}}
	for i, n := range kv {
		switch {
		case n > 0:
			kinds[2].Layers++
		case ok && i < len(heads) && heads[i] > 0:
			kinds[1].Layers++
		default:
			kinds[0].Layers++
		}
	}
	kinds = slices.DeleteFunc(kinds, func(k layerKind) bool { return k.Layers == 0 })
	if len(kinds) < 2 {
		return nil
	}
	return kinds
}

func kindsByHeads(md *gguf.Metadata, heads []uint64) []layerKind {
	if md.Architecture() == "deci" {
		return deciKinds(md, heads)
	}
	names, known := zeroHeads[md.Architecture()]
	if !known {
		names = [2]string{"recurrent", "attention"}
	}
	kinds := twoKinds(names, heads)
	width, ok := archUints(md, "feed_forward_length")
	if kinds == nil || !strings.HasPrefix(md.Architecture(), "nemotron_h") || !ok || len(width) != len(heads) {
		return kinds
	}
	// A block of Nemotron-H is one thing only; without heads it is a feed-forward
	// when it has a width.
	for i, n := range heads {
		if n == 0 && width[i] > 0 {
			kinds[0].Layers--
		}
	}
	return append(kinds, layerKind{feedForwardKind, len(heads) - kinds[0].Layers - kinds[1].Layers})
}

const feedForwardKind = "feed-forward"

// maxLayers bounds what a stated number of layers is believed to be.
const maxLayers = 1 << 16

// archUints reads an array of small numbers under the architecture.
func archUints(md *gguf.Metadata, suffix string) ([]uint64, bool) {
	v, ok := md.Arch(suffix)
	if !ok || v.Type() != gguf.Array || v.Len() > maxLayers {
		return nil, false
	}
	return v.Uints()
}

// archFlags reads an array of bools, or of integers that stand for them.
func archFlags(md *gguf.Metadata, suffix string) ([]uint64, bool) {
	v, ok := md.Arch(suffix)
	if !ok || v.Type() != gguf.Array || v.Len() > maxLayers {
		return nil, false
	}
	if v.Elem() != gguf.Bool {
		return v.Uints()
	}
	var flags []uint64
	err := v.Each(func(_ int64, e gguf.Value) error {
		if on, _ := e.Bool(); on {
			flags = append(flags, 1)
		} else {
			flags = append(flags, 0)
		}
		return nil
	})
	return flags, err == nil
}

// twoKinds counts the zeros and the others; it returns nil unless there are both.
func twoKinds(names [2]string, list []uint64) []layerKind {
	zeros := 0
	for _, n := range list {
		if n == 0 {
			zeros++
		}
	}
	if zeros == 0 || zeros == len(list) {
		return nil
	}
	return []layerKind{{names[0], zeros}, {names[1], len(list) - zeros}}
}
