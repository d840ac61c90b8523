package reap

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf"
)

func TestExperts(t *testing.T) {
	r := moe(3)
	r.shards = 5 // the tensors of a layer lie in different files
	e := mustExperts(t, r.model(t))
	if e.Architecture != "test" || e.Count != 8 || e.Used != 2 || e.Shared != 1 || e.Groups != 1 || e.GroupsUsed != 1 {
		t.Errorf("%+v", e)
	}
	if got := e.Blocks(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("blocks %v", got)
	}
	want := map[Role]int64{
		Router: 16 * 4, SelectionBias: 4, "ffn_down_exps.scale": 4,
		GateProjection: 4 * 34, UpProjection: 4 * 34, DownProjection: 3 * 17,
	}
	var total int64
	for _, n := range want {
		total += n
	}
	for _, l := range e.Layers {
		if len(l.Tensors) != len(want) {
			t.Errorf("layer %d has %d routed tensors, want %d", l.Block, len(l.Tensors), len(want))
		}
		for role, bytes := range want {
			if got := l.Tensor(role); got == nil || got.SlabBytes != bytes {
				t.Errorf("layer %d: %s: %+v, want slabs of %d", l.Block, role, got, bytes)
			}
		}
		if l.ExpertBytes() != total {
			t.Errorf("layer %d: an expert takes %d bytes, want %d", l.Block, l.ExpertBytes(), total)
		}
		if l.Draft {
			t.Errorf("layer %d is draft", l.Block)
		}
	}
	if e.Layer(0) != nil || e.Layer(2).Block != 2 || e.Layer(4) != nil {
		t.Error("layers are not found by block")
	}
}

func TestDenseModel(t *testing.T) {
	r := &recipe{arch: "test"}
	r.add("blk.0.ffn_up.weight", gguf.F32, 16, 8)
	m := r.model(t)
	if e, faults := FindExperts(m); e != nil || faults != nil {
		t.Errorf("%v, %v", e, faults)
	}
	if _, err := ReadExperts(m); !errors.Is(err, ErrDense) {
		t.Errorf("error %v, want ErrDense", err)
	}
}

