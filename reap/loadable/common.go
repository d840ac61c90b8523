package loadable

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/reap"
)

// commonShapes are the dims that tensors have in every architecture that was judged, innermost
// first: E is the model's width, X the number of experts, * any. Outside of those with a table
// they are all that is known of shapes.
var commonShapes = map[string]string{
	"token_embd.weight": "E*", "output.weight": "E*", "output_norm.weight": "E",
	"attn_norm.weight": "E", "ffn_norm.weight": "E", "post_attention_norm.weight": "E", "post_ffw_norm.weight": "E",
	"attn_q.weight": "E*", "attn_k.weight": "E*", "attn_v.weight": "E*", "attn_qkv.weight": "E*", "attn_gate.weight": "E*",
	"attn_q_a.weight": "E*", "attn_kv_a_mqa.weight": "E*", "attn_kv.weight": "E*",
	"attn_output.weight": "*E", "attn_output.bias": "E",
	"ffn_gate.weight": "E*", "ffn_up.weight": "E*", "ffn_down.weight": "*E",
	"ffn_gate_shexp.weight": "E*", "ffn_up_shexp.weight": "E*", "ffn_down_shexp.weight": "*E",
	"ffn_gate_inp.weight": "EX", "exp_probs_b.bias": "X",
	"ffn_gate_exps.weight": "E*X", "ffn_up_exps.weight": "E*X", "ffn_gate_up_exps.weight": "E*X", "ffn_down_exps.weight": "*EX",
	"indexer.proj.weight": "E*", "indexer.attn_k.weight": "E*",
	"ssm_in.weight": "E*", "ssm_out.weight": "*E",
	"nextn.eh_proj.weight": "*E", "nextn.enorm.weight": "E", "nextn.hnorm.weight": "E", "nextn.shared_head_norm.weight": "E",
}

// fellows are tensors of one block with a dim that must be the same: the tensor and its dim,
// and those that it follows.
var fellows = []struct {
	name  string
	dim   int
	other string
	as    int
}{
	{"attn_q.bias", 0, "attn_q.weight", 1},
	{"attn_k.bias", 0, "attn_k.weight", 1},
	{"attn_v.bias", 0, "attn_v.weight", 1},
	{"attn_qkv.bias", 0, "attn_qkv.weight", 1},
	{"attn_q_a_norm.weight", 0, "attn_q_a.weight", 1},
	{"attn_q_b.weight", 0, "attn_q_a.weight", 1},
	{"attn_k_b.weight", 1, "attn_kv_a_norm.weight", 0},
	{"attn_v_b.weight", 0, "attn_kv_a_norm.weight", 0},
	{"attn_kv_b.weight", 0, "attn_kv_a_norm.weight", 0},
}

// A company is tensors of which a block has all or none.
type company struct {
	any  []string // where one of them is there,
	need []string // so are these; "a or b" is there when either is
	but  []string // architectures that may leave some out
}

// secondNorm is what stands before the feed-forward part, where that has a norm of its own.
const secondNorm = "ffn_norm.weight or post_attention_norm.weight or attn_output_norm.weight"

// oneNorm are the architectures whose blocks have one norm.
var oneNorm = []string{"cohere2moe", "nemotron_h_moe"}

// sharing are the architectures whose later layers may take key and value of earlier ones.
var sharing = []string{"gemma4"}

