package reap

import (
	"errors"
	"fmt"
	"slices"

	"ggufreap/gguf/words"
)

// Faults returns what is wrong with the plan whatever the model.
func (p *Plan) Faults() Faults {
	var fs Faults
	if p.KeepCount < 1 || p.KeepCount > p.NumExperts {
		fs.Add("plan", "keeps %d of %d experts", p.KeepCount, p.NumExperts)
	}
	if p.Shards < 0 || p.Shards > maxShards {
		fs.Add("shards", "%d, want 1 to %d", p.Shards, maxShards)
	}
	if info, known := FindCriterion(p.Criterion.Name); known && p.Criterion.Evidence != info.Evidence {
		fs.Add("criterion.evidence", "%q, but %s is %q", p.Criterion.Evidence, info.Name, info.Evidence)
	}
	if len(p.Layers) == 0 {
		fs.Add("plan", "no layers")
	}
	if p.NumExperts > maxExperts {
		fs.Add("plan", "%d experts, at most %d are supported", p.NumExperts, maxExperts)
		return fs
	}
	for _, block := range p.Blocks() {
		p.checkList(block, &fs)
	}
	return fs
}

// maxShards is the greatest count that split.count, a 16-bit number, can state.
const maxShards = 1<<16 - 1

// checkList checks one keep list for length, range and repeated ids.
func (p *Plan) checkList(block int, fs *Faults) {
	where := fmt.Sprintf("layer %d", block)
	keep := p.Layers[block]
	if len(keep) != p.KeepCount {
		fs.Add(where, "keeps %s, want %d as in every layer: a file states one expert count for the whole model", words.Count(len(keep), "expert"), p.KeepCount)
	}
	seen := make(map[int]int, max(0, min(len(keep), p.NumExperts)))
	for i, id := range keep {
		if id < 0 || id >= p.NumExperts {
			fs.Add(where, "entry %d is expert %d, want 0 to %d", i, id, p.NumExperts-1)
			continue
		}
		if first, repeated := seen[id]; repeated {
			fs.Add(where, "expert %d stands twice, as entry %d and as entry %d", id, first, i)
			continue
		}
		seen[id] = i
	}
}

// Check compares the plan with a model that has no faults of its own, and returns
// everything that keeps the one from being applied to the other. Digests are for the
// caller to compare.
func (p *Plan) Check(e *Experts) Faults {
	fs := p.Faults()
	if a := p.Source.Architecture; a != e.Architecture {
		fs.Add("plan", "made for architecture %q, the model is %q", a, e.Architecture)
	}
	if p.NumExperts != e.Count {
		fs.Add("plan", "made for %d experts, the model has %d", p.NumExperts, e.Count)
	}
	if p.KeepCount < e.Used {
		fs.Add("plan", "keeps %s, but %d are used for each token", words.Count(p.KeepCount, "expert"), e.Used)
	}
	p.checkLayers(e, &fs)
	p.checkGroups(e, &fs)
	p.checkRules(&fs)
	return fs
}

// checkLayers wants a list for every layer that routes and for no other.
func (p *Plan) checkLayers(e *Experts, fs *Faults) {
	for _, l := range e.Layers {
		if _, ok := p.Layers[l.Block]; ok {
			continue
		}
		fs.Add(fmt.Sprintf("layer %d", l.Block), "has experts but no plan entry%s", draftNote(l))
	}
	for _, block := range p.Blocks() {
		if e.Layer(block) == nil {
			fs.Add(fmt.Sprintf("layer %d", block), "in the plan, but the model has no routed experts there")
		}
	}
}

// checkGroups applies the rules of group-limited routing (llama.cpp, llama-graph.cpp
// and llama-model.cpp): group g is the g-th run of consecutive ids, a group is ranked
// by its two best experts, and the used experts come from the used groups.
func (p *Plan) checkGroups(e *Experts, fs *Faults) {
	if err := countFault(e, p.KeepCount); err != nil {
		fs.Add("plan", "%v", err)
		return
	}
	if e.Groups == 1 {
		return
	}
	size, kept := e.Count/e.Groups, p.KeepCount/e.Groups
	for _, block := range p.Blocks() {
		for i, id := range p.Layers[block] {
			if id/size != i/kept {
				fs.Add(fmt.Sprintf("layer %d", block), "entry %d is expert %d of routing group %d, but that place belongs to group %d: each of %d groups keeps %d, in group order",
					i, id, id/size, i/kept, e.Groups, kept)
				break
			}
		}
	}
}

// CheckKeep says why the model cannot keep so many experts in each layer; it returns
// nil when it can.
func (e *Experts) CheckKeep(keep int) error {
	if keep < 1 || keep > e.Count || keep < e.Used {
		return fmt.Errorf("%d, want %d (the experts used for a token) to %d", keep, max(1, e.Used), e.Count)
	}
	return countFault(e, keep)
}

// countFault says why the engine would not compute with keep experts what it computes with
// those of the model.
//
// llama.cpp tells Llama 4 Maverick by its 128 experts (llama4.cpp), takes QK-norm for off
// there and for on at any other count, and no key says otherwise. It takes hunyuan models
// with one expert for dense ones (llama-model.cpp). All other counts that its code names
// decide the name that a model is shown with.
func countFault(e *Experts, keep int) error {
	const maverick = 128
	switch {
	case e.Architecture == "llama4" && keep == maverick && e.Count != maverick:
		return fmt.Errorf("keeps %d experts: llama.cpp takes a llama4 of this count for Maverick, which has no QK-norm, and computes another model without a message", keep)
	case (e.Architecture == "hunyuan_vl" || e.Architecture == "hunyuan-dense") && keep == 1:
		return fmt.Errorf("keeps 1 expert, and llama.cpp takes %s with one expert for a dense model", e.Architecture)
	}
	return groupFault(e, keep)
}

// groupFault says why keep experts cannot be shared out among the model's groups.
func groupFault(e *Experts, keep int) error {
	switch kept := keep / e.Groups; {
	case e.Groups == 1 && e.grouped && keep == 1:
		return errors.New("keeps 1 expert, but llama.cpp wants more experts than routing groups, and the model states 1 group")
	case e.Groups == 1:
		return nil
	case keep%e.Groups != 0:
		return fmt.Errorf("keeps %d experts, which %d routing groups cannot share equally", keep, e.Groups)
	case kept < 2:
		return fmt.Errorf("keeps %d experts, %d in each of %d routing groups, but a group is ranked by its two best", keep, kept, e.Groups)
	case kept*e.GroupsUsed < e.Used:
		return fmt.Errorf("keeps %d experts in each routing group, but %d are used from %d groups", kept, e.Used, e.GroupsUsed)
	}
	return nil
}

// checkRules refuses rules that are not known: they decide what is written.
func (p *Plan) checkRules(fs *Faults) {
	if r := p.Rules.DroppedIDs; r != "" && r != NearestKept {
		fs.Add("rules.dropped_ids", "%q is not known, want %q", r, NearestKept)
	}
	if r := p.Rules.Incomplete; r != "" && r != IncompleteAllowed {
		fs.Add("rules.incomplete", "%q is not known, want %q", r, IncompleteAllowed)
	}
	if r := p.Rules.DraftLayers; r != "" && !slices.Contains(DraftRules, r) {
		fs.Add("rules.draft_layers", "%q is not known, want one of %q", r, DraftRules)
	}
}
