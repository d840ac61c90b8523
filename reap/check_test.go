package reap

import (
	"strings"
	"testing"
)

func TestPlanCheck(t *testing.T) {
	cases := map[string]struct {
		recipe func(r *recipe)
		plan   func(p *Plan)
		want   []string
	}{
		"good":             {nil, nil, nil},
		"order of its own": {nil, func(p *Plan) { p.Layers[1] = []int{3, 0, 1} }, nil},
		"layer missing": {nil, func(p *Plan) { delete(p.Layers, 2) },
			[]string{"layer 2: has experts but no plan entry"}},
		"draft layer missing": {
			func(r *recipe) { r.set("nextn_predict_layers", 1) },
			func(p *Plan) { delete(p.Layers, 3) },
			[]string{"layer 3: has experts but no plan entry (a draft layer"}},
		"layer too many": {nil, func(p *Plan) { p.Layers[0] = p.Layers[1] },
			[]string{"layer 0: in the plan, but the model has no routed experts there"}},
		"below used": {
			func(r *recipe) { r.set("expert_used_count", 4) }, nil,
			[]string{"keeps 3 experts, but 4 are used"}},
		"another model": {
			func(r *recipe) { r.arch = "other" },
			func(p *Plan) { p.NumExperts = 9; p.Source.Architecture = "test" },
			[]string{`made for architecture "test", the model is "other"`, "made for 9 experts, the model has 8"}},
		"unknown rules": {nil,
			func(p *Plan) { p.Rules = Rules{DraftLayers: "x", DroppedIDs: "y"} },
			[]string{`rules.draft_layers: "x" is not known`, `rules.dropped_ids: "y" is not known`}},
		"all at once": {nil,
			func(p *Plan) {
				p.Layers[1] = []int{0, 0}
				p.Layers[2] = []int{-1, 8, 2}
				delete(p.Layers, 3)
				p.Layers[7] = []int{0, 1, 2}
			},
			[]string{"layer 1: keeps 2 experts, want 3", "layer 1: expert 0 stands twice", "layer 2: entry 0 is expert -1",
				"layer 2: entry 1 is expert 8", "layer 3: has experts but no plan entry", "layer 7: in the plan"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := moe(3)
			if c.recipe != nil {
				c.recipe(r)
			}
			e := mustExperts(t, r.model(t))
			p := planFor(e, 0, 1, 4)
			if c.plan != nil {
				c.plan(p)
			}
			wantFaults(t, p.Check(e), c.want...)
		})
	}
}

// Four groups of four experts; two groups and four experts are used.
func TestPlanCheckGroups(t *testing.T) {
	r := moe(2)
	resize(r, "test", 16)
	r.set("expert_used_count", 4)
	r.set("expert_group_count", 4)
	r.set("expert_group_used_count", 2)
	e := mustExperts(t, r.model(t))
	if e.Groups != 4 || e.GroupsUsed != 2 {
		t.Fatalf("%+v", e)
	}
	cases := map[string]struct {
		keep []int
		want []string
	}{
		"two of each":           {[]int{0, 1, 4, 5, 8, 9, 14, 15}, nil},
		"two of each, shuffled": {[]int{1, 0, 6, 4, 9, 8, 15, 14}, nil},
		"ten":                   {[]int{0, 1, 2, 4, 5, 6, 8, 9, 12, 13}, []string{"keeps 10 experts, which 4 routing groups cannot share equally"}},
		"wrong membership":      {[]int{0, 1, 2, 3, 4, 5, 6, 7}, []string{"layer 1: entry 2 is expert 2 of routing group 0", "layer 2: entry 2"}},
		"groups in other order": {[]int{4, 5, 0, 1, 8, 9, 12, 13}, []string{"layer 1: entry 0 is expert 4 of routing group 1", "layer 2: entry 0"}},
		"one of each":           {[]int{0, 4, 8, 12}, []string{"keeps 4 experts, 1 in each of 4 routing groups, but a group is ranked by its two best"}},
		"fewer than are used":   {[]int{0, 4, 8}, []string{"keeps 3 experts, but 4 are used", "keeps 3 experts, which 4 routing groups"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantFaults(t, planFor(e, c.keep...).Check(e), c.want...)
		})
	}
	e.Used = 5 // of two groups that keep two each
	wantFaults(t, planFor(e, 0, 1, 4, 5, 8, 9, 14, 15).Check(e), "keeps 2 experts in each routing group, but 5 are used from 2 groups")
}

// TestCountsThatChangeTheModel refuses counts at which llama.cpp computes something else.
func TestCountsThatChangeTheModel(t *testing.T) {
	for _, c := range []struct {
		architecture string
		count, keep  int
		refused      bool
	}{
		{"llama4", 256, 128, true}, {"llama4", 256, 127, false}, {"llama4", 16, 8, false}, {"llama4", 128, 128, false},
		{"qwen3moe", 256, 128, false}, {"hunyuan_vl", 8, 1, true}, {"hunyuan_vl", 8, 2, false},
	} {
		e := &Experts{Architecture: c.architecture, Count: c.count, Used: 1, Groups: 1, GroupsUsed: 1}
		if err := e.CheckKeep(c.keep); (err != nil) != c.refused {
			t.Errorf("%s, %d of %d: %v", c.architecture, c.keep, c.count, err)
		}
		p := &Plan{Source: Source{Architecture: c.architecture}, NumExperts: c.count, KeepCount: c.keep}
		if faults := p.Check(e).Error(); strings.Contains(faults, "llama.cpp takes") != c.refused {
			t.Errorf("%s, %d of %d: %s", c.architecture, c.keep, c.count, faults)
		}
	}
}
