package scorefile

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/reap"
)

// model has 3 blocks of which 1 and 2 have 4 experts, 2 used for a token, like the model
// of all files in testdata.
func model() *reap.Experts {
	return &reap.Experts{
		Architecture: "x", Count: 4, Used: 2, Groups: 1, GroupsUsed: 1,
		Layers: []*reap.Layer{{Block: 1}, {Block: 2}},
	}
}

func read(t testing.TB, name string) (*Measurements, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Read(bytes.NewReader(data), int64(len(data)), model())
}

// What every file of testdata says, as far as it says it. The numbers are small enough to
// be multiplied and divided in the head.
var (
	counts   = map[int][]float64{1: {40, 9, 51, 0}, 2: {10, 20, 30, 40}}
	gateSums = map[int][]float64{1: {10, 4.5, 6.375, 0}, 2: {5, 5, 15, 5}}
	reapSums = map[int][]float64{1: {80, 27, 51, 0}, 2: {5, 40, 15, 10}}
	means    = map[int][]float64{1: {2, 3, 1, 0}, 2: {0.5, 2, 0.5, 0.25}}
)

func TestRead(t *testing.T) {
	saliency := map[string]map[int][]float64{reap.ReapMean: means, reap.ReapSum: reapSums, reap.Count: counts}
	all := maps.Clone(saliency)
	all[reap.GateSum] = gateSums
	for _, c := range []struct {
		file, format string
		tokens       int
		sources      int
		counts       map[int][]float64
		scores       map[string]map[int][]float64
	}{
		{file: "whole.npz", format: "npz", tokens: 50, sources: 2, scores: saliency},
		{file: "deflated.npz", format: "npz", tokens: 50, sources: 2, scores: saliency},
		{file: "subset.npz", format: "npz", tokens: 50, scores: saliency},
		{file: "untagged.npz", format: "npz", tokens: 50, scores: saliency},
		{file: "types.npz", format: "npz", scores: saliency},
		{file: "saliency.json", format: "saliency JSON", tokens: 50, sources: 2, scores: all},
		{file: "hotness.csv", format: "hotness CSV", scores: map[string]map[int][]float64{reap.Count: counts}},
		{file: "expert_stats.json", format: "expert_stats.json", tokens: 50, scores: all},
		{file: "nemotron_stats.json", format: "expert_stats.json", tokens: 50,
			scores: map[string]map[int][]float64{reap.GateSum: gateSums, reap.Count: counts}},
		{file: "importance-cache.json", format: "llama-prune importance cache", scores: all},
		{file: "sums.reap.gguf", format: "saliency GGUF", scores: saliency},
		{file: "imatrix.gguf", format: "imatrix GGUF", counts: map[int][]float64{1: {9, 0, 3, 1}, 2: {18, 0, 6, 2}},
			scores: map[string]map[int][]float64{
				reap.Count:            {1: {9, 0, 3, 1}, 2: {18, 0, 6, 2}},
				reap.ActivationEnergy: {1: {3, 0, 4.5, 0.25}, 2: {16, 0, 2, 16.5}},
			}},
	} {
		t.Run(c.file, func(t *testing.T) {
			m, err := read(t, c.file)
			if err != nil {
				t.Fatal(err)
			}
			if m.Format != c.format || m.Tokens != c.tokens || len(m.Sources) != c.sources {
				t.Errorf("format %q, %d tokens, %d sources; want %q, %d, %d", m.Format, m.Tokens, len(m.Sources), c.format, c.tokens, c.sources)
			}
			if got, want := m.Criteria(), slices.Sorted(maps.Keys(c.scores)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				t.Errorf("criteria %q, want %q", got, want)
			}
			for criterion, want := range c.scores {
				s, err := m.Scores(criterion)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(s.Layers, want) {
					t.Errorf("%s: %v, want %v", criterion, s.Layers, want)
				}
				wantCounts := counts
				if c.counts != nil {
					wantCounts = c.counts
				}
				if !reflect.DeepEqual(s.Counts, wantCounts) {
					t.Errorf("%s: counts %v, want %v", criterion, s.Counts, wantCounts)
				}
				if err := s.Check(model(), false).Err(); err != nil {
					t.Error(err)
				}
			}
			if _, err := m.Scores(reap.RouterMass); err == nil || !strings.Contains(err.Error(), "cannot be ranked by router-mass") {
				t.Errorf("router-mass of a score file: error %v", err)
			}
		})
	}
}

