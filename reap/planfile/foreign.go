package planfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ggufreap/gguf/jsondoc"
	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
	"ggufreap/reap"
)

var errOrdinalMask = errors.New("plan: a text mask of \"layer expert\" lines counts only the layers with experts, as one engine does; write layer numbers as JSON instead")

var maskLine = pattern.Lazy(`^[0-9]+[ \t]+[0-9]+$`)

// isOrdinalMask reports whether the first line that is not a comment is two numbers.
func isOrdinalMask(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return maskLine().Match(line)
		}
	}
	return false
}

// foreign is a plan of another tool while it is being read.
type foreign struct {
	*reader
	experts *reap.Experts
	form    string
	keep    map[int][]int
}

func readForeign(root *jsondoc.Node, e *reap.Experts) (*reap.Plan, error) {
	f := &foreign{reader: newReader(), experts: e}
	f.read(root)
	f.checkKept(root)
	if err := f.faults.Err(); err != nil {
		return nil, err
	}
	plan := reap.GivenPlan(e, f.form, f.keep)
	plan.Notes = f.notes(root)
	return plan, nil
}

// notes tells what the plan says of its model that differs from this one and changes no
// list.
func (f *foreign) notes(root *jsondoc.Node) []string {
	for _, key := range []string{"top_k", "num_experts_per_tok"} {
		v := root.Get(key)
		if v == nil || f.experts.Used == 0 {
			continue
		}
		if n, ok := v.Int(); !ok || n != f.experts.Used {
			return []string{fmt.Sprintf("%q is %s, and the model uses %s for a token: the lists may have been made for another routing", key, v.Describe(), words.Count(f.experts.Used, "expert"))}
		}
	}
	return nil
}

func (f *foreign) read(root *jsondoc.Node) {
	var forms []string
	for _, key := range []string{"pruned_experts", "layers", "keep"} {
		if root.Get(key) != nil {
			forms = append(forms, key)
		}
	}
	if len(forms) > 1 {
		f.Fault("plan", "%q all list experts, and nothing says which of them counts", forms)
		return
	}
	switch {
	case root.Get("format") != nil:
		f.readAikar(root)
	case root.Get("pruned_experts") != nil:
		f.readPairs(root)
	case root.Get("layers") != nil:
		f.readLayers(root)
	case root.Get("keep") != nil:
		f.readKeep(root)
	case allIDs(root):
		f.form = "keep lists"
		f.keep = f.layers(root, f.ids)
	default:
		f.Fault("plan", "none of the known forms: no \"layers\", \"keep\", \"pruned_experts\" or \"format\", and not a list for each layer number")
	}
}

// keepKeys are names under which a plan states how many experts a layer keeps.
var keepKeys = []string{"keep_count", "n_expert_out"}

// checkKept compares the number kept that a plan states, if it does, with its lists.
func (f *foreign) checkKept(root *jsondoc.Node) {
	for _, key := range keepKeys {
		v := root.Get(key)
		if v == nil {
			continue
		}
		count, ok := v.Int()
		if !ok {
			f.Want(v, key, "a whole number")
			continue
		}
		for _, block := range slices.Sorted(maps.Keys(f.keep)) {
			if n := len(f.keep[block]); n != count {
				f.Fault(key, "%d, but layer %d keeps %d", count, block, n)
			}
		}
	}
}

// allIDs reports whether an object has members, and all of them block numbers.
func allIDs(root *jsondoc.Node) bool {
	ok := false
	for m := range root.Members() {
		if _, ok = jsondoc.Decimal(m.Key); !ok {
			return false
		}
	}
	return ok
}

// readLayers reads the form of kimi-k3-mlx and kimi-k3-gguf-prune. Their other fields
// (bit widths, minimum counts) are about encodings that a GGUF slice keeps as they are.
func (f *foreign) readLayers(root *jsondoc.Node) {
	f.form = "reap_plan"
	f.Same(root, "num_experts", "", f.experts.Count)
	if v := root.Get("mode"); v != nil && v.Text() != mode {
		f.Fault("mode", "%s: this mode gives layers or experts different widths, which experts copied from a GGUF file cannot have; only %q can be used", v.Describe(), mode)
	}
	if root.Get("mtp_keep") != nil {
		f.Fault("mtp_keep", "draft layers with lists of their own count: a GGUF file states one expert count for all layers")
	}
	f.keep = f.layers(f.Object(root, "layers", ""), f.layerEntry)
}

