package reap

import (
	"slices"
	"strings"

	"ggufreap/gguf/pattern"
)

// A Role is what a routed tensor does in its block. Its text is the tensor's name
// after "blk.N.", in the spelling that llama.cpp's converter writes.
type Role string

// The roles that have rules of their own. The others follow the projection whose
// name they carry; see the table below.
const (
	GateProjection   Role = "ffn_gate_exps.weight"    // [in, width, experts]
	UpProjection     Role = "ffn_up_exps.weight"      // [in, width, experts]
	DownProjection   Role = "ffn_down_exps.weight"    // [width, out, experts]
	GateUpProjection Role = "ffn_gate_up_exps.weight" // [in, 2*width, experts]: gate rows, then up rows
	Router           Role = "ffn_gate_inp.weight"     // [hidden, experts]
	RouterBias       Role = "ffn_gate_inp.bias"       // [experts], added to the logits
	SelectionBias    Role = "exp_probs_b.bias"        // [experts], for choosing only
	IDTable          Role = "ffn_gate_tid2eid.weight" // [used, vocabulary]: its values are expert ids
)

// roleDims is the table of routed tensors, with the number of dimensions of each.
// The expert axis is the last one, except in the id table, which has none.
var roleDims = map[Role]int{
	GateProjection:   3,
	UpProjection:     3,
	DownProjection:   3,
	GateUpProjection: 3,

	// gpt-oss adds a bias to each projection.
	"ffn_gate_exps.bias":    2,
	"ffn_up_exps.bias":      2,
	"ffn_down_exps.bias":    2,
	"ffn_gate_up_exps.bias": 2,

	// One number for each expert: the second level of NVFP4, and Gemma 4's router
	// scale, which is stored with the down projection.
	"ffn_gate_exps.scale":          1,
	"ffn_up_exps.scale":            1,
	"ffn_down_exps.scale":          1,
	"ffn_gate_up_exps.scale":       1,
	"ffn_gate_exps.input_scale":    1,
	"ffn_up_exps.input_scale":      1,
	"ffn_down_exps.input_scale":    1,
	"ffn_gate_up_exps.input_scale": 1,

	Router:        2,
	RouterBias:    1,
	SelectionBias: 1,
	IDTable:       2,

	// deepseek4 with vision: the selection bias of image tokens.
	"exp_probs_b_vl.bias": 1,
}

// roleOf finds the role of a tensor by its name after "blk.N.".
func roleOf(name string) (Role, bool) {
	if name == "exp_probs_b" { // hy_v3 has no suffix
		return SelectionBias, true
	}
	_, ok := roleDims[Role(name)]
	return Role(name), ok
}

// bystanderNames and bystanderPrefixes name the tensors of a block that hold nothing
// for each expert, whatever the size of their last dimension.
var bystanderNames = []string{
	"ffn_gate_inp.scale", // Gemma 4: one number for each element of the router's input
	"inp_gate.weight", "proj.weight", "post_norm.weight",
}

var bystanderPrefixes = []string{
	"attn_", "cross_attn_", "ssm_", "shortconv.", "indexer.", "indexer_", "time_mix_", "channel_mix_",
	"ffn_norm", "ffn_sub_norm", "ffn_res_score", "post_attention_norm", "post_ffw_norm", "pre_ffw_norm",
	"layer_output_", "altup_", "laurel_", "hc_attn_", "hc_ffn_", "ple_",
	"vis_", // CogVLM's "visual experts" are chosen by what a token is, not by a router
	"ffn_conv_",
	"ffn_gate.", "ffn_up.", "ffn_down.", "ffn.act", // a dense feed-forward in parallel
	"ffn_gate_shexp.", "ffn_up_shexp.", "ffn_down_shexp.", "ffn_gate_up_shexp.", "ffn_gate_inp_shexp.",
	"ffn_routed_", // Kimi-K3: in and out of the latent space, shared by all experts
	"ffn_latent_", // Nemotron-H: the same
	"nextn.",
}

// bystander reports whether the tensor is known to hold nothing for each expert.
func bystander(name string) bool {
	return slices.Contains(bystanderNames, name) || slices.ContainsFunc(bystanderPrefixes, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// outsidePrefixes name the tensors outside of blocks that hold nothing for each expert,
// whatever their dimensions (llama-arch.cpp), and those of parts that are no blocks of the
// trunk.
var outsidePrefixes = []string{
	"token_embd", "token_types.", "position_embd.", "output.", "output_", "rope_freqs.", "rope_factors_",
	"per_layer_", "altup_", "cls", "dense_2.", "dense_3.", "masked_embd_", "nextn.", "fc.", "d2t",
	"enc.", "dec.", "v.", "mm.", "a.", "convnext.", "posnet.", "conv1d.", "conf_proj.", "markov_",
}

// outsider reports whether a tensor outside of blocks is known to hold nothing for each
// expert.
func outsider(name string) bool {
	return slices.ContainsFunc(outsidePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// A nameKind is what the name of a block's tensor says, after "blk.N.".
type nameKind int

const (
	kindUnplaced  nameKind = iota // no rule knows it
	kindUntouched                 // holds nothing for each expert
	kindRouted                    // has a [Role]
	kindLegacy                    // one expert's projection: a tensor for each
	kindAdapter                   // an embedded adapter of a routed tensor
)

// A namePlace is the kind of a name, and the role that it has or, for an adapter, that
// of the tensor it changes.
type namePlace struct {
	kind nameKind
	role Role
}

// kindOf sorts a name after "blk.N." by the tables above.
func kindOf(name string) namePlace {
	if adapter := adapterName().FindStringSubmatch(name); adapter != nil {
		if role, ok := roleOf(adapter[1]); ok {
			return namePlace{kindAdapter, role}
		}
		return namePlace{kind: kindUntouched}
	}
	role, ok := roleOf(name)
	switch {
	case ok:
		return namePlace{kindRouted, role}
	case legacyName().MatchString(name):
		return namePlace{kind: kindLegacy}
	case bystander(name):
		return namePlace{kind: kindUntouched}
	}
	return namePlace{kind: kindUnplaced}
}

// legacyName matches the layout with one tensor for each expert and projection.
var legacyName = pattern.Lazy(`^ffn_(gate|up|down)\.[0-9]+\.(weight|bias|scale)$`)

// adapterName splits an embedded adapter's name from that of the tensor it changes.
var adapterName = pattern.Lazy(`^(.+)\.lora_[ab](\.weight)?$`)
