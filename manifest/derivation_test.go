package manifest

import (
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/modeltest"
)

// deriveMoE writes what MoEKeep keeps of the contents as a release, and checks it against
// the pin of MoE.
func deriveMoE(t *testing.T, contents gguf.Contents, edit func(d *Derivation, pin *Pin)) error {
	t.Helper()
	m := modeltest.New(t, contents, gguf.Split{Shards: 2})
	pin := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	keep := map[string][]int{}
	for _, tensor := range m.Tensors() {
		if modeltest.MoESlabs(1)(tensor.Name) > 0 {
			keep[tensor.Name] = modeltest.MoEKeep[2]
		}
	}
	layout, err := gguf.NewLayout(gguf.Contents{Version: 3, Metadata: m.Metadata(), Views: keptViews(m, keep)}, gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDerivation(pin)
	d.Keep = func(tensor string) []int { return keep[tensor] }
	d.File = func(tensor string) string { return filepath.Base(m.Tensor(tensor).File().Name) }
	if edit != nil {
		edit(d, pin)
	}
	_, err = draftOf{stem: "r", layout: layout, slabs: modeltest.MoESlabs(4), check: d.Check}.write(t, t.TempDir())
	return err
}

// TestDraftStopsAtTheFirstDifference writes from sources that are not the pinned one.
func TestDraftStopsAtTheFirstDifference(t *testing.T) {
	changed := func(tensor string, at int) gguf.Contents {
		c := modeltest.MoE()
		modeltest.ChangedData(modeltest.View(c, tensor), at)
		return c
	}
	without := func(tensor string) func(d *Derivation, pin *Pin) {
		return func(d *Derivation, pin *Pin) {
			d.source[tensor] = nil
		}
	}
	for name, test := range map[string]struct {
		contents gguf.Contents
		edit     func(d *Derivation, pin *Pin)
		want     string
	}{
		"the source":        {modeltest.MoE(), nil, ""},
		"a dropped expert":  {changed("blk.2.ffn_up_exps.weight", 7*170), nil, ""}, // 8, 1, 5 and 4 are read
		"a kept expert":     {changed("blk.2.ffn_up_exps.weight", 5*170+3), nil, `m-00002-of-00002.gguf: tensor "blk.2.ffn_up_exps.weight": expert 5: blake3 is `},
		"a kept bias":       {changed("blk.10.exp_probs_b.bias", 4*8+3), nil, `m-00002-of-00002.gguf: tensor "blk.10.exp_probs_b.bias": expert 8: bytes are `},
		"a tensor":          {changed("token_embd.weight", 0), nil, `m-00001-of-00002.gguf: tensor "token_embd.weight": blake3 is `},
		"a rewritten table": {changed("token_embd.weight", 0), func(d *Derivation, _ *Pin) { d.Rewritten = func(n string) bool { return n == "token_embd.weight" } }, ""},
		"not pinned":        {modeltest.MoE(), without("blk.1.attn_norm.weight"), "is no tensor of the source's pin"},
		"without slabs": {modeltest.MoE(), func(_ *Derivation, pin *Pin) { ByName(pin)["blk.1.ffn_up_exps.weight"].Slabs = nil },
			"does not tell its experts apart"},
		"other experts": {modeltest.MoE(), func(_ *Derivation, pin *Pin) { ByName(pin)["blk.1.ffn_up_exps.weight"].Slabs.Count = 8 },
			"expert 8: the source's pin has 8 experts"},
	} {
		t.Run(name, func(t *testing.T) {
			err := deriveMoE(t, test.contents, test.edit)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCheckHeaders(t *testing.T) {
	pin := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	for name, test := range map[string]struct {
		edit func(c *gguf.Contents)
		want string
	}{
		"same":     {func(c *gguf.Contents) { modeltest.ChangedData(modeltest.View(*c, "token_embd.weight"), 0) }, ""},
		"metadata": {func(c *gguf.Contents) { c.Metadata.Set("x", gguf.Uint8Value(1)) }, `key "x" (u8) was added`},
		"missing":  {func(c *gguf.Contents) { c.Views = c.Views[1:] }, `tensor "token_embd.weight" is pinned and not there`},
		"added":    {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Name = "x" }, `tensor "token_embd.weight" is pinned`},
		"retyped":  {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Type = gguf.BF16 }, `has type BF16, the pin says F16`},
		"reshaped": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Shape = []uint64{7, 24} }, `has shape [7 24], the pin says [24 7]`},
	} {
		c := modeltest.MoE()
		test.edit(&c)
		err := pin.CheckHeaders(modeltest.New(t, c, gguf.Split{Shards: 2}))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