// The three orders of one layer that the field mixes up.
func TestCriteriaRankDifferently(t *testing.T) {
	m, err := read(t, "whole.npz")
	if err != nil {
		t.Fatal(err)
	}
	for criterion, want := range map[string][]int{
		reap.ReapSum: {0, 2}, reap.ReapMean: {0, 1}, reap.Count: {0, 2},
	} {
		s, err := m.Scores(criterion)
		if err != nil {
			t.Fatal(err)
		}
		p, err := reap.Choose(model(), s, 2, reap.ChooseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Layers[1], want) {
			t.Errorf("%s keeps %v of layer 1, want %v", criterion, p.Layers[1], want)
		}
	}
}

func TestSources(t *testing.T) {
	for _, file := range []string{"whole.npz", "saliency.json"} {
		m, err := read(t, file)
		if err != nil {
			t.Fatal(err)
		}
		if m.Sources[0].Label != "code" || m.Sources[1].Label != "prose" || m.Sources[1].Tokens != 25 {
			t.Errorf("%s: sources %+v", file, m.Sources)
		}
		code, err := m.sourceScores(reap.ReapSum, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		if want := (map[int][]float64{1: {70, 27, 1, 0}, 2: {5, 30, 0, 5}}); !reflect.DeepEqual(code.Layers, want) {
			t.Errorf("%s: code %v, want %v", file, code.Layers, want)
		}
		rest, err := m.sourceScores(reap.ReapSum, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		if want := (map[int][]float64{1: {10, 0, 50, 0}, 2: {0, 10, 15, 5}}); !reflect.DeepEqual(rest.Layers, want) {
			t.Errorf("%s: rest %v, want %v", file, rest.Layers, want)
		}
		if want := (map[int][]float64{1: {10, 0, 40, 0}, 2: {0, 10, 30, 10}}); !reflect.DeepEqual(rest.Counts, want) {
			t.Errorf("%s: counts of the rest %v, want %v", file, rest.Counts, want)
		}
	}
}

// Adding sources up must not change them: scores share memory with what was read.
func TestSourceScoresLeaveMeasurementsAlone(t *testing.T) {
	m, err := read(t, "whole.npz")
	if err != nil {
		t.Fatal(err)
	}
	m.Sources = append(m.Sources, m.Sources[0])
	for range 2 {
		s, err := m.sourceScores(reap.ReapSum, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Layers[1], []float64{140, 54, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestSaliencyRoundTrip(t *testing.T) {
	want, err := os.ReadFile("testdata/saliency.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(bytes.NewReader(want), int64(len(want)), model())
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Encode(model())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("written again it is\n%s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for file, want := range map[string][]string{
		"legacy.dat":      {"a legacy imatrix (.dat)", "neither count nor activation-energy can be had"},
		"observations.pt": {"a PyTorch pickle", "numpy.savez"},
		"old.pt":          {"a PyTorch pickle"},
		"fortran.npz":     {"saliency: npy array in Fortran order"},
		"nan.npz":         {"layer 1: saliency sums: expert 1 has NaN", "layer 2: saliency sums: expert 3 has +Inf"},
		"make.py":         {"not a score file"},
	} {
		_, err := read(t, file)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v, want %q", file, err, part)
			}
		}
	}
	m, err := read(t, "smoke.npz")
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Scores(reap.ReapSum)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(model(), false).Err(); err == nil || !strings.Contains(err.Error(), "layer 2: has experts but no scores") {
		t.Errorf("a run over one layer: error %v", err)
	}
}

// Text files with one thing wrong; all faults of a file are listed.
func TestReadTextRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":              {"", []string{"not a score file"}},
		"not JSON":           {"{", []string{"JSON, byte 1: unexpected EOF"}},
		"other JSON":         {"{}", []string{"none of the known score files"}},
		"NaN":                {`{"1":{"activation_counts":[NaN,1,1,1]}}`, []string{"invalid character 'N'"}},
		"a plan":             {`{"layers":{"1":{"keep":[1,2]}}}`, []string{"a plan, not scores"}},
		"our plan":           {`{"schema":"ggufreap/plan/v1"}`, []string{"a plan, not scores"}},
		"a drop list":        {`{"format":"aikar-moe-prune","version":1}`, []string{"a plan, not scores"}},
		"another schema":     {`{"schema":"ggufreap/saliency/v2"}`, []string{`schema: "ggufreap/saliency/v2", want "ggufreap/saliency/v1"`}},
		"unknown field":      {edit(t, "saliency.json", `"tokens": 50`, `"tokens": 50, "extra": 1`), []string{"extra: unknown field"}},
		"other expert count": {edit(t, "saliency.json", `"num_experts": 4`, `"num_experts": 5`), []string{"num_experts: 5, the model has 4"}},
		"other model":        {edit(t, "saliency.json", `"architecture": "x"`, `"architecture": "y"`), []string{`source.architecture: "y", the model is "x"`}},
		"short list": {edit(t, "saliency.json", `"count": [10, 20, 30, 40]`, `"count": [10, 20, 30]`),
			[]string{"layer 2: 3 counts for 4 experts"}},
		"sum without tokens": {edit(t, "saliency.json", `"reap_sum": [80, 27, 51, 0]`, `"reap_sum": [80, 27, 51, 2]`),
			[]string{"layer 1: saliency sums: expert 3 has 2, but no token was routed to it"}},
		"negative": {edit(t, "saliency.json", `"count": [40, 9, 51, 0]`, `"count": [-1, 9, 51, 0]`),
			[]string{"layer 1: counts: expert 0 has -1"}},
		"layer twice": {`{"1":{"activation_counts":[1,2,3,4]},"1":{}}`, []string{`key "1" stands twice`}},
		"layer 01":    {`{"01":{"activation_counts":[1,2,3,4]}}`, []string{"layer 01: not a layer number"}},
		"too few, text for number": {`{"1":{"activation_counts":[1,"2",3,4],"reap":[1,1,1,1]},"2":{}}`,
			[]string{`layer 1.activation_counts: entry 1 is "2"`, "layer 2.activation_counts: missing, want a list"}},
		"cache version": {edit(t, "importance-cache.json", `"version": 1`, `"version": 2`), []string{"version: 2, want 1"}},
		"cache of another model": {edit(t, "importance-cache.json", `"experts_used": 2`, `"experts_used": 3`),
			[]string{"model.experts_used: 3, the model has 2"}},
		"cache without a sum": {edit(t, "importance-cache.json", `"weighted_output_sum": 27.0`, `"x": 0`),
			[]string{"stats.1.1.weighted_output_sum: nothing, want a number"}},
		"hotness rows": {"layer,expert,count\n1,0,3\n1,0,4\n1,4,1\n0,0,1\n2,1\n2,-1,7\n2,1,0.5\n", []string{
			"line 3: layer 1, expert 0 stands twice", "line 4: expert 4, the model has 4",
			"line 5: layer 0: the model has no routed experts there", "line 6: 2 fields, want 3",
			`line 7: "2,-1,7", want three whole numbers`, `line 8: "2,1,0.5", want three`}},
	} {
		_, err := Read(strings.NewReader(c.text), int64(len(c.text)), model())
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v, want %q", name, err, part)
			}
		}
	}
}

// edit returns a file of testdata with one text replaced.
func edit(t *testing.T, file, old, new string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s: no %q", file, old)
	}
	return strings.Replace(string(data), old, new, 1)
}

// A hotness file with Windows line ends and a byte order mark is read all the same, and
// missing rows count as 0.
func TestHotnessVariants(t *testing.T) {
	text := "\xef\xbb\xbflayer,expert,count\r\n1,3,7\r\n"
	m, err := Read(strings.NewReader(text), int64(len(text)), model())
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 0, 0, 7}; !slices.Equal(m.Layers[1].Count, want) {
		t.Errorf("counts %v, want %v", m.Layers[1].Count, want)
	}
}
