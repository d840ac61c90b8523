package planfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/reap"
)

// model returns a model with 8 experts in each of the given number of layers, from block 1.
func model(layers int) *reap.Experts {
	e := &reap.Experts{Architecture: "test", Count: 8, Used: 2, Groups: 1, GroupsUsed: 1}
	for i := range layers {
		e.Layers = append(e.Layers, &reap.Layer{Block: i + 1})
	}
	return e
}

func samplePlan() *reap.Plan {
	return &reap.Plan{
		Source:     reap.Source{StructureDigest: "blake3:00", Architecture: "kimi-k3", Name: `a "name" <&>`},
		NumExperts: 8, KeepCount: 3,
		Criterion: reap.Criterion{
			Name: reap.SeededRandom, Version: 1, Evidence: reap.Baseline,
			Parameters: map[string]string{"seed": "7", "a": "b"},
			Inputs:     []reap.Input{{File: "scores.npz", SHA256: strings.Repeat("0f", 32)}},
		},
		Layers: map[int][]int{10: {0, 1, 2}, 2: {5, 1, 6}},
	}
}

// Layers stand in numeric order and keep lists keep theirs.
const samplePlanText = `{
  "schema": "ggufreap/plan/v1",
  "source": {
    "structure_digest": "blake3:00",
    "weights_digest": null,
    "architecture": "kimi-k3",
    "name": "a \"name\" <&>"
  },
  "mode": "uniform",
  "num_experts": 8,
  "keep_count": 3,
  "criterion": {
    "name": "seeded-random",
    "version": 1,
    "evidence": "baseline",
    "parameters": {
      "a": "b",
      "seed": "7"
    },
    "inputs": [
      {
        "file": "scores.npz",
        "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
      }
    ]
  },
  "scores_digest": null,
  "layers": {
    "2": {
      "keep": [5, 1, 6]
    },
    "10": {
      "keep": [0, 1, 2]
    }
  }
}
`

func TestPlanEncode(t *testing.T) {
	got, err := Encode(samplePlan())
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != samplePlanText {
		t.Errorf("got\n%s", got)
	}
	p := samplePlan()
	p.Source.Name = "\xff"
	if _, err := Encode(p); err == nil {
		t.Error("a name that is not UTF-8 was written")
	}
}

func TestPlanRoundTrip(t *testing.T) {
	plans := map[string]*reap.Plan{"plain": samplePlan(), "full": samplePlan()}
	full := plans["full"]
	full.Source.WeightsDigest, full.ScoresDigest = "blake3:01", "blake3:02"
	full.Rules = reap.Rules{DraftLayers: reap.DraftScored, DroppedIDs: reap.NearestKept}
	full.Criterion = reap.NewCriterion(reap.ReapMean)
	full.Coverage = &reap.Coverage{Tokens: 100, Texts: []reap.CoveredText{{Label: "code", Tokens: 60}, {Label: "prose"}}, Kept: 0.934211, Worst: 1, WorstLayer: 2, NeverRouted: 3}
	plans["not counted"] = samplePlan()
	plans["not counted"].Criterion = full.Criterion
	plans["not counted"].Coverage = &reap.Coverage{Kept: 0.5, Worst: 0.25, WorstLayer: 10, NeverRouted: -1, NeverRoutedKept: -1}
	for name, p := range plans {
		data, err := Encode(p)
		if err != nil {
			t.Fatal(name, err)
		}
		back, err := Decode(data)
		if err != nil {
			t.Fatal(name, err)
		}
		if !reflect.DeepEqual(back, p) {
			t.Errorf("%s: got %+v, want %+v", name, back, p)
		}
	}
}

