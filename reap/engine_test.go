package reap_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

// In these tests llama.cpp is the judge. Pruning must equal masking: with the selection
// bias of every dropped expert at -1e30 the source never chooses one of them, and computes
// everything else as before. A model of the kept experts alone must then give the same
// logits, bit for bit, whatever their order. One wrong slab, router row or bias anywhere
// changes them.

// input is what the models are judged on: ids of the fixture's vocabulary, some of them
// twice.
var input = []int{268, 84, 104, 101, 32, 257, 256, 110, 9, 200, 33, 5, 90, 91, 92, 64, 84, 104, 101, 70, 71, 3, 2, 383}

// routed are the tensors of a block that have one slab for each routed expert.
var routed = []string{
	"ffn_gate_inp.weight", "exp_probs_b.bias",
	"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight",
}

const releaseShards = 14

func TestEngineRunsTheFixture(t *testing.T) {
	logits := sourceLogits(t, gguftest.K3(gguftest.K3Options{}), input)
	if len(logits) != len(input) {
		t.Fatalf("logits of %d positions, want %d", len(logits), len(input))
	}
	for i, row := range logits {
		var least, most float64 = math.Inf(1), math.Inf(-1)
		for _, x := range row {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Fatalf("position %d has a logit of %v", i, x)
			}
			least, most = min(least, float64(x)), max(most, float64(x))
		}
		if most-least < 1 || most-least > 100 {
			t.Errorf("position %d: logits from %g to %g", i, least, most)
		}
		if i > 0 && slices.Equal(row, logits[i-1]) {
			t.Errorf("positions %d and %d have the same logits", i-1, i)
		}
	}
}

func TestPrunedEqualsMasked(t *testing.T) {
	for _, experts := range []gguf.Type{gguf.Q8_0, gguf.MXFP4} {
		for _, order := range []string{"sorted", "shuffled"} {
			t.Run(fmt.Sprint(experts, " ", order), func(t *testing.T) {
				spec := gguftest.K3(gguftest.K3Options{GateUp: experts})
				plan := randomPlan(spec, 568, order == "shuffled")
				r := prune(t, spec, plan)
				checkSlabs(t, spec, plan, r.views)
				got := llamatest.Logits(t, r.write(t, releaseShards), input)
				if n := differing(got, sourceLogits(t, masked(t, spec, plan), input)); n > 0 {
					t.Errorf("%d logits differ from those of the masked source", n)
				}
				if differing(got, sourceLogits(t, spec, input)) == 0 {
					t.Error("dropping a third of the experts changes no logit")
				}
			})
		}
	}
}

func TestAllExpertsGiveTheSourcesLogits(t *testing.T) {
	spec := gguftest.K3(gguftest.K3Options{})
	want := sourceLogits(t, spec, input)
	for _, order := range []string{"sorted", "shuffled"} {
		got := llamatest.Logits(t, prune(t, spec, randomPlan(spec, 896, order == "shuffled")).write(t, 1), input)
		if n := differing(got, want); n > 0 {
			t.Errorf("all experts, %s: %d logits differ from the source's", order, n)
		}
	}
}

// TestRotationIsSeen shows that the comparison above has eyes: in a release that is right
// otherwise it notices the router, or any other routed tensor, rotated by one expert in one
// layer.
func TestRotationIsSeen(t *testing.T) {
	spec := gguftest.K3(gguftest.K3Options{})
	plan := randomPlan(spec, 568, true)
	want := sourceLogits(t, masked(t, spec, plan), input)
	rotated := rotations(t, prune(t, spec, plan).write(t, 1), input)
	for block := range plan.Layers {
		for _, tensor := range routed {
			name := fmt.Sprintf("blk.%d.%s", block, tensor)
			if differing(rotated(name), want) == 0 {
				t.Errorf("%s rotated by one expert changes no logit", name)
			}
		}
	}
}

// randomPlan keeps experts at random in every layer, other ones in each.
func randomPlan(spec gguftest.Spec, keep int, shuffled bool) *reap.Plan {
	count, _ := spec.Metadata.ArchUint("expert_count")
	blocks, _ := spec.Metadata.ArchUint("block_count")
	rng := rand.New(rand.NewPCG(uint64(keep), 1))
	plan := &reap.Plan{
		Source:     reap.Source{Architecture: spec.Metadata.Architecture()},
		NumExperts: int(count), KeepCount: keep, Layers: map[int][]int{},
	}
	for block := 1; block < int(blocks); block++ { // the first is dense
		list := rng.Perm(int(count))[:keep]
		if !shuffled {
			slices.Sort(list)
		}
		plan.Layers[block] = list
	}
	return plan
}

// masked returns the source with every dropped expert's selection bias at -1e30.
func masked(t *testing.T, spec gguftest.Spec, plan *reap.Plan) gguftest.Spec {
	t.Helper()
	spec = spec.Clone()
	for block, keep := range plan.Layers {
		name := fmt.Sprintf("blk.%d.exp_probs_b.bias", block)
		bias := specBytes(t, spec, name)
		for id := range plan.NumExperts {
			if !slices.Contains(keep, id) {
				binary.LittleEndian.PutUint32(bias[4*id:], math.Float32bits(-1e30))
			}
		}
		spec.Tensor(name).Data = bias
	}
	return spec
}