var companies = []company{
	{any: []string{"attn_q.weight", "attn_qkv.weight", "attn_q_b.weight"}, need: []string{"attn_norm.weight", "attn_output.weight or attn_output_a.weight"}},
	{any: []string{"attn_q.weight", "attn_k.weight"}, need: []string{"attn_k.weight or attn_kv_a_mqa.weight or attn_kv.weight"}, but: sharing},
	{any: []string{"attn_q_a.weight", "attn_q_b.weight", "attn_q_a_norm.weight"}, need: []string{"attn_q_a.weight", "attn_q_b.weight", "attn_q_a_norm.weight"}},
	{any: []string{"attn_kv_a_mqa.weight", "attn_k_b.weight", "attn_v_b.weight"},
		need: []string{"attn_kv_a_mqa.weight", "attn_kv_a_norm.weight", "attn_k_b.weight or attn_kv_b.weight", "attn_v_b.weight or attn_kv_b.weight"}},
	{any: []string{"attn_q_norm.weight", "attn_k_norm.weight"}, need: []string{"attn_q_norm.weight", "attn_k_norm.weight"}, but: append(sharing, "step35")},
	{any: []string{"ffn_gate_inp.weight", "ffn_up_exps.weight", "ffn_gate_up_exps.weight", "ffn_down_exps.weight"},
		need: []string{"ffn_gate_inp.weight", "ffn_up_exps.weight or ffn_gate_up_exps.weight", "ffn_down_exps.weight", secondNorm}, but: []string{"hy_v3", "mimo2", "step35"}},
	{any: []string{"ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"}, need: []string{"ffn_up_shexp.weight", "ffn_down_shexp.weight"}, but: []string{"step35"}},
	{any: []string{"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}, need: []string{"ffn_up.weight", "ffn_down.weight", secondNorm}, but: []string{"mimo2", "step35"}},
}

// checkCompanies wants what belongs together in each of the blocks.
func (c *check) checkCompanies(blocks []int) {
	for _, together := range companies {
		if slices.Contains(together.but, c.arch) {
			continue
		}
		for _, need := range together.need {
			if need != secondNorm || !slices.Contains(oneNorm, c.arch) {
				c.checkCompany(blocks, together.any, need)
			}
		}
	}
}

func (c *check) checkCompany(blocks []int, any []string, need string) {
	var without []int
	beside := ""
	for _, block := range blocks {
		there := func(name string) bool { return c.tensor(block, name) != nil }
		if i := slices.IndexFunc(any, there); i >= 0 && !slices.ContainsFunc(strings.Split(need, " or "), there) {
			without, beside = append(without, block), any[i]
		}
	}
	if len(without) > 0 {
		c.refuse(c.m.Name, "%s: no %s, without which llama.cpp does not load one with %q", blockList(without), need, beside)
	}
}

// checkCommon applies what all architectures that were judged have in common. It is for those
// without a table.
func (c *check) checkCommon() {
	if _, known := tables[c.arch]; known || c.draftAlone() || reap.StandingOf(c.arch) != reap.Judged || len(c.traits) == 0 {
		return
	}
	if c.m.Tensor("output_norm.weight") == nil && c.m.Tensor("token_embd_norm.weight") == nil { // lfm2moe calls it so
		c.refuse(c.m.Name, "has no tensor %q", "output_norm.weight")
	}
	latent := slices.ContainsFunc(c.m.Tensors(), func(t *gguf.Tensor) bool { return strings.Contains(t.Name, ".ffn_latent_") })
	for _, t := range c.m.Tensors() {
		_, name, inBlock := reap.SplitBlock(t.Name)
		if !inBlock {
			name = t.Name
		}
		rule, known := commonShapes[name]
		if scale := strings.TrimSuffix(name, "input_scale"); scale != name || strings.HasSuffix(name, ".scale") {
			rule, known = c.scaleShape(name)
		}
		if known && !(latent && strings.Contains(name, "_exps.")) {
			c.checkDims(t, rule)
		}
	}
	blocks := slices.Sorted(maps.Keys(c.traits))
	for _, block := range blocks {
		c.checkFellows(block)
		c.checkHeads(block)
	}
	c.checkCompanies(slices.DeleteFunc(blocks, func(block int) bool { return block >= c.blocks-c.drafts }))
}

// scaleShape is that of the numbers beside a matrix: one, or one for each expert. Gemma 4's
// router has another kind of scale.
func (c *check) scaleShape(name string) (rule string, known bool) {
	switch matrix := name[:strings.LastIndex(name, ".")] + ".weight"; {
	case name == "ffn_gate_inp.scale" || !slices.Contains(scalable, matrix):
		return "", false
	case strings.Contains(name, "_exps."):
		return "X", true
	}
	return "1", true
}

// checkDims holds a tensor against a rule of commonShapes.
func (c *check) checkDims(t *gguf.Tensor, rule string) {
	want := make([]string, len(rule))
	fits := len(gguf.CanonicalShape(t.Shape)) <= len(rule)
	for i, letter := range rule {
		n, known := uint64(1), true
		switch letter {
		case 'E':
			n = c.number("embedding_length")
		case 'X':
			n = c.number("expert_count")
		case '*':
			known = false
		}
		want[i] = "any number"
		if known && n > 0 {
			want[i] = fmt.Sprint(n)
			fits = fits && dim(t, i) == n
		}
	}
	if !fits {
		c.misshapen(t, strings.Join(want, " x "))
	}
}

// checkHeads holds what attention projects to against the numbers and lengths of heads. A query
// may have a gate beside it, twice as long. Jamba's are as long as the model is wide, whatever the number of heads.
func (c *check) checkHeads(block int) {
	q, out := c.tensor(block, "attn_q.weight"), c.tensor(block, "attn_output.weight")
	heads, kv := c.perBlock("attention.head_count")(block), c.perBlock("attention.head_count")(block)
	if _, there := c.md.Arch("attention.head_count_kv"); there {
		kv = c.perBlock("attention.head_count_kv")(block)
	}
	if c.arch == "jamba" || q == nil || heads == 0 || kv == 0 || c.tensor(block, "attn_kv_a_mqa.weight") != nil || c.tensor(block, "attn_kv.weight") != nil {
		return
	}
	width := c.number("embedding_length")
	lengths := func(suffix string) []uint64 { // the first layer may have no heads
		return []uint64{width / max(c.perBlock("attention.head_count")(0), 1), width / heads, c.number("attention." + suffix), c.number("attention." + suffix + "_swa")}
	}
	keys, values := lengths("key_length"), lengths("value_length")
	all := []uint64{heads}
	gated := slices.Clone(keys)
	for _, n := range keys {
		gated = append(gated, 2*n)
	}
	c.checkProjected(q, 1, all, gated)
	c.checkProjected(c.tensor(block, "attn_k.weight"), 1, []uint64{kv, heads}, keys)
	c.checkProjected(c.tensor(block, "attn_v.weight"), 1, []uint64{kv, heads}, values)
	c.checkProjected(out, 0, all, append(values, keys...))
}

// checkProjected wants a dim of so many heads of one of the lengths, or the model's width, which
// some architectures take whatever their heads are.
func (c *check) checkProjected(t *gguf.Tensor, i int, heads, lengths []uint64) {
	if t == nil || dim(t, i) == c.number("embedding_length") {
		return
	}
	fits := slices.ContainsFunc(heads, func(heads uint64) bool {
		return slices.ContainsFunc(lengths, func(n uint64) bool { return n > 0 && heads*n == dim(t, i) })
	})
	if !fits {
		c.refuseTensor(t, "has the shape %s, which does not fit %d heads of any length that the metadata states", shapeText(t.Shape), heads[0])
	}
}

// checkFellows holds tensors of a block against each other.
func (c *check) checkFellows(block int) {
	for _, f := range fellows {
		t, other := c.tensor(block, f.name), c.tensor(block, f.other)
		if t != nil && other != nil && dim(t, f.dim) != dim(other, f.as) {
			c.refuseTensor(t, "has the shape %s, which does not fit tensor %q beside it, %s", shapeText(t.Shape), other.Name, shapeText(other.Shape))
		}
	}
}
