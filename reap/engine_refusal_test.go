package reap_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

// TestEngineStopsAtWhatIsRefused shows that refusals have their reason in llama.cpp: it does
// not load the file that would come out. Some of its checks end the process, so each model
// is loaded in a child of this one.
func TestEngineStopsAtWhatIsRefused(t *testing.T) {
	if path := os.Getenv(childVariable); path != "" {
		model, err := llamatest.Engine(t).Open(path, llama.Options{})
		if err != nil {
			t.Fatal(err)
		}
		model.Close()
		return
	}
	of := func(arch string, experts int, o gguftest.ArchitectureOptions) gguftest.Spec {
		o.Experts = experts
		spec, err := gguftest.Architecture(arch, o)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	groups := gguftest.ArchitectureOptions{Groups: 4, GroupsUsed: 2}
	oneGroup := gguftest.ArchitectureOptions{Groups: 1, GroupsUsed: 1}
	for _, c := range []struct {
		name    string
		source  gguftest.Spec
		keep    int
		refused string
		pruned  gguftest.Spec
		stops   string // what llama.cpp says; nothing when it loads
	}{
		{"a count that fits", of("deepseek2", 16, groups), 12, "", of("deepseek2", 12, groups), ""},
		{"fewer than are used", of("deepseek2", 16, gguftest.ArchitectureOptions{}), 3, "4 are used",
			of("deepseek2", 3, gguftest.ArchitectureOptions{}), "<= hparams.n_expert"},
		{"unequal groups", of("deepseek2", 16, groups), 10, "cannot share equally",
			of("deepseek2", 10, groups), "n_expert % hparams.n_expert_groups == 0"},
		{"as many groups as experts", of("deepseek2", 16, groups), 4, "ranked by its two best",
			of("deepseek2", 4, groups), "n_expert_groups < hparams.n_expert"},
		{"one expert, one group", oneUsed(of("deepseek2", 16, oneGroup)), 1, "more experts than routing groups",
			oneUsed(of("deepseek2", 1, oneGroup)), "n_expert_groups < hparams.n_expert"},
		{"old layout", legacy(of("llama", 16, gguftest.ArchitectureOptions{})), 16, "one tensor for each expert",
			legacy(of("llama", 16, gguftest.ArchitectureOptions{})), "ffn_down_exps.weight' not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := refusal(t, c.source, c.keep); !strings.Contains(got, c.refused) || (got == "") != (c.refused == "") {
				t.Errorf("refused with %q, want %q", got, c.refused)
			}
			paths, err := c.pruned.WriteSparse(t.TempDir(), gguf.Split{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := run(t, "^TestEngineStopsAtWhatIsRefused$", paths[0])
			if (err != nil) != (c.stops != "") || !strings.Contains(out, c.stops) {
				t.Errorf("llama.cpp: %v, want a stop at %q\n%.500s", err, c.stops, out)
			}
		})
	}
}

// refusal returns why a model cannot keep the first experts of every layer, or "".
func refusal(t *testing.T, spec gguftest.Spec, keep int) string {
	t.Helper()
	model, err := spec.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, err := reap.ReadExperts(model)
	if err != nil {
		return err.Error()
	}
	plan := &reap.Plan{
		Source:     reap.Source{Architecture: experts.Architecture},
		NumExperts: experts.Count, KeepCount: keep, Layers: map[int][]int{},
	}
	for _, block := range experts.Blocks() {
		for place := range keep { // as many of each group, in group order
			group := place / max(keep/experts.Groups, 1)
			plan.Layers[block] = append(plan.Layers[block], place+group*(experts.Count-keep)/experts.Groups)
		}
	}
	if err := plan.Check(experts).Err(); err != nil {
		return err.Error()
	}
	return ""
}

// oneUsed uses a single expert for a token.
func oneUsed(spec gguftest.Spec) gguftest.Spec {
	spec.Metadata.Set(spec.Metadata.ArchKey("expert_used_count"), gguf.Uint32Value(1))
	return spec
}

// legacy gives every expert tensors of its own, as old converters did.
func legacy(spec gguftest.Spec) gguftest.Spec {
	var tensors []gguftest.Tensor
	for _, tensor := range spec.Tensors {
		before, after, stacked := strings.Cut(tensor.Name, "_exps.weight")
		switch {
		case stacked && after == "":
			for expert := range int(tensor.Shape[2]) {
				tensors = append(tensors, gguftest.Tensor{Name: fmt.Sprintf("%s.%d.weight", before, expert), Type: tensor.Type, Shape: tensor.Shape[:2], Fill: tensor.Fill})
			}
		case !strings.Contains(tensor.Name, "_exps."):
			tensors = append(tensors, tensor)
		}
	}
	spec.Tensors = tensors
	return spec
}
