package inspect

import (
	"math"
	"slices"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/gguf"
	"ggufreap/reap"
)

// expertsInfo is what is known of the routed experts. Sizes are over all layers. What
// faults or missing shards leave uncertain is null.
type expertsInfo struct {
	Count         int              `json:"count"` // in each layer
	Used          *int             `json:"used"`  // for a token
	Shared        *int             `json:"shared"`
	Groups        *int             `json:"groups"`
	GroupsUsed    *int             `json:"groups_used"`
	Gating        *string          `json:"gating"`
	Standing      string           `json:"standing"` // of the architecture's pruning
	Layers        int              `json:"layers"`
	FirstLayer    int              `json:"first_layer"`
	SlabBytes     *int64           `json:"slab_bytes"`      // of one expert: projections, router row, bias
	Parameters    uint64           `json:"parameter_count"` // of all routed experts
	BitsPerWeight *document.Number `json:"bits_per_weight"`
	Prunable      bool             `json:"prunable"`
	Keep          []keepInfo       `json:"keep"`

	stated uint64 // by the key, when the tensors have another count
}

// A keepInfo says what is left when only so many experts of each layer are kept.
type keepInfo struct {
	Keep        int    `json:"keep"`
	TensorBytes int64  `json:"tensor_bytes"`
	SavedBytes  int64  `json:"saved_bytes"`
	Preset      string `json:"preset,omitzero"` // that keeps so many
}

// addExperts adds what was found of the model's routed experts, the faults that keep it
// from being pruned, and what depends on which layers have experts.
func (in *Inspection) addExperts(m *gguf.Model, found *reap.Experts, faults reap.Faults, keep []string) error {
	complete := m.Complete()
	if complete { // faults of a partial set are those of its missing tensors
		in.addFaults(found, faults)
	}
	in.Layers = countLayers(m, found)
	if found == nil && complete && m.Companion() == "" {
		in.ActiveCount = &in.ParameterCount
	}
	if found == nil {
		if len(keep) > 0 {
			return args.Usagef("--keep %s: %w", keep[0], reap.ErrDense)
		}
		return nil
	}
	in.Experts = describeExperts(found, m.HasMetadata())
	in.compareCount(m, found)
	in.Experts.Prunable = complete && len(faults) == 0 && in.TensorBytes < math.MaxInt64 // more is not counted
	if len(keep) > 0 && !complete {
		return args.Usagef("--keep %s: shards are missing", keep[0])
	}
	if len(keep) > 0 && len(faults) > 0 {
		return args.Usagef("--keep %s: the model cannot be pruned:\n%w", keep[0], faults)
	}
	var counts []int
	for _, s := range keep {
		n, _, err := args.Experts(s, found.Count, 1)
		if err != nil {
			return args.Usagef("--keep: %w", err)
		}
		counts = append(counts, n)
	}
	return in.addSizes(found, counts)
}

func (in *Inspection) addFaults(found *reap.Experts, faults reap.Faults) {
	for _, f := range faults {
		where := f.Where
		if where == "" {
			where = "experts"
		}
		in.Problems = append(in.Problems, problem{gguf.Warning.String(), where, "cannot be pruned: " + f.What})
	}
	if found == nil {
		return
	}
	for _, note := range found.Notes {
		in.Problems = append(in.Problems, problem{gguf.Warning.String(), "experts", note})
	}
}

// describeExperts says what is known of a model's experts; stated tells whether its
// metadata is there.
func describeExperts(e *reap.Experts, stated bool) *expertsInfo {
	x := &expertsInfo{Count: e.Count, Standing: string(reap.StandingOf(e.Architecture)), Layers: len(e.Layers), Keep: []keepInfo{}}
	if len(e.Layers) > 0 {
		x.FirstLayer = e.Layers[0].Block
	}
	if !stated {
		return x
	}
	x.Shared, x.Groups, x.GroupsUsed = &e.Shared, &e.Groups, &e.GroupsUsed
	if e.Used > 0 {
		x.Used = &e.Used
	}
	if e.Gating != 0 {
		gating := e.Gating.String()
		x.Gating = &gating
	}
	return x
}

// addSizes computes what experts take and what keeping fewer would save.
func (in *Inspection) addSizes(e *reap.Experts, keep []int) error {
	x := in.Experts
	var bytes int64
	for _, t := range e.Tensors() {
		if inExpert(t.Role) {
			x.Parameters = addCount(x.Parameters, t.Elements())
			bytes = gguf.AddSize(bytes, t.Size)
		}
	}
	x.BitsPerWeight = bitsPerWeight(bytes, x.Parameters)
	if !x.Prunable {
		return nil
	}
	unused := x.Parameters / uint64(e.Count) * uint64(e.Count-e.Used)
	active := in.ParameterCount - unused
	in.ActiveCount = &active
	var slab int64
	for _, l := range e.Layers {
		slab += l.ExpertBytes()
	}
	x.SlabBytes = &slab
	if len(keep) == 0 {
		keep = keepCounts(e)
	}
	for _, n := range keep {
		if err := e.CheckKeep(n); err != nil {
			return args.Usagef("--keep: %w", err)
		}
		saved := slab * int64(e.Count-n)
		x.Keep = append(x.Keep, keepInfo{n, in.TensorBytes - saved, saved, presetOf(e, n)})
	}
	return nil
}

// inExpert reports whether a tensor of that role is computed with only for the chosen
// experts; the router looks at all.
func inExpert(role reap.Role) bool {
	switch role {
	case reap.Router, reap.RouterBias, reap.SelectionBias, reap.IDTable:
		return false
	}
	return true
}

// presetOf names the preset that keeps so many of the model's experts, or "".
func presetOf(e *reap.Experts, keep int) string {
	for _, p := range reap.Presets {
		if p.Keep == keep && p.Check(e) == nil {
			return p.Name
		}
	}
	return ""
}

// keepCounts returns the counts to show, largest first: those of the presets for such
// a model, and three quarters, a half and a quarter of the experts, as far as the model
// allows them.
func keepCounts(e *reap.Experts) []int {
	var counts []int
	for _, p := range reap.Presets {
		if p.Check(e) == nil {
			counts = append(counts, p.Keep)
		}
	}
	for quarters := 1; quarters <= 3; quarters++ {
		n := e.Count * quarters / 4
		counts = append(counts, n-n%e.Groups)
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	counts = slices.Compact(counts)
	return slices.DeleteFunc(counts, func(n int) bool { return e.CheckKeep(n) != nil })
}
