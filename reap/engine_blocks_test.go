package reap_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama/llamatest"
)

// A softmax in llama.cpp adds sixteen numbers at a time (or fewer, as the processor has it) in
// float32, and the sums in double, where a few of them add up exactly. Whole blocks of sixteen experts can so change places
// and be left out without another rounding.
const (
	blockSize    = 16
	blockExperts = 4 * blockSize
	blockKeep    = 3 * blockSize
)

// blocks judges a softmax over all experts to the bit, in a model of four blocks of sixteen:
// another order of all, and a release without a block against the source that never chooses
// its experts.
func (c archCase) blocks(t *testing.T) {
	c.options.Experts = blockExperts
	spec := c.held(t)
	embedSign(t, spec)
	model, err := spec.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	j := judgement{archCase: c, spec: spec, model: model, experts: experts, want: specLogits(t, spec, 1, archInput)}
	order := pruneModel(t, model, j.blockPlan(blockExperts)).write(t, 1)
	if n := differing(llamatest.Logits(t, order, archInput), j.want); n > 0 {
		t.Errorf("blocks of experts in another order: %d logits differ from the source's", n)
	}
	plan := j.blockPlan(blockKeep)
	got := llamatest.Logits(t, pruneModel(t, model, plan).write(t, 1), archInput)
	if differing(got, j.want) == 0 {
		t.Error("dropping a block of experts changes no logit")
	}
	masked := spec.Clone()
	for block, keep := range plan.Layers {
		neverChoose(t, masked, block, keep)
	}
	if n := differing(got, specLogits(t, masked, 1, archInput)); n > 0 {
		t.Errorf("without a block of experts %d logits differ from those of the masked source", n)
	}
}

// blockPlan keeps blocks of experts in a random order. Within a block every expert i changes
// places with i^n, which leaves the pairwise sums as they are.
func (j judgement) blockPlan(keep int) *reap.Plan {
	plan := j.plan(keep, 3)
	rng := rand.New(rand.NewPCG(3, 7))
	for _, layer := range j.experts.Blocks() {
		var list []int
		for _, block := range rng.Perm(blockExperts / blockSize)[:keep/blockSize] {
			n := rng.IntN(blockSize)
			for i := range blockSize {
				list = append(list, block*blockSize+i^n)
			}
		}
		plan.Layers[layer] = list
	}
	return plan
}

// embedSign gives every token the same number in the first place of its embedding, so large
// that it keeps its sign in all layers, which [neverChoose] needs.
func embedSign(t *testing.T, spec gguftest.Spec) {
	const name = "token_embd.weight"
	data := specBytes(t, spec, name)
	for row := range slices.Chunk(data, 4*int(spec.Tensor(name).Shape[0])) {
		binary.LittleEndian.PutUint32(row, math.Float32bits(12))
	}
	spec.Tensor(name).Data = data
}

// neverChoose gives all experts but those of keep router rows that see the first number
// alone, and make of it a logit that no softmax tells from minus infinity.
func neverChoose(t *testing.T, spec gguftest.Spec, block int, keep []int) {
	name := fmt.Sprintf("blk.%d.%s", block, reap.Router)
	data := specBytes(t, spec, name)
	size := 4 * int(spec.Tensor(name).Shape[0])
	for id := range len(data) / size {
		if !slices.Contains(keep, id) {
			row := data[id*size:][:size]
			clear(row)
			binary.LittleEndian.PutUint32(row, math.Float32bits(-1e5))
		}
	}
	spec.Tensor(name).Data = data
}
