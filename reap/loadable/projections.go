package loadable

import (
	"fmt"
	"slices"

	"ggufreap/gguf"
	"ggufreap/reap"
)

// projections are the three matrices of a feed-forward part; the names are those after
// "blk.N.".
type projections struct{ gate, up, down string }

var feedForwards = []projections{
	{"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"},
	{"ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"},
	{"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"},
}

// checkProjections holds gate [in, width], up [in, width] and down [width, out] of every block
// against each other, routed experts against the width that the metadata states, and the
// router's rows against the model's width.
func (c *check) checkProjections() {
	widths, hidden := c.expertWidths(), c.number("embedding_length")
	for _, t := range c.m.Tensors() {
		block, name, ok := reap.SplitBlock(t.Name)
		if !ok {
			continue
		}
		for _, f := range feedForwards {
			if name == f.up {
				c.checkForward(block, t, f)
			}
		}
		switch reap.Role(name) {
		case reap.Router:
			if hidden > 0 && dim(t, 0) != hidden && c.known() {
				c.misshapen(t, fmt.Sprintf("rows of %d, as %q states", hidden, c.md.ArchKey("embedding_length")))
			}
		case reap.GateProjection:
			if len(widths) > 0 && !slices.Contains(widths, dim(t, 1)) {
				c.misshapen(t, fmt.Sprintf("%d rows for each expert, as the metadata states", widths[0]))
			}
		}
	}
}

// checkForward holds an up projection against the gate beside it, and the down projection
// against both. Where there is no gate, the up projection may hold it too.
func (c *check) checkForward(block int, up *gguf.Tensor, f projections) {
	gate, down := c.tensor(block, f.gate), c.tensor(block, f.down)
	if gate != nil && (dim(up, 0) != dim(gate, 0) || dim(up, 1) != dim(gate, 1)) {
		c.misshapen(up, fmt.Sprintf("%d x %d, as tensor %q beside it has", dim(gate, 0), dim(gate, 1), gate.Name))
		return
	}
	width := dim(up, 1)
	if down != nil && dim(down, 0) != width && !(gate == nil && 2*dim(down, 0) == width) {
		c.misshapen(down, fmt.Sprintf("rows of %d, as many as tensor %q has", width, up.Name))
	}
}

// expertWidths returns the widths that llama.cpp may read an expert's to be; none when the
// metadata does not state one.
func (c *check) expertWidths() []uint64 {
	used := c.numbers("expert_used_count")
	widths := c.numbers("expert_feed_forward_length")
	for _, dense := range c.numbers("feed_forward_length") {
		widths = append(widths, dense)
		if len(used) > 0 && used[0] > 0 {
			widths = append(widths, dense/used[0])
		}
	}
	return slices.DeleteFunc(widths, func(n uint64) bool { return n == 0 })
}

// tensor returns a tensor of a block, or nil.
func (c *check) tensor(block int, name string) *gguf.Tensor {
	return c.m.Tensor(fmt.Sprintf("blk.%d.%s", block, name))
}
