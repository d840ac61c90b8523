package reap_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama/llamatest"
)

// archInput is what the models are judged on, in a vocabulary of 128.
var archInput = []int{1, 5, 9, 77, 42, 3, 3, 60, 99, 12, 31, 88, 20, 64, 7, 51}

// archKeep is how many experts pruned models keep of their 16: a multiple of four, as the
// source's count is, so that llama.cpp multiplies routers of both by the same kernel.
const archKeep = 12

// TestArchitectures lets llama.cpp judge the pruning of every architecture:
//
//   - a plan that keeps all experts in their order gives the source's file, byte for byte;
//   - a plan that keeps all of them in another order gives the source's logits, bit for bit;
//   - with one routed tensor rotated by one expert it does not, unless the engine does not
//     read that tensor; then its bytes are all that is compared;
//   - a plan that drops experts gives the logits of the source masked; where no tensor can
//     mask the source, every layer is computed again by [moetest.Layer];
//   - a softmax over all experts is judged to the bit in a model of 64 (see blocks).
//
// A check of llama.cpp that ends the process must not take the other tests with it, so this
// one runs in a child of the test's process.
func TestArchitectures(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		pattern := "^TestArchitectures$"
		if _, rows, given := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); given {
			pattern += "/" + rows
		}
		out, err := run(t, pattern, "judge")
		var table []string
		for line := range strings.Lines(out) {
			if row := archRow.FindStringSubmatch(strings.TrimSpace(line)); row != nil {
				table = append(table, row[1])
			}
		}
		slices.Sort(table)
		for _, row := range table {
			t.Log(row)
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	seen := map[string]bool{}
	for _, c := range archCases() {
		seen[c.arch] = true
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			verdict := c.judge(t)
			t.Logf("%-42s %s (%d ms)", c.name(), verdict, time.Since(start).Milliseconds())
		})
	}
	for _, name := range gguftest.Architectures() {
		if !seen[name] {
			t.Errorf("architecture %q is not judged", name)
		}
	}
}

// childVariable tells a child of the test's process what to do.
const childVariable = "GGUFREAP_TEST_CHILD"

// archRow matches a case's line in the output of a child.
var archRow = regexp.MustCompile(`_test\.go:\d+: (.* \(\d+ ms\))$`)

// run runs tests in a child process that is told what to do, and returns its output.
func run(t *testing.T, pattern, task string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run="+pattern)
	cmd.Env = append(os.Environ(), childVariable+"="+task, "GGML_NO_BACKTRACE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c archCase) judge(t *testing.T) string {
	spec := c.held(t)
	model, err := spec.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, faults := reap.FindExperts(model)
	if c.refused != "" {
		if err := faults.Err(); err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("faults %v, want %q", err, c.refused)
		}
		return "refused: " + faults.Error()
	}
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	if got := experts.Gating == reap.Softmax; got != c.softmax && !c.unread {
		t.Errorf("gating is said to be %s", experts.Gating)
	}
	j := judgement{archCase: c, spec: spec, model: model, experts: experts}
	j.source = j.identity(t)
	j.want = llamatest.Logits(t, j.source, archInput)
	if !finite(j.want) {
		t.Fatal("the source's logits are not all numbers")
	}
	shuffled := j.shuffled(t)
	j.sensitivity(t, shuffled)
	j.pruned(t)
	if c.softmax {
		c.blocks(t)
	}
	return fmt.Sprintf("order: %s; pruned: %s", c.order(), c.method())
}

// A judgement is a case under way.
type judgement struct {
	archCase
	spec    gguftest.Spec
	model   *gguf.Model
	experts *reap.Experts
	source  string      // its file
	want    [][]float32 // its logits
}

// plan keeps experts in a random order, as many of each routing group, which stay in order.
func (j judgement) plan(keep int, seed uint64) *reap.Plan {
	rng := rand.New(rand.NewPCG(seed, 7))
	plan := &reap.Plan{
		Source:     reap.Source{Architecture: j.experts.Architecture},
		NumExperts: j.experts.Count, KeepCount: keep, Layers: map[int][]int{},
		Rules: reap.Rules{DroppedIDs: reap.NearestKept},
	}
	groups := j.experts.Groups
	size := j.experts.Count / groups
	for _, block := range j.experts.Blocks() {
		for g := range groups {
			for _, id := range rng.Perm(size)[:keep/groups] {
				plan.Layers[block] = append(plan.Layers[block], g*size+id)
			}
		}
	}
	return plan
}