// Each case replaces one piece of a good document.
func TestPlanFaults(t *testing.T) {
	cases := map[string]struct {
		old, new string
		want     []string
	}{
		"other version":      {"plan/v1", "plan/v2", []string{`schema: "ggufreap/plan/v2", want`}},
		"unknown field":      {`"mode"`, `"extra": 1, "mode"`, []string{"extra: unknown field"}},
		"unknown deep field": {`"weights_digest"`, `"Weights_digest": null, "weights_digest"`, []string{"source.Weights_digest: unknown field"}},
		"missing field":      {`"keep_count": 3,`, ``, []string{"keep_count: missing"}},
		"other mode":         {`"uniform"`, `"graded"`, []string{`mode: "graded", want "uniform"`}},
		"wrong types": {`"num_experts": 8`, `"num_experts": "8"`, []string{
			`num_experts: "8", want a whole number`}},
		"odd entries": {`[5, 1, 6]`, `[0, 1.5, true, "3", -0]`, []string{
			`layer "2": entry 1 is 1.5`, `layer "2": entry 2 is true`, `layer "2": entry 3 is "3"`, `layer "2": entry 4 is -0`}},
		"negative and too large": {`[5, 1, 6]`, `[-1, 8, 6]`, []string{"layer 2: entry 0 is expert -1, want 0 to 7", "layer 2: entry 1 is expert 8"}},
		"twice":                  {`[5, 1, 6]`, `[5, 1, 5]`, []string{"layer 2: expert 5 stands twice, as entry 0 and as entry 2"}},
		"several layers":         {`[5, 1, 6]`, `[5, 1]`, []string{"layer 2: keeps 2 experts, want 3"}},
		"leading zero":           {`"10"`, `"010"`, []string{`layer "010": not a layer number`}},
		"same layer twice":       {`"10"`, `"2"`, []string{`key "2" stands twice`}},
		"same key twice":         {`"mode"`, `"mode": "uniform", "mode"`, []string{`key "mode" stands twice`}},
		"no keep":                {`"keep": [5, 1, 6]`, ``, []string{`layer "2": missing`}},
		"coverage of a baseline": {`"mode"`, `"coverage": {"tokens": 1, "texts": [], "score_kept": 2, "least_score_kept": 0.1, "least_score_layer": 2,
			"experts_without_tokens": null, "kept_without_tokens": null}, "mode"`, []string{"coverage.score_kept: 2, want a number from 0 to 1", "coverage: of a plan whose scores were not measured"}},
		"more text": {"}\n}\n", "}\n}\n{}", []string{"more text after the document"}},
		"cut":       {"}\n}\n", "}", []string{"unexpected EOF"}},
		"not UTF-8": {"a \\\"name", "\xff", []string{"invalid UTF-8"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if strings.Count(samplePlanText, c.old) != 1 {
				t.Fatalf("%q does not stand once in the document", c.old)
			}
			_, err := Decode([]byte(strings.Replace(samplePlanText, c.old, c.new, 1)))
			if err == nil {
				t.Fatal("accepted")
			}
			var faults reap.Faults
			if errors.As(err, &faults) {
				wantFaults(t, faults, c.want...)
			} else if len(c.want) != 1 || !strings.Contains(err.Error(), c.want[0]) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(samplePlanText))
	for _, c := range communityPlans {
		f.Add([]byte(c.text))
	}
	e := model(3)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(data, e)
		if err != nil {
			return
		}
		p.Check(e)
		if p.Faults() != nil {
			return // a foreign plan, not checked yet
		}
		text, err := Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Encode(back); string(again) != string(text) {
			t.Errorf("rewritten\n%s\nas\n%s", text, again)
		}
	})
}

