package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// small writes a small model of an architecture, with more tensors, and returns its path.
func small(t *testing.T, arch string, o gguftest.ArchitectureOptions, edit func(md *gguf.Metadata), more ...gguftest.Tensor) string {
	t.Helper()
	spec, err := gguftest.Architecture(arch, o)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(spec.Metadata)
	}
	spec.Tensors = append(spec.Tensors, more...)
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

// Each case is refused without a flag that settles the matter, and done with it.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	lists := filepath.Join(dir, "lists.json") // layers 1 and 2, not the draft layer 3
	if err := os.WriteFile(lists, []byte(`{"1":[1,2,3,5,6,9],"2":[0,2,4,6,8,10]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	names := func(md *gguf.Metadata) {
		md.Set("dots1.expert_names", gguf.TextsValue(strings.Split("abcdefghijklmnop", "")...))
	}
	mystery := func(name string, shape ...uint64) gguftest.Tensor {
		return gguftest.Tensor{Name: name, Type: gguf.F32, Shape: shape}
	}
	for _, c := range []struct {
		name, model string
		args        []string
		refused     string
		flags       []string
		recorded    string // in plan.json
	}{
		{"hash-routed layers", small(t, "deepseek4", gguftest.ArchitectureOptions{}, nil), []string{"--keep", "12", "--criterion", "router-norm"},
			"tokens name a dropped expert", []string{"--remap-dropped", "nearest-kept"}, `"dropped_ids": "nearest-kept"`},
		{"draft layer", small(t, "glm4moe", gguftest.ArchitectureOptions{Draft: true}, nil), []string{"--plan", lists},
			"layer 3: has experts but no plan entry", []string{"--draft-layers", "as-last-layer"}, `"draft_layers": "as-last-layer"`},
		{"array by expert", small(t, "dots1", gguftest.ArchitectureOptions{}, names), []string{"--keep", "12"},
			`key "dots1.expert_names": has 16 entries`, []string{"--copy-key", "dots1.expert_names"}, `"keep_count": 12`},
		{"tensor of unknown role", small(t, "dots1", gguftest.ArchitectureOptions{}, nil, mystery("blk.1.ffn_mystery.weight", 16, 4)), []string{"--keep", "12"},
			"hint: --copy-tensor NAME copies such a tensor", []string{"--copy-tensor", "blk.1.ffn_mystery.weight"}, `"keep_count": 12`},
		{"tensor outside of layers", small(t, "dots1", gguftest.ArchitectureOptions{}, nil, mystery("mystery.weight", 4, 16)), []string{"--keep", "12"},
			`tensor "mystery.weight": shape [4 16] has the expert count, 16, and its role is not known`, []string{"--copy-tensor", "mystery.weight"}, `"keep_count": 12`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"prune", "-q", "-o", out}, c.args...)
			r := ggufreap(t, append(args, c.model)...)
			if r.code != 2 || !strings.Contains(r.stderr, c.refused) {
				t.Errorf("exit %d, want 2 and %q:\n%s", r.code, c.refused, r.stderr)
			}
			r = ggufreap(t, append(append(args, c.flags...), c.model)...)
			if r.code != 0 {
				t.Fatalf("exit %d:\n%s", r.code, r.stderr)
			}
			plan, err := os.ReadFile(filepath.Join(out, release.PlanName))
			if err != nil || !strings.Contains(string(plan), c.recorded) {
				t.Errorf("plan.json lacks %s (%v)", c.recorded, err)
			}
			if r := ggufreap(t, "verify", out); r.code != 0 {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			args[3] = filepath.Join(t.TempDir(), "out")
			r = ggufreap(t, append(append(args, c.flags[0], "x"), c.model)...)
			if r.code != 2 {
				t.Errorf("%s x: exit %d, want 2", c.flags[0], r.code)
			}
		})
	}
}
