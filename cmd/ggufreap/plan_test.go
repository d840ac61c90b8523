package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
	"ggufreap/reap/scorefile"
)

// smallExperts are the experts of smallK3.
var smallExperts = &reap.Experts{Architecture: "kimi-k3", Count: 32, Used: 4, Groups: 1, GroupsUsed: 1,
	Layers: []*reap.Layer{{Block: 1}, {Block: 2}}}

// saliency makes measurements of smallK3 that can be told apart by eye: expert e of 32 gets
// e tokens and, by kind of text, sums that run up or down.
func saliency() *scorefile.Measurements {
	m := &scorefile.Measurements{
		Source: reap.Source{Architecture: "kimi-k3", Name: "elsewhere", StructureDigest: "blake3:0"},
		Tokens: 248, Layers: map[int]*scorefile.Layer{},
		Sources: []scorefile.Source{{Label: "code", Tokens: 124}, {Label: "prose", Tokens: 124}},
	}
	for i := range m.Sources {
		m.Sources[i].Layers = map[int]*scorefile.Layer{}
	}
	for _, block := range []int{1, 2} {
		all, up, down := &scorefile.Layer{}, &scorefile.Layer{}, &scorefile.Layer{}
		for e := range 32 {
			n := float64(e)
			all.Count = append(all.Count, n)
			all.ReapSum = append(all.ReapSum, n*(40-n))
			up.Count, down.Count = append(up.Count, n), append(down.Count, n)
			up.ReapSum = append(up.ReapSum, n*n)
			down.ReapSum = append(down.ReapSum, n*(31-n))
		}
		m.Layers[block] = all
		m.Sources[0].Layers[block], m.Sources[1].Layers[block] = up, down
	}
	return m
}

// planFolder makes a folder with smallK3 and files to choose by, and goes there.
func planFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if _, err := smallK3().Write(".", gguf.Split{Shards: 3}); err != nil {
		t.Fatal(err)
	}
	document, err := saliency().Encode(smallExperts)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("layer,expert,count\n")
	for _, block := range []int{1, 2} {
		for e := 2; e < 32; e++ {
			fmt.Fprintf(&table, "%d,%d,%d\n", block, e, e%8)
		}
	}
	for name, data := range map[string]string{
		"saliency.json": string(document),
		"hotness.csv":   table.String(),
		"super.json":    `{"1":[31,0]}`,
		"layer1.csv":    "layer,expert,count\n1,3,7\n1,4,1\n",
		"legacy.dat":    "\x01\x00\x00\x00\x1a\x00\x00\x00blk.1.ffn_down_exps.weight",
		"list.json":     `{"layers":{"1":{"keep":[31,30,29,28,27,26,25,24]},"2":{"keep":[0,1,2,3,4,5,6,7]}}}`,
	} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const smallModel = "small-00001-of-00003.gguf"

// What --fit picks is the most that fits, to the byte, as prune would write it.
func TestFitIsExact(t *testing.T) {
	planFolder(t)
	fileBytes := func(keep int) (total, largest int64) {
		t.Helper()
		var r struct {
			FileBytes int64 `json:"file_bytes"`
			Shards    []struct{ Size int64 }
		}
		out := succeed(t, "prune", "--keep", strconv.Itoa(keep), "--shards", "4", "--dry-run", "--json", smallModel)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Shards {
			largest = max(largest, s.Size)
		}
		return r.FileBytes, largest
	}
	picked := func(flag, value string) int {
		t.Helper()
		var plan struct {
			KeepCount int `json:"keep_count"`
		}
		out := succeed(t, "plan", flag, value, "--shards", "4", "--json", smallModel)
		if err := json.Unmarshal([]byte(out), &plan); err != nil {
			t.Fatal(err)
		}
		return plan.KeepCount
	}
	for _, keep := range []int{4, 13, 31} {
		total, largest := fileBytes(keep)
		if got := picked("--fit", fmt.Sprint(total)); got != keep {
			t.Errorf("room for exactly %d experts picks %d", keep, got)
		}
		if keep > 4 {
			if got := picked("--fit", fmt.Sprint(total-1)); got != keep-1 {
				t.Errorf("room for a byte less than %d experts picks %d", keep, got)
			}
		}
		if got := picked("--fit-per-node", fmt.Sprintf("4x%d", largest)); got != keep {
			t.Errorf("room for exactly the shards of %d experts picks %d", keep, got)
		}
	}
	if got := picked("--fit", "1TB"); got != 32 {
		t.Errorf("room for everything picks %d", got)
	}
}