// sourceLogits writes the model in nine shards and runs it.
func sourceLogits(t *testing.T, spec gguftest.Spec, tokens []int) [][]float32 {
	t.Helper()
	return specLogits(t, spec, gguftest.K3Shards, tokens)
}

// specLogits writes the model and runs it.
func specLogits(t *testing.T, spec gguftest.Spec, shards int, tokens []int) [][]float32 {
	t.Helper()
	paths, err := spec.Write(t.TempDir(), gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return llamatest.Logits(t, paths[0], tokens)
}

// differing counts logits whose bits differ.
func differing(got, want [][]float32) int {
	n := 0
	for i := range want {
		for j := range want[i] {
			if math.Float32bits(got[i][j]) != math.Float32bits(want[i][j]) {
				n++
			}
		}
	}
	return n
}

// release is a pruned model before it is written.
type release struct {
	metadata *gguf.Metadata
	views    []gguf.View
}

// prune applies the plan to the model, read from nine shards on disk.
func prune(t *testing.T, spec gguftest.Spec, plan *reap.Plan) release {
	t.Helper()
	paths, err := spec.Write(t.TempDir(), gguf.Split{Shards: gguftest.K3Shards})
	if err != nil {
		t.Fatal(err)
	}
	model, err := gguf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return pruneModel(t, model, plan)
}

func pruneModel(t *testing.T, model *gguf.Model, plan *reap.Plan) release {
	t.Helper()
	if err := model.Err(); err != nil {
		t.Fatal(err)
	}
	experts, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	views, err := reap.Views(t.Context(), model, experts, plan)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := reap.Metadata(model, experts, plan, reap.Provenance{Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	return release{metadata, views}
}

// write writes the release in shards and returns the path of the first.
func (r release) write(t *testing.T, shards int) string {
	t.Helper()
	layout, err := gguf.NewLayout(gguf.Contents{Version: 3, Metadata: r.metadata, Views: r.views}, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	buf := make([]byte, 1<<18)
	for i, shard := range layout.Shards {
		f, err := os.Create(filepath.Join(dir, gguf.ShardName("K3-REAP", i, shards)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(shard.Write(context.Background(), f, buf, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, gguf.ShardName("K3-REAP", 0, shards))
}

// rotations loads a model, and returns a function that gives its logits while one tensor is
// rotated by one expert in the file. The model is loaded once: llama.cpp maps its file, so that
// what is written there is what it computes with.
func rotations(t *testing.T, path string, tokens []int) func(name string) [][]float32 {
	t.Helper()
	model, err := llamatest.Engine(t).Open(path, llama.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return func(name string) [][]float32 {
		rotate(t, path, name, 1)
		defer rotate(t, path, name, -1)
		logits, err := model.Logits(tokens)
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
}

// rotate moves every slab of one tensor of a written release by so many places, in the file.
func rotate(t *testing.T, path, name string, places int) {
	t.Helper()
	model, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	tensor := model.Tensor(name)
	data, err := io.ReadAll(tensor.Reader())
	if err != nil {
		t.Fatal(err)
	}
	slabs := int(tensor.Shape[len(tensor.Shape)-1])
	cut := (slabs - places) % slabs * (len(data) / slabs)
	f, err := os.OpenFile(tensor.File().Name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(slices.Concat(data[cut:], data[:cut]), tensor.DataOffset())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkSlabs compares every tensor of a release with the generated source by a path of its
// own: bytes cut from the generator's output by name.
func checkSlabs(t *testing.T, spec gguftest.Spec, plan *reap.Plan, views []gguf.View) {
	t.Helper()
	if len(views) != len(spec.Tensors) {
		t.Fatalf("%d tensors, want %d", len(views), len(spec.Tensors))
	}
	for i, v := range views {
		name := spec.Tensors[i].Name
		if v.Name != name {
			t.Fatalf("tensor %d is %q, want %q", i, v.Name, name)
		}
		want := specBytes(t, spec, name)
		var block int
		var role string
		if fmt.Sscanf(name, "blk.%d.%s", &block, &role); slices.Contains(routed, role) {
			whole, slab := want, len(want)/plan.NumExperts
			want = nil
			for _, id := range plan.Layers[block] {
				want = append(want, whole[id*slab:(id+1)*slab]...)
			}
		}
		if !bytes.Equal(viewBytes(t, v), want) {
			t.Errorf("tensor %q differs from the source's kept slabs", name)
		}
	}
}

func specBytes(t *testing.T, spec gguftest.Spec, name string) []byte {
	t.Helper()
	data, err := spec.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func viewBytes(t *testing.T, v gguf.View) []byte {
	t.Helper()
	data := make([]byte, 0, v.Size())
	for _, e := range v.Extents {
		part := make([]byte, e.Length)
		if n, err := e.Source.ReadAt(part, e.Offset); n < len(part) {
			t.Fatalf("tensor %q: %v", v.Name, err)
		}
		data = append(data, part...)
	}
	return data
}