// identity judges the plan that keeps all experts in their order, and returns the path of its
// release, which is the source's file too.
func (j judgement) identity(t *testing.T) string {
	plan := j.plan(j.experts.Count, 0)
	for block := range plan.Layers {
		slices.Sort(plan.Layers[block])
	}
	source, err := j.spec.File()
	if err != nil {
		t.Fatal(err)
	}
	views, err := reap.Views(t.Context(), j.model, j.experts, plan)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := reap.Metadata(j.model, j.experts, plan, reap.Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	path := release{metadata, views}.write(t, 1)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, source) {
		t.Fatalf("identity: the file differs from the source's (%v)", err)
	}
	return path
}

// shuffled judges plans that keep all experts and returns the path of a release that has the
// source's logits to the bit.
//
// A softmax over all experts adds them up in another order, and rounds otherwise. It does
// not where every expert i changes places with i^n: processors add numbers in vectors, and
// vectors in pairs, and whichever of two comes first, their sum is the same.
func (j judgement) shuffled(t *testing.T) string {
	plan := j.plan(j.experts.Count, 1)
	r := pruneModel(t, j.model, plan)
	j.checkBytes(t, plan, r)
	path := r.write(t, 1)
	got := llamatest.Logits(t, path, archInput)
	if !j.softmax {
		if n := differing(got, j.want); n > 0 {
			t.Errorf("all experts in another order: %d logits differ from the source's", n)
		}
		return path
	}
	if far := greatest(got, j.want); !(far <= roundingBound) {
		t.Errorf("all experts in another order: logits differ by up to %g", far)
	}
	for block, list := range plan.Layers {
		for i := range list {
			list[i] = i ^ (3+5*block)%plan.NumExperts
		}
	}
	path = pruneModel(t, j.model, plan).write(t, 1)
	if n := differing(llamatest.Logits(t, path, archInput), j.want); n > 0 {
		t.Errorf("all experts in an order with the same sums: %d logits differ from the source's", n)
	}
	return path
}

// roundingBound is how far logits of a few units may move when sums are rounded otherwise.
const roundingBound = 1e-4

// sensitivity rotates each kind of routed tensor in the last layer that has it. Block types
// change the projections alone.
func (j judgement) sensitivity(t *testing.T, path string) {
	last := map[reap.Role]*reap.RoutedTensor{}
	for layer, tensor := range j.experts.Tensors() {
		if !layer.Draft && (j.options.Projections == gguf.F32 || tensor.Type == j.options.Projections) {
			last[tensor.Role] = tensor
		}
	}
	rotated := rotations(t, path, archInput)
	var unread []string
	for role, tensor := range last {
		if !j.reads(role) {
			unread = append(unread, tensor.Name)
		} else if differing(rotated(tensor.Name), j.want) == 0 {
			t.Errorf("%s rotated: no logit changes", tensor.Name)
		}
	}
	for _, name := range unread {
		rotate(t, path, name, 1)
	}
	if n := differing(llamatest.Logits(t, path, archInput), j.want); n > 0 {
		t.Errorf("%s rotated: %d logits change, want none", unread, n)
	}
}

// trunk lists the blocks that route and that the engine computes.
func (j judgement) trunk() []int {
	var blocks []int
	for _, layer := range j.experts.Layers {
		if !layer.Draft {
			blocks = append(blocks, layer.Block)
		}
	}
	return blocks
}

// reads reports whether the engine reads the tensors of a role.
func (c archCase) reads(role reap.Role) bool {
	switch name := string(role); {
	case c.unread, strings.HasSuffix(name, ".input_scale"):
		return false
	case strings.HasSuffix(name, ".scale"):
		return c.scaled
	}
	return true
}