// Each case spoils a good model in one way; the fault must name the thing and why.
func TestExpertFaults(t *testing.T) {
	cases := map[string]struct {
		spoil func(r *recipe)
		want  []string
	}{
		"unknown tensor with an expert axis": {
			func(r *recipe) { r.add("blk.2.ffn_gate_exp_temperature", gguf.F32, 8) },
			[]string{`tensor "blk.2.ffn_gate_exp_temperature": shape [8] has the expert count, 8, and its role is not known`},
		},
		"unknown tensor with as many entries in a row": {
			func(r *recipe) { r.add("blk.2.ffn_mystery.weight", gguf.F32, 8, 3) },
			[]string{`tensor "blk.2.ffn_mystery.weight": shape [8 3] has the expert count, 8, and its role is not known`},
		},
		"unknown tensor outside of blocks": {
			func(r *recipe) { r.add("expert_mystery", gguf.F32, 3, 8) },
			[]string{`tensor "expert_mystery": shape [3 8] has the expert count, 8, and its role is not known`},
		},
		"known tensors outside of blocks": {
			func(r *recipe) {
				r.add("output_norm.weight", gguf.F32, 8)
				r.add("rope_freqs.weight", gguf.F32, 8)
			}, nil,
		},
		"unknown tensor of another size": {
			func(r *recipe) { r.add("blk.2.ffn_something", gguf.F32, 9) }, nil,
		},
		"unknown tensor in a dense block": {
			func(r *recipe) { r.add("blk.0.ffn_something", gguf.F32, 8) }, nil,
		},
		"unknown expert tensor": {
			func(r *recipe) { r.add("blk.2.ffn_up_exps.zero_point", gguf.F32, 3) },
			[]string{`"blk.2.ffn_up_exps.zero_point": unknown tensor of routed experts`},
		},
		"expert tensor outside a layer": {
			func(r *recipe) { r.add("mtp.ffn_up_exps.weight", gguf.F32, 4, 4, 8) },
			[]string{`"mtp.ffn_up_exps.weight": expert tensor outside a layer`},
		},
		"Gemma 4's router scale": {
			func(r *recipe) { r.add("blk.2.ffn_gate_inp.scale", gguf.F32, 8) }, nil,
		},
		"adapter of attention": {
			func(r *recipe) { r.add("blk.2.attn_q.weight.lora_a", gguf.F32, 16, 2, 8) }, nil,
		},
		"adapter of experts": {
			func(r *recipe) { r.add("blk.2.ffn_up_exps.weight.lora_a", gguf.F32, 16, 2, 8) },
			[]string{"an adapter of a routed tensor is not pruned"},
		},
		"no router": {
			func(r *recipe) { r.remove("blk.2.ffn_gate_inp.weight") },
			[]string{`layer 2: no router`},
		},
		"no down projection": {
			func(r *recipe) { r.remove("blk.2.ffn_down_exps.weight") },
			[]string{`layer 2: no "ffn_down_exps.weight"`},
		},
		"no gate in one layer": {
			func(r *recipe) { r.remove("blk.2.ffn_gate_exps.weight") },
			[]string{`layer 2: no "ffn_gate_exps.weight", which is in layers 1, 3`},
		},
		"no gate anywhere, as in Nemotron-H": {
			func(r *recipe) { r.remove("ffn_gate_exps.weight") }, nil,
		},
		"merged gate and up": {
			func(r *recipe) {
				r.remove("blk.2.ffn_gate_exps.weight")
				r.remove("blk.2.ffn_up_exps.weight")
				r.add("blk.2.ffn_gate_up_exps.weight", gguf.Q8_0, 32, 8, 8)
			}, nil,
		},
		"merged gate and up beside up": {
			func(r *recipe) { r.add("blk.2.ffn_gate_up_exps.weight", gguf.Q8_0, 32, 8, 8) },
			[]string{`layer 2: both "ffn_gate_up_exps.weight" and "ffn_gate_exps.weight"`, `layer 2: both "ffn_gate_up_exps.weight" and "ffn_up_exps.weight"`},
		},
		"no selection bias in one layer": {
			func(r *recipe) { r.remove("blk.2.exp_probs_b.bias") },
			[]string{`layer 2: no "exp_probs_b.bias"`},
		},
		"no selection bias in a layer of mimo2": {
			func(r *recipe) { r.arch = "mimo2"; r.remove("blk.2.exp_probs_b.bias") }, nil,
		},
		"selection bias without suffix": {
			func(r *recipe) { r.find("blk.2.exp_probs_b.bias").name = "blk.2.exp_probs_b" }, nil,
		},
		"selection bias twice": {
			func(r *recipe) { r.add("blk.2.exp_probs_b", gguf.F32, 8) },
			[]string{`tensor "blk.2.exp_probs_b": same role as tensor "blk.2.exp_probs_b.bias"`},
		},
		"short selection bias": {
			func(r *recipe) { r.find("blk.2.exp_probs_b.bias").shape = []uint64{7} },
			[]string{`tensor "blk.2.exp_probs_b.bias": last dimension is 7, want 8`},
		},
		"quantized selection bias": {
			func(r *recipe) {
				b := r.find("blk.2.exp_probs_b.bias")
				b.typ, b.data = gguf.Q8_0, make([]byte, 34)
			},
			[]string{`tensor "blk.2.exp_probs_b.bias": type Q8_0 stores experts in blocks`},
		},
		"shared experts in the router, as in Inkling": {
			func(r *recipe) { r.find("blk.2.ffn_gate_inp.weight").shape = []uint64{16, 10} },
			[]string{`tensor "blk.2.ffn_gate_inp.weight": 10 rows for 8 experts: rows of shared experts follow`},
		},
		"a key that is wrong": {
			func(r *recipe) {
				for _, name := range []string{"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"} {
					r.find("blk.2." + name).shape[2] = 10
				}
				r.find("blk.2.ffn_gate_inp.weight").shape = []uint64{16, 10}
			},
			[]string{`tensor "blk.2.ffn_gate_inp.weight": last dimension is 10, want 8, the expert count`, "layer 2: 10 experts, but the model's expert count is 8"},
		},
		"one layer with fewer experts": {
			func(r *recipe) {
				for _, name := range []string{"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"} {
					r.find("blk.2." + name).shape[2] = 6
				}
			},
			[]string{"layer 2: 6 experts, but the model's expert count is 8"},
		},
		"one projection with fewer experts": {
			func(r *recipe) { r.find("blk.2.ffn_down_exps.weight").shape[2] = 6 },
			[]string{"layer 2: 6 experts, but the model's expert count is 8"},
		},
		"projection of two dims": {
			func(r *recipe) { r.find("blk.2.ffn_down_exps.weight").shape = []uint64{32, 8} },
			[]string{`layer 2: 1 experts, but the model's expert count is 8`},
		},
		"metadata disagrees": {
			func(r *recipe) {
				r.set("expert_count", 6)
				r.remove("exp_probs_b")
				r.remove("scale")
				r.remove("inp.weight")
			},
			[]string{"layers 1-3: 8 experts, but the model's expert count is 6", "layer 1: no router", "layer 2: no router", "layer 3: no router"},
		},
		"count absent": {
			func(r *recipe) { delete(r.keys, "expert_count") },
			[]string{`key "test.expert_count": absent`},
		},
		"count by layer": {
			func(r *recipe) { r.keys["expert_count"] = gguf.Uint32sValue(0, 8, 8, 8) },
			[]string{`key "test.expert_count": u32[] of 28 bytes, want one small number`},
		},
		"count beyond any number of experts": {
			func(r *recipe) { r.keys["expert_count"] = gguf.Uint64Value(1 << 40) },
			[]string{`key "test.expert_count": 1099511627776 (u64), want one small number`},
		},
		"negative count": {
			func(r *recipe) { r.keys["expert_shared_count"] = gguf.Int32Value(-1) },
			[]string{`key "test.expert_shared_count": -1 (i32), want one small number`},
		},
		"no architecture": {
			func(r *recipe) { r.arch = "" },
			[]string{`key "general.architecture": names no architecture`},
		},
		"no experts at all": {
			func(r *recipe) { resize(r, "test", 0) },
			[]string{`key "test.expert_count": 0 routed experts, as in tensor "blk.1.ffn_gate_inp.weight", want at least 2`, "2 experts used of 0"},
		},
		"endless draft layers": {
			func(r *recipe) { r.set("block_count", math.MaxInt32); r.set("nextn_predict_layers", math.MaxInt32) },
			[]string{`key "test.nextn_predict_layers": 2147483647 draft layers, at most 1024 are supported`},
		},
		"more draft layers than blocks": {
			func(r *recipe) { r.set("nextn_predict_layers", 9) },
			[]string{`key "test.nextn_predict_layers": 9 draft layers, but 4 layers in all`},
		},
		"id table without columns": {
			func(r *recipe) {
				r.keys["expert_used_count"] = gguf.Uint32sValue(2) // says nothing of block 1
				r.add("blk.1.ffn_gate_tid2eid.weight", gguf.I32, 0, 16)
			},
			[]string{`tensor "blk.1.ffn_gate_tid2eid.weight": rows of 0 ids, want 1 to 8`},
		},
		"id table wider than the experts": {
			func(r *recipe) {
				r.keys["expert_used_count"] = gguf.Uint32sValue(2)
				r.add("blk.1.ffn_gate_tid2eid.weight", gguf.I32, 9, 16)
			},
			[]string{`tensor "blk.1.ffn_gate_tid2eid.weight": rows of 9 ids, want 1 to 8`},
		},
		"id table with long rows": {
			func(r *recipe) {
				resize(r, "test", 40)
				r.set("expert_used_count", 33)
				r.add("blk.1.ffn_gate_tid2eid.weight", gguf.I32, 33, 1)
			},
			[]string{`tensor "blk.1.ffn_gate_tid2eid.weight": rows of 33 ids, at most 32 are supported`},
		},
		"experts without bytes": {
			func(r *recipe) { r.find("blk.2.ffn_up_exps.weight").shape[1] = 0 },
			[]string{`tensor "blk.2.ffn_up_exps.weight": shape [32 0 8] has no elements`},
		},
		"more experts than any model": {
			func(r *recipe) { resize(r, "test", 4097) },
			[]string{"4097 routed experts, at most 4096 are supported"},
		},
		"more used than there are": {
			func(r *recipe) { r.set("expert_used_count", 9) },
			[]string{"9 experts used of 8"},
		},
		"uneven groups": {
			func(r *recipe) { r.set("expert_group_count", 3); r.set("expert_group_used_count", 3) },
			[]string{"8 experts in 3 groups", "3 groups used of 3"},
		},
		"old layout": {
			func(r *recipe) { r.add("blk.1.ffn_up.0.weight", gguf.F32, 16, 4) },
			[]string{"layer 1: one tensor for each expert"},
		},
		"llama4 with 128 experts": {
			func(r *recipe) { resize(r, "llama4", 128) },
			[]string{"llama4 with 128 experts cannot be pruned"},
		},
		"llama4 with 16 experts": {
			func(r *recipe) { resize(r, "llama4", 16) }, nil,
		},
		"grovemoe": {
			func(r *recipe) { r.arch = "grovemoe"; r.add("blk.1.ffn_up_chexps.weight", gguf.F32, 4, 4, 4) },
			[]string{`layer 1: chunk experts ("_chexps", as in grovemoe)`},
		},
		"partial blocks": {
			func(r *recipe) {
				d := r.find("blk.2.ffn_down_exps.weight")
				d.shape, d.data = []uint64{48, 3, 8}, make([]byte, 17*2*3*8)
			},
			[]string{`"blk.2.ffn_down_exps.weight": type MXFP4: rows of 48 elements are not whole blocks of 32`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := moe(3)
			c.spoil(r)
			_, faults := FindExperts(r.model(t))
			wantFaults(t, faults, c.want...)
		})
	}
}

