package loadable

import (
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf/words"
	"ggufreap/reap"
)

// traits are what the tensors of a block say of it: its parts, and those of the core tensors
// that it has.
type traits struct {
	parts, core uint32
}

// The parts that tell kinds of blocks apart.
const (
	hasAttention = 1 << iota
	hasRecurrence
	hasExperts
	hasDense
)

var partPrefixes = map[uint32][]string{
	hasAttention:  {"attn_q", "attn_k", "attn_v", "attn_output."},
	hasRecurrence: {"ssm_", "shortconv.", "time_mix_"},
	hasExperts:    {"ffn_gate_exps.", "ffn_up_exps.", "ffn_down_exps.", "ffn_gate_up_exps.", "ffn_gate_inp.weight"},
	hasDense:      {"ffn_gate.", "ffn_up.", "ffn_down."},
}

// coreTensors are those that no architecture of llama.cpp leaves out of one block when it
// asks for them in all others with the same parts.
var coreTensors = []string{
	"attn_norm.weight", "attn_output.weight", "ffn_norm.weight",
	"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight",
	"ffn_gate_inp.weight", "ffn_up_exps.weight", "ffn_down_exps.weight",
	"attn_q.weight", "attn_qkv.weight", "post_attention_norm.weight", "post_ffw_norm.weight", "ffn_gate_exps.weight",
	"ffn_gate_up_exps.weight", "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight",
}

// unevenArchitectures leave tensors out of single blocks: deci where its lists say so,
// modern-bert the first norm.
var unevenArchitectures = []string{"deci", "modern-bert"}

// readBlocks takes the counts of blocks, and looks at which ones have tensors.
func (c *check) readBlocks() {
	if n := c.number("block_count"); n <= maxBlocks {
		c.blocks = int(n)
	}
	if n := c.number("nextn_predict_layers"); n < uint64(c.blocks) {
		c.drafts = int(n)
	}
	c.traits = map[int]traits{}
	for _, t := range c.m.Tensors() {
		if block, name, ok := reap.SplitBlock(t.Name); ok {
			b := c.traits[block]
			b.add(name)
			c.traits[block] = b
		}
	}
}

func (b *traits) add(name string) {
	for part, prefixes := range partPrefixes {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			b.parts |= part
		}
	}
	if i := slices.Index(coreTensors, name); i >= 0 {
		b.core |= 1 << i
	}
}

// checkBlocks wants tensors in every block that the metadata announces and in no other, and
// what all other blocks of a kind have.
func (c *check) checkBlocks() {
	if c.blocks == 0 || len(c.traits) == 0 || c.draftAlone() {
		return
	}
	key := c.md.ArchKey("block_count")
	if absent := c.absentBlocks(); len(absent) > 0 && c.arch != "deci" {
		c.refuse(c.m.Name, "%s: announced by %q, which is %d, and no tensor of %s is there", blockList(absent), key, c.blocks, words.Verb(len(absent), "it", "them"))
	}
	var behind []int
	for _, block := range slices.Sorted(maps.Keys(c.traits)) {
		if block >= c.blocks {
			behind = append(behind, block)
		}
	}
	if len(behind) > 0 {
		c.refuse(c.m.Name, "%s: %q says that layers end before %d", blockList(behind), key, c.blocks)
	}
	if _, known := tables[c.arch]; !known && !slices.Contains(unevenArchitectures, c.arch) {
		c.checkAlike()
	}
}

// absentBlocks returns the blocks of the trunk that have no tensor. Draft blocks may lie in a
// file of their own.
func (c *check) absentBlocks() []int {
	var absent []int
	for block := range c.blocks - c.drafts {
		if _, present := c.traits[block]; !present {
			absent = append(absent, block)
		}
	}
	return absent
}

// checkAlike finds blocks that lack a core tensor which all others with the same parts have,
// two others at least.
func (c *check) checkAlike() {
	kinds := map[uint32][]int{}
	for block := range c.blocks - c.drafts {
		if b, present := c.traits[block]; present {
			kinds[b.parts] = append(kinds[b.parts], block)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if blocks := kinds[kind]; len(blocks) > 2 {
			c.checkKind(blocks)
		}
	}
}

func (c *check) checkKind(blocks []int) {
	for i, name := range coreTensors {
		var without []int
		for _, block := range blocks {
			if c.traits[block].core&(1<<i) == 0 {
				without = append(without, block)
			}
		}
		if len(without) == 1 {
			c.refuse(c.m.Name, "%s: no %q, which all other layers of the kind have", blockList(without), name)
		}
	}
}

// blockList names blocks: "block 4" or "blocks 1-3, 7".
func blockList(blocks []int) string {
	return words.Verb(len(blocks), "layer ", "layers ") + words.Ranges(blocks)
}