func TestBudgetPlacesInOrder(t *testing.T) {
	shards := func(sizes ...int64) (list []*gguf.ShardLayout) {
		for _, n := range sizes {
			list = append(list, &gguf.ShardLayout{Size: n})
		}
		return list
	}
	for _, c := range []struct {
		budget budget
		sizes  []int64
		want   []int64
		ok     bool
	}{
		{budget{2, 10}, []int64{6, 4, 9}, []int64{10, 9}, true},
		{budget{2, 10}, []int64{6, 5, 4}, []int64{6, 9}, true},
		{budget{2, 10}, []int64{6, 5, 6}, []int64{6, 5, 6}, false}, // never out of order
		{budget{3, 10}, []int64{11}, nil, false},
		{budget{3, 10}, []int64{3}, []int64{3}, true},
	} {
		got, ok := c.budget.place(shards(c.sizes...))
		if !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%v on %+v: %v, %v; want %v, %v", c.sizes, c.budget, got, ok, c.want, c.ok)
		}
	}
}

// A plan bound to a pin names the weights; the pin of another model is refused.
func TestPlanNamesThePinnedWeights(t *testing.T) {
	planFolder(t)
	pinOf := func(path string) *manifest.Pin {
		t.Helper()
		pin, err := manifest.BuildPin(context.Background(), openModel(t, path), manifest.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Base(path) + ".pin.json")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := manifest.EncodePin(f, f.Name(), pin); err != nil {
			t.Fatal(err)
		}
		return pin
	}
	pin := pinOf(smallModel)
	var plan struct {
		Source struct {
			WeightsDigest string `json:"weights_digest"`
		}
	}
	out := succeed(t, "plan", "--keep", "8", "--pin", smallModel+".pin.json", "--json", smallModel)
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	if got, want := plan.Source.WeightsDigest, pin.WeightsDigest.String(); got != want {
		t.Errorf("weights digest %q, want %q", got, want)
	}
	other := gguftest.K3(gguftest.K3Options{Name: "other", Experts: 16, Used: 4, Layers: 2})
	if _, err := other.Write(".", gguf.Split{}); err != nil {
		t.Fatal(err)
	}
	pinOf("other.gguf")
	r := ggufreap(t, "plan", "--keep", "8", "--pin", "other.gguf.pin.json", smallModel)
	if r.code != exitFailed || !strings.Contains(r.stderr, "the pin of another model") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}

