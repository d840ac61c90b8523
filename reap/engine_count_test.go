package reap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
)

// TestEngineTellsLlama4ByItsCount shows why llama4 is not pruned from 128 experts or to 128:
// llama.cpp computes another model. The sources never choose what is dropped, so the logits
// of what is left must be theirs to the bit, and are at every other count.
func TestEngineTellsLlama4ByItsCount(t *testing.T) {
	for _, c := range []struct {
		experts, keep int
		same          bool
	}{
		{144, 132, true}, {144, 128, false}, {144, 124, true}, {128, 124, false}, {124, 120, true},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.keep, c.experts), func(t *testing.T) {
			source, err := gguftest.Architecture("llama4", gguftest.ArchitectureOptions{Experts: c.experts})
			if err != nil {
				t.Fatal(err)
			}
			if got := llama4Refused(t, source, c.keep); got == c.same {
				t.Errorf("refused: %v, and llama.cpp computes the same model: %v", got, c.same)
			}
			embedSign(t, source)
			kept := firstExperts(t, source, c.keep)
			want, got := sourceLogits(t, source, archInput), sourceLogits(t, kept, archInput)
			if n := differing(got, want); (n == 0) != c.same {
				t.Errorf("%d logits differ, want none: %v", n, c.same)
			}
			if far := greatest(got, want); !c.same && !(far > 0.1) {
				t.Errorf("logits differ by %g at most, which rounding might do", far)
			}
		})
	}
}

// llama4Refused reports whether a model or the number of its experts to keep is refused.
func llama4Refused(t *testing.T, spec gguftest.Spec, keep int) bool {
	t.Helper()
	model, err := spec.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, faults := reap.FindExperts(model)
	return faults.Err() != nil || experts.CheckKeep(keep) != nil
}

// firstExperts keeps the source from choosing any but its first experts, and returns a model
// that has no others. It does without [reap.Views], which refuses to make some of them.
func firstExperts(t *testing.T, source gguftest.Spec, keep int) gguftest.Spec {
	t.Helper()
	var first []int
	for id := range keep {
		first = append(first, id)
	}
	kept := source.Clone()
	kept.Metadata.Set(kept.Metadata.ArchKey("expert_count"), gguf.Uint32Value(uint32(keep)))
	for i := range kept.Tensors {
		tensor := &kept.Tensors[i]
		switch block := 0; {
		case strings.HasSuffix(tensor.Name, string(reap.Router)):
			fmt.Sscanf(tensor.Name, "blk.%d.", &block)
			neverChoose(t, source, block, first)
		case !strings.Contains(tensor.Name, "_exps."):
			continue
		}
		data := specBytes(t, source, tensor.Name)
		last := len(tensor.Shape) - 1
		tensor.Data = data[:len(data)/int(tensor.Shape[last])*keep]
		tensor.Shape = slices.Clone(tensor.Shape)
		tensor.Shape[last] = uint64(keep)
	}
	return kept
}