func (f *foreign) layerEntry(n *jsondoc.Node, where string) []int {
	if n.Get("wblocks") != nil {
		f.Fault(where, "\"wblocks\" cuts the width of experts, which needs other tensors than experts copied whole")
	}
	if n.Kind == '[' {
		return f.ids(n, where)
	}
	ids := f.ids(n.Get("keep"), where)
	for _, key := range dropKeys {
		if list := n.Get(key); list != nil && list.Kind == '[' {
			f.checkDropped(ids, f.ids(list, where+": "+key), where)
		}
	}
	return ids
}

// dropKeys are names under which the experts to drop are listed beside those to keep.
var dropKeys = []string{"drop", "dropped", "disabled_experts", "pruned_experts"}

// checkDropped wants a list of experts to drop to be the others of a keep list.
func (f *foreign) checkDropped(keep, drop []int, where string) {
	dropped := map[int]bool{}
	for _, id := range drop {
		dropped[id] = true
	}
	for _, id := range keep {
		if dropped[id] {
			f.Fault(where, "expert %d is both kept and dropped", id)
		}
	}
	if len(keep)+len(dropped) != f.experts.Count {
		f.Fault(where, "keeps %d and drops %d of %d experts", len(keep), len(dropped), f.experts.Count)
	}
}

// readKeep reads {"keep": ...} with an object by block number or a list by place.
func (f *foreign) readKeep(root *jsondoc.Node) {
	f.form = "keep lists"
	f.Same(root, "num_experts", "", f.experts.Count)
	f.Same(root, "n_expert_in", "", f.experts.Count)
	if root.Get("mtp_keep") != nil {
		f.Fault("mtp_keep", "draft layers with lists of their own count: a GGUF file states one expert count for all layers")
	}
	keep := root.Get("keep")
	if keep.Kind != '[' {
		f.keep = f.layers(f.Object(root, "keep", ""), f.ids)
		return
	}
	f.keep = map[int][]int{}
	for block, item := range keep.Items() {
		if block == maxLayers {
			f.Fault("keep", "more than %d layers", maxLayers)
			break
		}
		// An empty list stands for a block without experts.
		if ids := f.ids(item, fmt.Sprintf("layer %d", block)); len(ids) > 0 {
			f.keep[block] = ids
		}
	}
}

// readAikar reads the drop lists of llama-prune profiles.
func (f *foreign) readAikar(root *jsondoc.Node) {
	f.form = "aikar-moe-prune"
	if format := f.Text(root, "format", ""); format != f.form {
		f.Fault("format", "%q is not a plan that can be read, want %q", format, f.form)
		return
	}
	if version := f.Whole(root, "version", ""); version != 1 {
		f.Fault("version", "%d, want 1", version)
	}
	if m := root.Get("model"); m != nil {
		f.Same(m, "expert_count", "model.", f.experts.Count)
		if a := m.Get("architecture"); a != nil && a.Text() != f.experts.Architecture {
			f.Fault("model.architecture", "%s, the model is %q", a.Describe(), f.experts.Architecture)
		}
	}
	layers := f.Object(f.Object(root, "pruning", ""), "layers", "pruning.")
	f.complement(f.layers(layers, func(n *jsondoc.Node, where string) []int {
		return f.ids(n.Get("disabled_experts"), where)
	}))
}

// readPairs reads vLLM's list of [block, expert] to drop.
func (f *foreign) readPairs(root *jsondoc.Node) {
	f.form = "pruned_experts"
	drop := map[int][]int{}
	for i, pair := range f.List(root, "pruned_experts", "").Items() {
		where := fmt.Sprintf("pruned_experts[%d]", i)
		ids := f.ids(pair, where)
		if len(ids) != 2 {
			f.Fault(where, "want a layer and an expert")
			continue
		}
		drop[ids[0]] = append(drop[ids[0]], ids[1])
	}
	f.complement(drop)
}

// complement turns drop lists into keep lists over all layers of the model.
func (f *foreign) complement(drop map[int][]int) {
	f.keep = map[int][]int{}
	for _, l := range f.experts.Layers {
		dropped := make([]bool, f.experts.Count)
		for _, id := range drop[l.Block] {
			if id < 0 || id >= len(dropped) || dropped[id] {
				f.Fault(fmt.Sprintf("layer %d", l.Block), "drops expert %d, which is out of range or dropped already", id)
				continue
			}
			dropped[id] = true
		}
		for id, gone := range dropped {
			if !gone {
				f.keep[l.Block] = append(f.keep[l.Block], id)
			}
		}
		delete(drop, l.Block)
	}
	for block := range drop {
		f.keep[block] = nil // a layer the model does not have: Check reports it
	}
}