// resize gives every routed tensor another expert count.
func resize(r *recipe, arch string, count uint64) {
	r.arch = arch
	r.set("expert_count", int(count))
	for i, in := range r.tensors {
		if _, name, ok := SplitBlock(in.name); ok {
			if _, routed := roleOf(name); routed {
				r.tensors[i].shape[len(in.shape)-1] = count
			}
		}
	}
}

func TestLegacyLayout(t *testing.T) {
	r := &recipe{arch: "llama", keys: map[string]gguf.Value{}}
	r.set("expert_count", 2)
	r.set("expert_used_count", 1)
	for _, name := range []string{"blk.0.ffn_up.0.weight", "blk.0.ffn_up.1.weight"} {
		r.add(name, gguf.F32, 4, 4)
	}
	e, faults := FindExperts(r.model(t))
	wantFaults(t, faults, "layer 0: one tensor for each expert")
	if e == nil || e.Count != 2 {
		t.Errorf("%+v", e)
	}
}

func TestDraftLayers(t *testing.T) {
	r := moe(3)
	r.set("nextn_predict_layers", 2) // blocks 2 and 3
	e := mustExperts(t, r.model(t))
	if e.Layer(1).Draft || !e.Layer(2).Draft || !e.Layer(3).Draft || e.Notes != nil {
		t.Errorf("%+v", e)
	}
	r.remove("blk.3.")
	e = mustExperts(t, r.model(t))
	if len(e.Notes) != 1 || e.Notes[0] != `layer 3: announced as draft by "test.nextn_predict_layers", but not in the file` {
		t.Errorf("notes %q", e.Notes)
	}
}

