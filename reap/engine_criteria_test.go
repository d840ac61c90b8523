package reap_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/scorefile"
)

// TestCriteriaByDivergence prunes small models whose experts differ in weight by every
// criterion and prints how far the pruned model's logits are from the full model's: the mean
// over the positions of a text of KL(full || pruned), in nats. Measured criteria are measured
// on another text of the same kind. What it holds the criteria to is that evidence beats
// chance.
//
// Weights are random, so the figures say nothing of a trained model, which cmd/criteria looks
// at. They show that scores mean what their names say.
func TestCriteriaByDivergence(t *testing.T) {
	softmax, err := gguftest.Architecture("qwen3moe", gguftest.ArchitectureOptions{Experts: 64})
	if err != nil {
		t.Fatal(err)
	}
	for i := range softmax.Tensors {
		if tensor := &softmax.Tensors[i]; strings.Contains(tensor.Name, "_exps.weight") || strings.Contains(tensor.Name, "ffn_gate_inp.") {
			tensor.Fill.Uneven = true
		}
	}
	for _, m := range []struct {
		name       string
		spec       gguftest.Spec
		vocabulary int
		keep       int
	}{
		{"kimi-k3, sigmoid, 896 experts, 16 used", gguftest.K3(gguftest.K3Options{}), 384, 224},
		{"qwen3moe, softmax, 64 experts, 4 used", softmax, 100, 32},
	} {
		t.Run(m.name, func(t *testing.T) {
			compareCriteria(t, m.spec, m.vocabulary, m.keep)
		})
	}
}

func compareCriteria(t *testing.T, spec gguftest.Spec, vocabulary, keep int) {
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	model, err := gguf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	experts, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	calibration, judged := sampleText(1, 1024, vocabulary), sampleText(2, 256, vocabulary)
	measured := measure(t, paths[0], experts, calibration)
	full := llamatest.Logits(t, paths[0], judged)
	divergence := map[string]float64{}
	for _, criterion := range reap.Criteria {
		scores := scoresFor(t, model, experts, measured, criterion, 0)
		plan, err := reap.Choose(experts, scores, keep, reap.ChooseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pruned := llamatest.Logits(t, prune(t, spec, plan).write(t, 1), judged)
		divergence[criterion.Name] = meanDivergence(full, pruned)
		t.Logf("keep %3d of %d  %-17s  %-8s  mean KL %.4f", keep, experts.Count, criterion.Name, criterion.Evidence, divergence[criterion.Name])
	}
	chance := divergence[reap.SeededRandom]
	for _, name := range []string{reap.ReapSum, reap.GateSum, reap.Count, reap.ReapMean, reap.ActivationEnergy, reap.RouterMass, reap.RouterNorm} {
		if d := divergence[name]; !(d < chance) {
			t.Errorf("keep %d: %s diverges by %.4f, chance by %.4f", keep, name, d, chance)
		}
	}
}

// sampleText draws token ids of which few are frequent and many are rare.
func sampleText(seed uint64, n, vocabulary int) []int {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 8, uint64(vocabulary-1))
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = int(zipf.Uint64())
	}
	return tokens
}

