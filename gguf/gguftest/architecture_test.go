package gguftest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

func mustArchitecture(t *testing.T, name string, o ArchitectureOptions) Spec {
	t.Helper()
	spec, err := Architecture(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestArchitecturesAreSound(t *testing.T) {
	names := Architectures()
	if len(names) != 53 { // 41 that llama.cpp's saver writes, and twelve more
		t.Errorf("%d architectures: %q", len(names), names)
	}
	for _, name := range names {
		spec := mustArchitecture(t, name, ArchitectureOptions{Experts: 12})
		model, err := spec.Model(gguf.Split{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, p := range model.Problems {
			t.Errorf("%s: %v", name, p)
		}
		if got := model.Metadata().Architecture(); got != name {
			t.Errorf("%s: states architecture %q", name, got)
		}
		count, _ := model.Metadata().ArchUint("expert_count")
		blocks, _ := model.Metadata().ArchUint("block_count")
		routed := 0
		for block := range blocks {
			router := model.Tensor(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", block))
			down := model.Tensor(fmt.Sprintf("blk.%d.ffn_down_exps.weight", block))
			if (router == nil) != (down == nil) {
				t.Errorf("%s: block %d has a router or experts, not both", name, block)
			}
			if router != nil && router.Shape[1] == count && down.Shape[2] == count {
				routed++
			}
		}
		if count != 12 || routed < 2 {
			t.Errorf("%s: %d experts, %d layers with that many", name, count, routed)
		}
	}
}

// A few shapes and values, by hand.
func TestArchitectureSizes(t *testing.T) {
	spec := mustArchitecture(t, "kimi-k3", ArchitectureOptions{Experts: 20, Hidden: 256, Width: 96, Projections: gguf.MXFP4})
	for name, want := range map[string][]uint64{
		"token_embd.weight":            {256, 128},
		"blk.0.ffn_down.weight":        {96, 256},
		"blk.1.ffn_up_exps.weight":     {192, 96, 20},
		"blk.2.ffn_down_exps.weight":   {96, 192, 20},
		"blk.2.ffn_down_exps.scale":    {20},
		"blk.2.ffn_up_shexp.scale":     {1},
		"blk.1.ffn_routed_down.weight": {256, 192},
		"blk.1.exp_probs_b.bias":       {20},
	} {
		if got := spec.Tensor(name); got == nil || !slices.Equal(got.Shape, want) {
			t.Errorf("%s: %+v, want shape %v", name, got, want)
		}
	}
	if got := spec.Tensor("blk.1.ffn_up_exps.weight").Type; got != gguf.MXFP4 {
		t.Errorf("projections are %s", got)
	}
	for key, want := range map[string]uint64{"embedding_length": 256, "expert_latent_length": 192, "feed_forward_length": 96, "expert_count": 20} {
		if got, _ := spec.Metadata.ArchUint(key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
}

func TestArchitectureOptions(t *testing.T) {
	has := func(spec Spec, name string) bool { return spec.Tensor(name) != nil }
	plain := mustArchitecture(t, "deepseek2", ArchitectureOptions{})
	if !has(plain, "blk.2.ffn_gate_up_exps.weight") || !has(plain, "blk.2.exp_probs_b.bias") || has(plain, "blk.3.attn_norm.weight") {
		t.Error("the usual model has other tensors")
	}
	changed := mustArchitecture(t, "deepseek2", ArchitectureOptions{Separate: true, Unbiased: true, Draft: true, Groups: 4, GroupsUsed: 2})
	for _, name := range []string{"blk.2.ffn_gate_exps.weight", "blk.2.ffn_up_exps.scale", "blk.3.ffn_up_exps.weight", "blk.3.nextn.eh_proj.weight"} {
		if !has(changed, name) {
			t.Errorf("no %s", name)
		}
	}
	for _, tensor := range changed.Tensors {
		if strings.Contains(tensor.Name, "gate_up") || strings.Contains(tensor.Name, "exp_probs_b") {
			t.Errorf("%s is left", tensor.Name)
		}
	}
	for key, want := range map[string]uint64{"block_count": 4, "nextn_predict_layers": 1, "expert_group_count": 4, "expert_group_used_count": 2} {
		if got, _ := changed.Metadata.ArchUint(key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
	if v, _ := mustArchitecture(t, "kimi-linear", ArchitectureOptions{Draft: true}).Metadata.Arch("attention.head_count"); v.Len() != 4 {
		t.Errorf("%d head counts for 4 blocks", v.Len())
	}
}

// Every token has experts that exist and differ, and tokens do not all have the same.
func TestIDTable(t *testing.T) {
	data, err := mustArchitecture(t, "deepseek4", ArchitectureOptions{Experts: 9}).Bytes("blk.1.ffn_gate_tid2eid.weight")
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != 4*4*128 {
		t.Fatalf("%d bytes", len(data))
	}
	rows := map[string]bool{}
	used := map[uint32]bool{}
	for row := range slices.Chunk(data, 16) {
		seen := map[uint32]bool{}
		for id := range slices.Chunk(row, 4) {
			seen[binary.LittleEndian.Uint32(id)] = true
		}
		if len(seen) != 4 {
			t.Fatalf("row % x repeats an expert", row)
		}
		for id := range seen {
			used[id] = true
		}
		rows[string(row)] = true
	}
	if len(rows) < 100 || len(used) != 9 || !used[0] || !used[8] {
		t.Errorf("%d different rows, experts %v", len(rows), used)
	}
}

func TestArchitectureErrors(t *testing.T) {
	for _, name := range []string{"", "gpt2", "common"} {
		if _, err := Architecture(name, ArchitectureOptions{}); err == nil {
			t.Errorf("architecture %q: no error", name)
		}
	}
	for _, text := range []string{
		"x", "token_embd.weight 3", "arch", "arch x\nkey y", "arch x\nblocks one",
	} {
		if _, err := parseFacts(text); err == nil || !strings.Contains(err.Error(), "architectures.txt:") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	for _, k := range []keyFact{{"x", "u33", []string{"1"}}, {"x", "u32", nil}, {"x", "u32", []string{"Q"}}, {"x", "f32[]", []string{"a"}}} {
		if _, err := (sizes{}).value(k); err == nil {
			t.Errorf("%v: no error", k)
		}
	}
}