// The span of an unknown type ends in padding; the size is certain only when one
// length for the rows fits.
func TestOpaqueTypes(t *testing.T) {
	cases := map[string]struct {
		bytes int
		shape []uint64
		slab  int64
		want  []string
	}{
		"46 bytes in each of 64 rows, no padding":  {46 * 64, []uint64{256, 8, 8}, 46 * 8, nil},
		"5 bytes in each of 24 rows, 8 of padding": {5 * 24, []uint64{32, 3, 8}, 15, nil},
		"5 bytes in each of 8 rows, 24 of padding": {5 * 8, []uint64{32, 1, 8}, 0, []string{"more than one length"}},
		"5 bytes in each of 40 rows, 24 padding":   {5 * 40, []uint64{32, 5, 8}, 25, nil},
		"1 byte in each of 64 rows":                {64, []uint64{256, 8, 8}, 8, nil},
		"odd span":                                 {1000, []uint64{32, 100, 8}, 0, []string{"do not divide into 800 rows"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := moe(1)
			d := r.find("blk.1.ffn_down_exps.weight")
			d.typ, d.shape, d.data = 1000, c.shape, distinct(9, c.bytes)
			e, faults := FindExperts(r.model(t))
			wantFaults(t, faults, c.want...)
			if got := e.Layers[0].Tensor(DownProjection).SlabBytes; got != c.slab {
				t.Errorf("slabs of %d bytes, want %d", got, c.slab)
			}
		})
	}
}