// communityPlans all keep 5, 1, 6 of 8 experts in layers 1 to 3 (or the same set in
// ascending order, for forms that list what is dropped), or are refused.
var communityPlans = []struct {
	name, text string
	form       string
	keep       []int
	faults     []string
}{
	{name: "kimi-k3-mlx", form: "reap_plan", keep: []int{5, 1, 6},
		text: `{"mode":"uniform","top_k":2,"num_experts":8,"min_experts":4,"layers":{
			"1":{"keep":[5,1,6],"bits":{"all":"mxfp4"}},"2":{"keep":[5,1,6]},"3":{"keep":[5,1,6]}}}`},
	{name: "keep by block", form: "keep lists", keep: []int{5, 1, 6},
		text: `{"keep":{"1":[5,1,6],"2":[5,1,6],"3":[5,1,6]},"n_expert_in":8,"arch":"x"}`},
	{name: "keep by place", form: "keep lists", keep: []int{5, 1, 6},
		text: `{"keep":[[],[5,1,6],[5,1,6],[5,1,6]]}`},
	{name: "bare", form: "keep lists", keep: []int{5, 1, 6},
		text: `{"1":[5,1,6],"2":[5,1,6],"3":[5,1,6]}`},
	{name: "aikar", form: "aikar-moe-prune", keep: []int{1, 5, 6},
		text: `{"format":"aikar-moe-prune","version":1,"mode":"soft","model":{"architecture":"test","expert_count":8},
			"pruning":{"layers":{"1":{"disabled_experts":[0,2,3,4,7]},"2":{"disabled_experts":[7,4,3,2,0]},"3":{"disabled_experts":[0,2,3,4,7]}}}}`},
	{name: "vLLM pairs", form: "pruned_experts", keep: []int{1, 5, 6},
		text: `{"version":1,"model":"m","pruned_experts":[[1,0],[1,2],[1,3],[1,4],[1,7],[2,0],[2,2],[2,3],[2,4],[2,7],[3,0],[3,2],[3,3],[3,4],[3,7]]}`},

	{name: "kept and dropped", form: "reap_plan", keep: []int{5, 1, 6},
		text: `{"keep_count":3,"layers":{"1":{"keep":[5,1,6],"drop":[0,2,3,4,7]},"2":{"keep":[5,1,6],"dropped":5},"3":{"keep":[5,1,6]}}}`},

	{name: "keep count of its own", text: `{"num_experts":8,"keep_count":4,"layers":{"1":{"keep":[5,1,6]},"2":{"keep":[5,1,6,0]},"3":[5]}}`,
		faults: []string{"keep_count: 4, but layer 1 keeps 3", "keep_count: 4, but layer 3 keeps 1"}},
	{name: "another keep count, as NX2 states it", text: `{"keep":{"1":[5,1,6]},"n_expert_in":8,"n_expert_out":2}`,
		faults: []string{"n_expert_out: 2, but layer 1 keeps 3"}},
	{name: "keep and drop contradict each other", text: `{"layers":{"1":{"keep":[0,1,2],"drop":[0,1]},"2":{"keep":[0,1,2],"drop":[3,4,5,6]}}}`,
		faults: []string{`layer "1": expert 0 is both kept and dropped`, `layer "1": expert 1 is both`, `layer "1": keeps 3 and drops 2 of 8`, `layer "2": keeps 3 and drops 4 of 8`}},
	{name: "lists in two places", text: `{"layers":{"1":{"keep":[5,1,6]}},"keep":{"1":[5,1,7]}}`,
		faults: []string{`plan: ["layers" "keep"] all list experts`}},
	{name: "graded", text: `{"mode":"graded","layers":{"1":{"keep":[5,1,6]}}}`,
		faults: []string{`mode: "graded": this mode gives layers or experts different widths`}},
	{name: "width blocks", text: `{"num_experts":8,"n_ff_exp":1024,"block":256,"layers":{"1":{"keep":[1,4],"wblocks":{"1":[0,2],"4":[1,3]}}}}`,
		faults: []string{`layer "1": "wblocks" cuts the width of experts`}},
	{name: "other count", text: `{"num_experts":896,"layers":{"1":{"keep":[5,1,6]}}}`,
		faults: []string{"num_experts: 896, the model has 8"}},
	{name: "own list for draft", text: `{"keep":{"1":[5,1,6]},"mtp_keep":[0,1]}`,
		faults: []string{"mtp_keep: draft layers with lists of their own count"}},
	{name: "aikar of another model", text: `{"format":"aikar-moe-prune","version":2,"model":{"architecture":"x","expert_count":9},"pruning":{"layers":{}}}`,
		faults: []string{"version: 2, want 1", "expert_count: 9, the model has 8", `model.architecture: "x", the model is "test"`}},
	{name: "cache of scores", text: `{"format":"llama-moe-prune-importance-cache"}`,
		faults: []string{`format: "llama-moe-prune-importance-cache" is not a plan`}},
	{name: "pairs out of range", text: `{"pruned_experts":[[1,8],[1,2],[1,2],[1]]}`,
		faults: []string{"layer 1: drops expert 8", "layer 1: drops expert 2", "pruned_experts[3]: want a layer and an expert"}},
	{name: "unknown form", text: `{"experts":[1,2]}`, faults: []string{"none of the known forms"}},
}

func TestCommunityPlans(t *testing.T) {
	e := model(3)
	for _, c := range communityPlans {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read([]byte(c.text), e)
			if c.faults != nil {
				var faults reap.Faults
				if !errors.As(err, &faults) {
					t.Fatalf("error %v, want faults", err)
				}
				wantFaults(t, faults, c.faults...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(e).Err(); err != nil {
				t.Error(err)
			}
			want := reap.GivenPlan(e, c.form, map[int][]int{1: c.keep, 2: c.keep, 3: c.keep})
			if !reflect.DeepEqual(p, want) {
				t.Errorf("got %+v, want %+v", p, want)
			}
		})
	}
}