// A model with a draft layer that a score file does not cover: the user must say how it is
// ranked, and the plan states it.
func TestDraftLayersNeedARule(t *testing.T) {
	t.Chdir(t.TempDir())
	spec, err := gguftest.Architecture("glm4moe", gguftest.ArchitectureOptions{Draft: true})
	if err != nil {
		t.Fatal(err)
	}
	files, err := spec.Write(".", gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, err := reap.ReadExperts(openModel(t, files[0]))
	if err != nil {
		t.Fatal(err)
	}
	table := "layer,expert,count\n"
	for _, l := range experts.Layers {
		for e := range experts.Count {
			if !l.Draft {
				table += fmt.Sprintf("%d,%d,%d\n", l.Block, e, e)
			}
		}
	}
	if err := os.WriteFile("hotness.csv", []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"plan", "--keep", "8", "--from", "hotness.csv", files[0]}
	r := ggufreap(t, args...)
	if r.code != exitFailed || !strings.Contains(r.stderr, "does not score the draft layers") || !strings.Contains(r.stderr, "--draft-layers router-norm") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	out := succeed(t, slices.Insert(slices.Clone(args), 1, "--draft-layers", "router-mass")...)
	if !strings.Contains(out, "not measured: ranked by router-mass, a proxy") {
		t.Errorf("the screen does not say how draft layers were ranked:\n%s", out)
	}
	out = succeed(t, slices.Insert(slices.Clone(args), 1, "--draft-layers", "as-last-layer")...)
	if !strings.Contains(out, "they keep what the last layer before them keeps") {
		t.Errorf("the screen does not say how draft layers were ranked:\n%s", out)
	}
	out = succeed(t, slices.Insert(slices.Clone(args), 1, "--draft-layers", "router-mass", "--json")...)
	plan, err := planfile.Decode([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Rules.DraftLayers != reap.DraftMass {
		t.Errorf("rules %+v", plan.Rules)
	}
	for _, l := range experts.Layers {
		if top := plan.Layers[l.Block]; !l.Draft && top[0] != experts.Count-8 {
			t.Errorf("layer %d keeps %v, want the last eight", l.Block, top)
		}
	}
}

// A cut through many experts that rank alike is told, whoever makes the plan; one through a
// few is not.
func TestLargeTiesAreTold(t *testing.T) {
	planFolder(t)
	ties := "layer,expert,count\n"
	for _, block := range []int{1, 2} {
		for e := range 32 {
			n := 100 + e
			if e >= 10 && e < 10+9*block { // 9 experts of layer 1 and 18 of layer 2
				n = 50
			}
			ties += fmt.Sprintf("%d,%d,%d\n", block, e, n)
		}
	}
	if err := os.WriteFile("ties.csv", []byte(ties), 0o666); err != nil {
		t.Fatal(err)
	}
	const model = "small-00001-of-00003.gguf"
	// In layer 1, 23 of 28 are better and 5 of 9 alike are kept; in layer 2, 14 and 14 of 18.
	want := "ggufreap: warning: in 2 layers the cut falls among many experts that score alike: in layer 2 the lowest numbers, 14 of 18, are kept, which is no evidence\n"
	for _, args := range [][]string{
		{"plan", "--keep", "28", "--from", "ties.csv", model},
		{"plan", "--keep", "28", "--from", "ties.csv", "--json", model},
		{"prune", "--keep", "28", "--from", "ties.csv", "--dry-run", "-o", "out", model},
	} {
		if r := ggufreap(t, args...); r.code != exitOK || r.stderr != want {
			t.Errorf("%q: exit %d, stderr %q, want %q", args, r.code, r.stderr, want)
		}
	}
	if r := ggufreap(t, "plan", "--keep", "14", "--from", "ties.csv", model); r.stderr != "" {
		t.Errorf("no tie at the cut: stderr %q", r.stderr)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100.00 %", 0.99999: "> 99.99 %", 0.99994: "99.99 %", 0: "0.00 %", math.NaN(): "-"} {
		if got := percent(share); got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}

// TestPlanCarriesItsShards makes a plan by a preset, or for a number of shards, and writes
// what it says. Flags go before it.
func TestPlanCarriesItsShards(t *testing.T) {
	t.Chdir(t.TempDir())
	source, err := gguftest.K3(gguftest.K3Options{}).Write("source", gguf.Split{Shards: gguftest.K3Shards})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "plan", "--preset", "reap568", "-o", "plan.json", source[0])
	succeed(t, "plan", "--keep", "568", "--shards", "3", "-o", "three.json", source[0])
	succeed(t, "plan", "--keep", "568", "-o", "none.json", source[0])
	for _, tc := range []struct {
		flags []string
		want  int
	}{
		{[]string{"--plan", "plan.json"}, 14},
		{[]string{"--plan", "three.json"}, 3},
		{[]string{"--plan", "none.json"}, gguftest.K3Shards},
		{[]string{"--plan", "plan.json", "--shards", "5"}, 5},
	} {
		out := succeed(t, append([]string{"prune", "--dry-run", source[0]}, tc.flags...)...)
		if want := fmt.Sprintf("files           %d shards, ", tc.want); !strings.Contains(out, want) {
			t.Errorf("%q: want %s in\n%s", tc.flags, want, out)
		}
	}
	writeText(t, "bad.json", strings.Replace(readText(t, "three.json"), `"shards": 3`, `"shards": 65536`, 1))
	refuse(t, "shards: 65536, want 1 to 65535", "prune", "--dry-run", "--plan", "bad.json", source[0])
}