// pruned judges a plan that drops experts.
func (j judgement) pruned(t *testing.T) {
	plan := j.plan(archKeep, 2)
	j.checkRule(t, plan)
	r := pruneModel(t, j.model, plan)
	j.checkBytes(t, plan, r)
	path := r.write(t, 1)
	got := llamatest.Logits(t, path, archInput)
	if (differing(got, j.want) > 0) == j.unread {
		t.Errorf("dropping a quarter of the experts: logits change %v", !j.unread)
	}
	switch {
	case j.mask != "":
		if n := differing(got, specLogits(t, j.masked(t, plan, r), 1, archInput)); n > 0 {
			t.Errorf("%d logits differ from those of the masked source", n)
		}
	case j.routing != nil:
		j.checkRouting(t, path, plan)
	}
}

// checkRule wants a plan that names no rule for dropped ids refused where tables name them.
func (j judgement) checkRule(t *testing.T, plan *reap.Plan) {
	t.Helper()
	bare := *plan
	bare.Rules = reap.Rules{}
	_, err := reap.Views(t.Context(), j.model, j.experts, &bare)
	hashed := slices.ContainsFunc(j.experts.Layers, func(l *reap.Layer) bool { return l.Tensor(reap.IDTable) != nil })
	if hashed != (err != nil) || hashed && !strings.Contains(err.Error(), "tokens name a dropped expert") {
		t.Errorf("without a rule for dropped ids: %v", err)
	}
}

// method names how pruning is judged. ARCHITECTURES.md says what the words mean.
func (c archCase) method() string {
	switch {
	case c.refused != "":
		return "refused"
	case c.unread:
		return "bytes"
	case c.maskAdded:
		return "masked, with a bias added"
	case c.mask != "":
		return "masked"
	}
	method := "survivors"
	if c.options.Projections == gguf.F32 {
		method = "computed again, " + method
	}
	if c.softmax {
		method = "masked in blocks, " + method
	}
	return method
}

// checkRouting compares a release with the reference, in every layer where experts are F32,
// and with the source in the first.
func (j judgement) checkRouting(t *testing.T, path string, plan *reap.Plan) {
	t.Helper()
	blocks := j.trunk()
	first := blocks[0]
	pruned := traceLayers(t, *j.routing, path, archInput, blocks)
	source := traceLayers(t, *j.routing, j.source, archInput, blocks[:1])
	if j.options.Projections == gguf.F32 {
		checkLayers(t, j.spec, *j.routing, pruned, plan.Layers)
	}
	checkSurvivors(t, j.spec, *j.routing, first, source[first], pruned[first], plan.Layers[first])
}

// masked returns the source kept from choosing dropped experts. Where a table names a
// token's experts it names those of the release instead.
func (j judgement) masked(t *testing.T, plan *reap.Plan, r release) gguftest.Spec {
	t.Helper()
	spec := j.spec.Clone()
	for _, layer := range j.experts.Layers {
		keep := plan.Layers[layer.Block]
		if table := layer.Tensor(reap.IDTable); table != nil {
			spec.Tensor(table.Name).Data = oldIDs(t, r, table.Name, keep)
			continue
		}
		name := fmt.Sprintf("blk.%d.%s", layer.Block, j.mask)
		if bias := layer.Tensor(j.mask); bias != nil {
			name = bias.Name
		}
		if j.maskAdded {
			spec.Tensors = append(spec.Tensors, gguftest.Tensor{Name: name, Type: gguf.F32, Shape: []uint64{uint64(plan.NumExperts)}})
		}
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

// oldIDs returns a release's id table in ids of the source.
func oldIDs(t *testing.T, r release, name string, keep []int) []byte {
	t.Helper()
	i := slices.IndexFunc(r.views, func(v gguf.View) bool { return v.Name == name })
	table := viewBytes(t, r.views[i])
	for id := range slices.Chunk(table, 4) {
		binary.LittleEndian.PutUint32(id, uint32(keep[binary.LittleEndian.Uint32(id)]))
	}
	return table
}

func finite(logits [][]float32) bool {
	return !slices.ContainsFunc(logits, func(row []float32) bool {
		return slices.ContainsFunc(row, func(x float32) bool { return x-x != 0 })
	})
}

// greatest returns the greatest difference between two sets of logits.
func greatest(got, want [][]float32) float32 {
	var far float32
	for i := range want {
		for k := range want[i] {
			far = max(far, got[i][k]-want[i][k], want[i][k]-got[i][k])
		}
	}
	return far
}
