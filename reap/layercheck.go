package reap

import (
	"fmt"
	"maps"
	"slices"
)

// checkLayers finds layers that lack a tensor which their routing needs, or which
// most of the other layers have.
func (f *finder) checkLayers() {
	for _, l := range f.experts.Layers {
		if !f.legacy[l.Block] { // which has its projections elsewhere, and a fault of its own
			f.checkProjections(l)
		}
	}
	for _, role := range sortedRoles() {
		f.checkPresence(role)
	}
}

// checkProjections wants a router, and up and down projections in one of the forms.
func (f *finder) checkProjections(l *Layer) {
	where := fmt.Sprintf("layer %d", l.Block)
	merged := l.Tensor(GateUpProjection) != nil
	if l.Tensor(Router) == nil {
		f.faults.Add(where, "no router %q", Router)
	}
	if l.Tensor(DownProjection) == nil {
		f.faults.Add(where, "no %q", DownProjection)
	}
	if !merged && l.Tensor(UpProjection) == nil {
		f.faults.Add(where, "no %q", UpProjection)
	}
	for _, single := range []Role{GateProjection, UpProjection} {
		if merged && l.Tensor(single) != nil {
			f.faults.Add(where, "both %q and %q", GateUpProjection, single)
		}
	}
}

// optionalInLayer says which roles may be present in some layers only: second-level scales belong to a
// tensor's quantization, which can differ by layer.
func optionalInLayer(architecture string, role Role) bool {
	switch role {
	case GateProjection, RouterBias,
		"ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias", "ffn_gate_up_exps.bias":
		return false
	case SelectionBias:
		return architecture == "mimo2" // loaded where present
	}
	return true
}

// checkPresence wants a role in all layers or in none. A merged projection counts as
// its gate; a layer routed by an id table needs no selection bias.
func (f *finder) checkPresence(role Role) {
	if optionalInLayer(f.experts.Architecture, role) {
		return
	}
	var with, without []int
	for _, l := range f.experts.Layers {
		switch {
		case f.legacy[l.Block]:
		case l.Tensor(role) != nil:
			with = append(with, l.Block)
		case role == GateProjection && l.Tensor(GateUpProjection) != nil:
		case role == SelectionBias && l.Tensor(IDTable) != nil:
		default:
			without = append(without, l.Block)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		f.faults.Add(layerList(without), "no %q, which is in %s", role, layerList(with))
	}
}

func sortedRoles() []Role { return slices.Sorted(maps.Keys(roleDims)) }

// checkArchitecture refuses Llama 4 Maverick: llama.cpp tells it by its expert count
// (llama4.cpp) and gives any other count QK-norm, which no key can turn off.
func (f *finder) checkArchitecture() {
	if f.experts.Architecture == "llama4" && f.experts.Count == 128 {
		f.faults.Add("", "llama4 with 128 experts cannot be pruned: llama.cpp takes any other count for a model with QK-norm, which corrupts attention without a message")
	}
}

// checkDraft notes draft layers that are declared and absent.
func (f *finder) checkDraft() {
	key := f.md.ArchKey("nextn_predict_layers")
	switch {
	case f.draftFrom < 0:
		f.faults.Add(fmt.Sprintf("key %q", key), "%d draft layers, but %d layers in all", f.draft, f.blockCount)
		return
	case f.draft > maxDraft:
		f.faults.Add(fmt.Sprintf("key %q", key), "%d draft layers, at most %d are supported", f.draft, maxDraft)
		return
	}
	var absent []int
	for b := f.draftFrom; b < f.blockCount; b++ {
		if !f.present[b] {
			absent = append(absent, b)
		}
	}
	if len(absent) > 0 {
		f.note("%s: announced as draft by %q, but not in the file", layerList(absent), key)
	}
}

// maxDraft bounds memory where a file announces more draft layers than any model has.
const maxDraft = 1 << 10

func (f *finder) note(format string, args ...any) {
	f.experts.Notes = append(f.experts.Notes, fmt.Sprintf(format, args...))
}
