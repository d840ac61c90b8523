package reap

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// The old layout is told once, not layer by layer and tensor by tensor.
func TestLegacyLayoutWithRouters(t *testing.T) {
	r := moe(0)
	for block := range 3 {
		r.add(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", block), gguf.F32, 16, 8)
		for expert := range 8 {
			for _, name := range []string{"gate", "up", "down"} {
				r.add(fmt.Sprintf("blk.%d.ffn_%s.%d.weight", block, name, expert), gguf.F32, 16, 16)
			}
		}
	}
	_, faults := FindExperts(r.model(t))
	wantFaults(t, faults, `layers 0-2: one tensor for each expert (such as "blk.0.ffn_up.0.weight"): an old layout that llama.cpp no longer loads`)
}

// Names that llama.cpp gives to tensors without anything for each expert, with a last
// dimension that happens to be the expert count.
func TestBystanders(t *testing.T) {
	r := moe(1)
	for _, name := range []string{
		"indexer_compressor_kv.weight", "indexer.proj.weight", "attn_compressor_gate.weight", "hc_ffn_fn.weight",
		"ple_key.weight", "vis_gate.weight", "ffn_conv_proj.weight", "ffn_latent_down.weight", "ffn_norm_exps.weight",
		"ssm_beta.weight", "post_ffw_norm_1.weight", "nextn.eh_proj.weight", "layer_output_scale.weight",
	} {
		r.add("blk.1."+name, gguf.F32, 16, 8)
	}
	m := r.model(t)
	e := mustExperts(t, m)
	out := pruned(t, m, e, planFor(e, 4, 2, 0), 1)
	for _, tensor := range m.Tensors() {
		_, name, _ := SplitBlock(tensor.Name)
		if routedBytes[name] == 0 && !bytes.Equal(tensorBytes(t, out, tensor.Name), tensorBytes(t, m, tensor.Name)) {
			t.Errorf("%s was cut", tensor.Name)
		}
	}
}

// A selection bias of its own for image tokens follows the keep list too.
func TestVisionSelectionBias(t *testing.T) {
	r := moe(1)
	r.add("blk.1.exp_probs_b_vl.bias", gguf.F32, 8).data = floats(0, 1, 2, 3, 4, 5, 6, 7)
	m := r.model(t)
	e := mustExperts(t, m)
	out := pruned(t, m, e, planFor(e, 6, 1, 2), 1)
	if got := tensorBytes(t, out, "blk.1.exp_probs_b_vl.bias"); !bytes.Equal(got, floats(6, 1, 2)) {
		t.Errorf("% x", got)
	}
}

// After pruning no tensor is left that has the old count on its expert axis.
func TestNothingKeepsTheOldCount(t *testing.T) {
	r := moe(2)
	r.add("blk.1.ffn_up_exps.input_scale", gguf.F32, 8)
	r.add("blk.2.ffn_gate_exps.bias", gguf.F32, 4, 8)
	r.add("blk.1.ffn_gate_exps.bias", gguf.F32, 4, 8)
	m := r.model(t)
	e := mustExperts(t, m)
	out := pruned(t, m, e, planFor(e, 0, 1, 2, 5, 6, 7), 1)
	after := mustExperts(t, out) // which refuses what disagrees
	if after.Count != 6 {
		t.Errorf("%d experts", after.Count)
	}
	n := 0
	for range after.Tensors() {
		n++
	}
	if before := len(e.Layers[0].Tensors) + len(e.Layers[1].Tensors); n != before {
		t.Errorf("%d routed tensors, want %d", n, before)
	}
}

func TestCountKeepsItsType(t *testing.T) {
	for want, v := range map[string]gguf.Value{
		"u8": gguf.Uint8Value(8), "i8": gguf.Int8Value(8), "u16": gguf.Uint16Value(8), "i16": gguf.Int16Value(8),
		"u32": gguf.Uint32Value(8), "i32": gguf.Int32Value(8), "u64": gguf.Uint64Value(8), "i64": gguf.Int64Value(8),
	} {
		r := moe(1)
		r.keys["expert_count"] = v
		m := r.model(t)
		e := mustExperts(t, m)
		md, err := Metadata(m, e, planFor(e, 0, 1, 2), Provenance{})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := md.Arch("expert_count")
		if n, ok := got.Uint(); !ok || n != 3 || got.TypeName() != want {
			t.Errorf("%s: %s %d", want, got.TypeName(), n)
		}
	}
}

// Arrays with an entry for each expert are a decision for people, wherever they stand; those
// with another meaning are kept as they are.
func TestArraysOfTheExpertCount(t *testing.T) {
	names := gguf.TextsValue("a", "b", "c", "d", "e", "f", "g", "h")
	r := moe(1)
	for i := range 40 {
		r.set(fmt.Sprintf("custom_%02d", i), i)
	}
	r.keys["expert_names"] = names
	r.keys["attention.head_count_kv"] = gguf.Uint32sValue(1, 2, 3, 4, 5, 6, 7, 8)
	r.keys["layer_notes"] = gguf.TextsValue("x", "y")
	r.others = map[string]gguf.Value{"router.temperatures": names, "tokenizer.ggml.tokens": names, "general.tags": names}
	m := r.model(t)
	e := mustExperts(t, m)
	if got, want := perExpertKeys(m, e), []string{"test.expert_names", "router.temperatures"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p := planFor(e, 0, 1)
	_, err := Metadata(m, e, p, Provenance{}, "test.expert_names")
	if err == nil || !strings.Contains(err.Error(), `key "router.temperatures": has 8 entries`) || strings.Contains(err.Error(), "expert_names") {
		t.Errorf("error %v", err)
	}
	md, err := Metadata(m, e, p, Provenance{}, "test.expert_names", "router.temperatures")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(md.Keys(), m.Metadata().Keys()) {
		t.Errorf("keys %q", md.Keys())
	}
}

// A model that states one group must keep two experts at least; llama.cpp stops otherwise.
func TestOneGroupOneExpert(t *testing.T) {
	r := moe(1)
	r.set("expert_used_count", 1)
	e := mustExperts(t, r.model(t))
	if err := e.CheckKeep(1); err != nil {
		t.Error(err)
	}
	r.set("expert_group_count", 1)
	e = mustExperts(t, r.model(t))
	if err := e.CheckKeep(1); err == nil || !strings.Contains(err.Error(), "wants more experts than routing groups") {
		t.Errorf("error %v", err)
	}
	wantFaults(t, planFor(e, 5).Check(e), "wants more experts than routing groups")
	wantFaults(t, planFor(e, 5, 2).Check(e))
}

// Lists for layers 1 and 2 of a model whose layer 3 is a draft layer.
func TestFillDraft(t *testing.T) {
	r := moe(3)
	r.set("nextn_predict_layers", 1)
	e := mustExperts(t, r.model(t))
	p := planFor(e, 0, 1, 4)
	p.Layers[2] = []int{7, 5, 6}
	p.FillDraft(e)
	if p.Rules.DraftLayers != "" || !slices.Equal(p.Layers[3], []int{0, 1, 4}) {
		t.Errorf("a complete plan became %+v", p)
	}
	delete(p.Layers, 3)
	wantFaults(t, p.Check(e), "layer 3: has experts but no plan entry (a draft layer")
	p.FillDraft(e)
	wantFaults(t, p.Check(e))
	if p.Rules.DraftLayers != DraftAsLast || !slices.Equal(p.Layers[3], []int{7, 5, 6}) {
		t.Errorf("%+v", p)
	}
	p.Layers[2][0] = 1
	if p.Layers[3][0] != 7 {
		t.Error("two layers share one list")
	}
	delete(p.Layers, 2)
	delete(p.Layers, 3)
	p.FillDraft(e)
	wantFaults(t, p.Check(e), "layer 2: has experts but no plan entry", "layer 3: has experts but no plan entry")
}

// Newer models state the experts used for each block; all count, for what must be kept.
func TestUsedByLayer(t *testing.T) {
	r := hashed(0, 4) // the table of block 1 has rows of 2
	r.keys["expert_used_count"] = gguf.Uint32sValue(0, 2, 3)
	e := mustExperts(t, r.model(t))
	if e.Used != 3 || e.CheckKeep(2) == nil || e.CheckKeep(3) != nil {
		t.Errorf("%d used", e.Used)
	}
	r.keys["expert_used_count"] = gguf.Uint32sValue(0, 3, 2)
	_, faults := FindExperts(r.model(t))
	wantFaults(t, faults, "rows of 2 ids, want 3")
	r.keys["expert_used_count"] = gguf.Uint32sValue(0, 2, 9)
	_, faults = FindExperts(r.model(t))
	wantFaults(t, faults, "9 experts used of 8")
	r.keys["expert_used_count"] = gguf.TextsValue("2")
	_, faults = FindExperts(r.model(t))
	wantFaults(t, faults, `key "test.expert_used_count": str[] of 21 bytes, want one small number`)
}

// There is no limit of our own: any count from the used ones up can be kept.
func TestAnyCountCanBeKept(t *testing.T) {
	e := &Experts{Count: 896, Used: 16, Groups: 1, GroupsUsed: 1}
	for keep := 16; keep <= 896; keep++ {
		if err := e.CheckKeep(keep); err != nil {
			t.Fatal(err)
		}
	}
	for _, keep := range []int{-1, 0, 15, 897} {
		if e.CheckKeep(keep) == nil {
			t.Errorf("%d of 896 with 16 used is accepted", keep)
		}
	}
}

// A type that nobody knows, whose rows are a header of 4 bytes and 9 bytes of blocks: an
// expert is its rows.
func TestRowsWithHeaders(t *testing.T) {
	var data []byte
	for row := range byte(24) { // 3 for each expert
		data = append(data, 0xaa, 0xbb, 0xcc, row, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	}
	r := moe(1)
	d := r.find("blk.1.ffn_down_exps.weight")
	d.typ, d.shape, d.data = 1000, []uint64{32, 3, 8}, data
	m := r.model(t)
	e := mustExperts(t, m)
	out := pruned(t, m, e, planFor(e, 7, 0, 4), 1)
	var want []byte
	for _, expert := range []int{7, 0, 4} {
		want = append(want, data[39*expert:39*(expert+1)]...)
	}
	if got := tensorBytes(t, out, d.name); !bytes.HasPrefix(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}