func scoresFor(t *testing.T, model *gguf.Model, e *reap.Experts, measured *scorefile.Measurements, criterion reap.CriterionInfo, seed uint64) *reap.Scores {
	t.Helper()
	var scores *reap.Scores
	var err error
	switch {
	case criterion.Evidence == reap.Measured:
		scores, err = measured.Scores(criterion.Name)
	case criterion.Name == reap.RouterMass:
		scores, err = reap.RouterMassScores(context.Background(), model, e, nil)
	case criterion.Name == reap.RouterNorm:
		scores, err = reap.RouterNormScores(context.Background(), model, e, nil)
	default:
		scores = reap.RandomScores(e, seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// measure runs a model over a text in llama.cpp and sums, for each expert of each layer, what
// the criteria need of the computation.
func measure(t *testing.T, path string, e *reap.Experts, tokens []int) *scorefile.Measurements {
	t.Helper()
	layers := map[int]*layerSums{}
	for _, block := range e.Blocks() {
		layers[block] = &layerSums{}
	}
	model, err := llamatest.Engine(t).Open(path, llama.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	_, err = model.Trace(tokens, func(n llama.Node) bool {
		return layers[blockOf(n.Name())].record(n) != nil
	}, func(n llama.Node) {
		if err := layers[blockOf(n.Name())].record(n)(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &scorefile.Measurements{Format: "trace", Tokens: len(tokens), Layers: map[int]*scorefile.Layer{}}
	for block, sums := range layers {
		m.Layers[block] = sums.layer(t, e, len(tokens))
	}
	return m
}

// blockOf returns N of a result's name "X-N", -1 when it has none.
func blockOf(name string) int {
	block, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return -1
	}
	return block
}

// layerSums holds what llama.cpp computed in one layer's routed experts.
type layerSums struct {
	ranking []int32   // experts from best to worst, by token
	weights []float32 // of the used experts, by token and slot
	hidden  []float32 // what enters the down projection, by token, slot and element
	outputs []float32 // what leaves it
}

// record returns the function that takes what a result holds, nil for one that is not
// wanted. Of results that build on each other the last one stays.
func (l *layerSums) record(n llama.Node) func() error {
	if l == nil {
		return nil
	}
	name, _, _ := strings.Cut(n.Name(), "-")
	switch name {
	case "ffn_moe_argsort":
		return func() (err error) { l.ranking, err = n.Int32s(); return err }
	case "ffn_moe_weights", "ffn_moe_weights_norm", "ffn_moe_weights_scaled":
		return func() (err error) { l.weights, err = n.Float32s(); return err }
	case "ffn_moe_situ", "ffn_moe_swiglu":
		return func() (err error) { l.hidden, err = n.Float32s(); return err }
	case "ffn_moe_down", "ffn_moe_down_scaled":
		return func() (err error) { l.outputs, err = n.Float32s(); return err }
	}
	return nil
}

func (l *layerSums) layer(t *testing.T, e *reap.Experts, tokens int) *scorefile.Layer {
	t.Helper()
	slots := tokens * e.Used
	if len(l.ranking) != tokens*e.Count || len(l.weights) != slots || len(l.hidden) == 0 || len(l.outputs) == 0 {
		t.Fatalf("the trace lacks something: %d, %d, %d and %d numbers for %d slots", len(l.ranking), len(l.weights), len(l.hidden), len(l.outputs), slots)
	}
	layer := &scorefile.Layer{
		Count: make([]float64, e.Count), GateSum: make([]float64, e.Count),
		ReapSum: make([]float64, e.Count), Energy: make([]float64, e.Count),
	}
	for slot := range slots {
		expert := l.ranking[slot/e.Used*e.Count+slot%e.Used]
		gate := float64(l.weights[slot])
		layer.Count[expert]++
		layer.GateSum[expert] += gate
		layer.ReapSum[expert] += gate * math.Sqrt(squares(l.outputs, slot, slots))
		layer.Energy[expert] += squares(l.hidden, slot, slots)
	}
	return layer
}

// squares returns the sum of squares of one row of so many.
func squares(list []float32, row, rows int) float64 {
	width := len(list) / rows
	var sum float64
	for _, x := range list[row*width : (row+1)*width] {
		sum += float64(x) * float64(x)
	}
	return sum
}

// meanDivergence is the mean over positions of KL(p || q) of the distributions that logits
// stand for.
func meanDivergence(p, q [][]float32) float64 {
	var sum float64
	for i := range p {
		normP, normQ := logSum(p[i]), logSum(q[i])
		for j := range p[i] {
			logP, logQ := float64(p[i][j])-normP, float64(q[i][j])-normQ
			sum += math.Exp(logP) * (logP - logQ)
		}
	}
	return sum / float64(len(p))
}

func logSum(logits []float32) float64 {
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x)) // logits of these models are far from overflow
	}
	return math.Log(sum)
}

func TestMeanDivergence(t *testing.T) {
	log := func(x float64) float32 { return float32(math.Log(x)) }
	p := [][]float32{{log(0.5), log(0.5)}, {log(0.25), log(0.75)}}
	q := [][]float32{{log(0.5) + 3, log(0.5) + 3}, {log(0.5), log(0.5)}}
	want := (0.25*math.Log(0.5) + 0.75*math.Log(1.5)) / 2
	if got := meanDivergence(p, q); math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := meanDivergence(p, p); got != 0 {
		t.Errorf("a distribution diverges from itself by %v", got)
	}
}