// A document of millions of entries is refused without keeping a message for each.
func TestPlansOfManyFaults(t *testing.T) {
	e := model(1)
	zeros := strings.Repeat("0,", 400_000) + "0"
	for name, c := range map[string]struct{ text, want string }{
		"repeated":     {`{"1":[` + zeros + `]}`, "and 399969 more"}, // 400,000 repeats, the count
		"not ids":      {`{"1":[` + strings.ReplaceAll(zeros, "0", "-") + `]}`, `JSON, byte 7: at "/1/0": invalid character ','`},
		"texts":        {`{"1":[` + strings.ReplaceAll(zeros, "0", `""`) + `]}`, "and 399969 more"},
		"pairs":        {`{"pruned_experts":[` + zeros + `]}`, "and 799970 more"},
		"too many":     {`{"1":[` + strings.Repeat("0,", 3_000_000) + `0]}`, "more than 524288 values"},
		"a long entry": {`{"1":["` + strings.Repeat("x", 1<<20) + `"]}`, "entry 0 is a string of 1048576 bytes"},
		"a long key":   {`{"layers":{"` + strings.Repeat("é", 1<<20) + `":[0]}}`, `é...: not a layer number`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read([]byte(c.text), e)
			if err == nil {
				err = p.Check(e).Err()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %.300v, want %q", err, c.want)
			}
			if n := len(err.Error()); n > 200_000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

func TestOwnPlanOfManyExperts(t *testing.T) {
	text := strings.Replace(samplePlanText, `"num_experts": 8`, `"num_experts": 2000000000`, 1)
	if _, err := Decode([]byte(text)); err == nil || err.Error() != "plan: 2000000000 experts, at most 4096 are supported" {
		t.Errorf("error %v", err)
	}
}

// TestManyParts refuses a plan with more of something than there can be.
func TestManyParts(t *testing.T) {
	e := model(1)
	layers := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ",")
	}
	input := `{"file":"f","sha256":"s"}`
	inputs := strings.Replace(samplePlanText, `"inputs": [`, `"inputs": [`+strings.Repeat(input+",", 4096), 1)
	for text, want := range map[string]string{
		inputs: "criterion.inputs: more than 4096",
		`{"layers":{` + layers(4097, `"%d":[0]`) + `}}`: `layer "4096": more than 4096 layers`,
		`{` + layers(4097, `"%d":[0]`) + `}`:            `layer "4096": more than 4096 layers`,
		`{"keep":[` + layers(4097, "[%d]") + `]}`:       "keep: more than 4096 layers",
	} {
		if _, err := Read([]byte(text), e); err == nil || err.Error() != want {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
}

func TestOrdinalMaskIsRefused(t *testing.T) {
	e := model(1)
	_, err := Read([]byte("# dropped\n\n0 3\n0 5\n"), e)
	if err == nil || !strings.Contains(err.Error(), "counts only the layers with experts") {
		t.Errorf("error %v", err)
	}
}

// Our own documents come through the same door.
func TestReadPlanTakesOwnDocuments(t *testing.T) {
	p, err := Read([]byte(samplePlanText), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, samplePlan()) {
		t.Errorf("got %+v", p)
	}
}

// wantFaults wants one fault for each text, in any order, and no others.
func wantFaults(t *testing.T, fs reap.Faults, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.ContainsFunc(fs, func(f reap.Fault) bool { return strings.Contains(f.String(), text) }) {
			t.Errorf("no fault says %q", text)
		}
	}
	if len(fs) != len(texts) {
		t.Errorf("%d faults, want %d:\n%v", len(fs), len(texts), fs.Error())
	}
}

// TestOtherTopK tells a plan that was made for another number of experts a token, and takes
// its lists.
func TestOtherTopK(t *testing.T) {
	e := model(1)
	for value, told := range map[string]bool{fmt.Sprint(e.Used): false, fmt.Sprint(e.Used + 1): true, `"2"`: true} {
		p, err := Read([]byte(`{"top_k":`+value+`,"layers":{"1":{"keep":[5,1,6]}}}`), e)
		if err != nil {
			t.Fatal(err)
		}
		if (len(p.Notes) > 0) != told {
			t.Errorf("top_k %s: notes %q", value, p.Notes)
		}
	}
}

// TestStatedByHub reads back what a hub stated, which is no part of what names a plan; a
// document with it in another form is another plan.
func TestStatedByHub(t *testing.T) {
	plan := samplePlan()
	plan.Source.StatedByHub = &reap.Stated{Repo: "org/m", Commit: strings.Repeat("0", 40), Files: []reap.StatedFile{
		{Path: "in/a.gguf", Size: 1 << 40, SHA256: strings.Repeat("ab", 32)},
		{Path: "in/b.gguf", Size: 1, ETag: "c0ffee"},
	}}
	document, err := Encode(plan)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(document)
	if err != nil || !reflect.DeepEqual(back, plan) {
		t.Fatalf("read back %+v, %v", back, err)
	}
	for text, want := range map[string]string{
		string(document):       samplePlanText,
		string(document) + " ": string(document) + " ",
	} {
		if got, err := Identity([]byte(text), plan); err != nil || string(got) != want {
			t.Errorf("identity is %s, %v", got, err)
		}
	}
	if got, err := Identity([]byte("{}"), samplePlan()); err != nil || string(got) != "{}" {
		t.Errorf("identity of a plan without is %s, %v", got, err)
	}
	broken := strings.Replace(string(document), `"path": "in/a.gguf"`, `"url": "in/a.gguf"`, 1)
	if _, err := Decode([]byte(broken)); err == nil || !strings.Contains(err.Error(), "source.stated_by_hub.files[0].url: unknown field") {
		t.Errorf("error is %v", err)
	}
}
