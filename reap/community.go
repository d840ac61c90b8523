package reap

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"ggufreap/reap/internal/jsondoc"
)

// Given is the criterion name of a plan whose lists came from a file of another tool,
// which may not say how they were chosen.
const Given = "given"

// ReadPlan reads a plan for the model: a document of this package, or one of the
// forms in use elsewhere, which say less about themselves.
//
//	{"layers":{"1":{"keep":[5,1,6]}}}            kimi-k3-mlx, kimi-k3-gguf-prune
//	{"keep":{"1":[5,1,6]}}, {"1":[5,1,6]}        the same, bare
//	{"keep":[[],[5,1,6]]}                        the same, place in the list = block
//	{"format":"aikar-moe-prune",...}             experts to drop (llama.cpp PR 26794)
//	{"pruned_experts":[[1,3],[1,4]]}             block and expert to drop (vLLM PR 37824)
//
// A keep list's order is the order of the new experts. The result of a foreign form
// names the model's architecture as its source; digests and the input file are for the
// caller to add. The plan is not yet checked against the model: see [Plan.Check].
func ReadPlan(data []byte, e *Experts) (*Plan, error) {
	if isOrdinalMask(data) {
		return nil, errors.New("plan: a text mask of \"layer expert\" lines counts layers among the MoE blocks of one engine; write block numbers as JSON instead")
	}
	root, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	if root.Get("schema") != nil {
		return decodePlan(root)
	}
	f := &foreign{experts: e}
	f.read(root)
	f.checkKept(root)
	if err := f.r.faults.Err(); err != nil {
		return nil, err
	}
	return f.plan(), nil
}

// NewInput describes a file that a plan was made from, by its base name and bytes.
func NewInput(name string, data []byte) Input {
	in, _ := HashInput(name, bytes.NewReader(data)) // reading memory cannot fail
	return in
}

// HashInput describes a file that a plan was made from, by its base name and the bytes
// that r gives.
func HashInput(name string, r io.Reader) (Input, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return Input{}, err
	}
	return Input{File: path.Base(strings.ReplaceAll(name, `\`, "/")), SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

var maskLine = regexp.MustCompile(`^[0-9]+[ \t]+[0-9]+$`)

// isOrdinalMask reports whether the first line that is not a comment is two numbers.
func isOrdinalMask(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return maskLine.Match(line)
		}
	}
	return false
}

// foreign is a plan of another tool while it is being read.
type foreign struct {
	experts *Experts
	r       reader
	form    string
	keep    map[int][]int
}

func (f *foreign) read(root *jsondoc.Node) {
	var forms []string
	for _, key := range []string{"pruned_experts", "layers", "keep"} {
		if root.Get(key) != nil {
			forms = append(forms, key)
		}
	}
	if len(forms) > 1 {
		f.r.faults.Add("plan", "%q all list experts, and nothing says which of them counts", forms)
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
		f.keep = f.r.layers(root, f.r.ids)
	default:
		f.r.faults.Add("plan", "none of the known forms: no \"layers\", \"keep\", \"pruned_experts\" or \"format\", and not a list for each block number")
	}
}

// plan makes the plan that the lists state.
func (f *foreign) plan() *Plan {
	p := &Plan{
		Source:     Source{Architecture: f.experts.Architecture},
		NumExperts: f.experts.Count,
		Criterion:  Criterion{Name: Given, Version: 1, Parameters: map[string]string{"form": f.form}},
		Rules:      givenRules(f.experts),
		Layers:     f.keep,
	}
	if blocks := p.Blocks(); len(blocks) > 0 {
		p.KeepCount = len(p.Layers[blocks[0]])
	}
	return p
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
			f.r.want(v, key, "a whole number")
			continue
		}
		for _, block := range sortedKeys(f.keep) {
			if n := len(f.keep[block]); n != count {
				f.r.faults.Add(key, "%d, but layer %d keeps %d", count, block, n)
			}
		}
	}
}

// allIDs reports whether an object has members, and all of them block numbers.
func allIDs(root *jsondoc.Node) bool {
	ok := false
	for m := range root.Members() {
		if _, ok = parseID(m.Key); !ok {
			return false
		}
	}
	return ok
}

// sameCount compares a stated expert count, which may be absent, with the model's.
func (f *foreign) sameCount(n *jsondoc.Node, key string) {
	v := n.Get(key)
	if v == nil {
		return
	}
	if count, ok := v.Int(); !ok || count != f.experts.Count {
		f.r.faults.Add(key, "%s, the model has %d", v.Describe(), f.experts.Count)
	}
}

// readLayers reads the form of kimi-k3-mlx and kimi-k3-gguf-prune. Their other fields
// (bit widths, minimum counts) are about encodings that a GGUF slice keeps as they are.
func (f *foreign) readLayers(root *jsondoc.Node) {
	f.form = "reap_plan"
	f.sameCount(root, "num_experts")
	if mode := root.Get("mode"); mode != nil && mode.Text() != planMode {
		f.r.faults.Add("mode", "%s: this mode gives layers or experts different widths, which slabs copied from a GGUF file cannot have; only %q can be used", mode.Describe(), planMode)
	}
	if root.Get("mtp_keep") != nil {
		f.r.faults.Add("mtp_keep", "draft layers with lists of their own count: a GGUF file states one expert count for all layers")
	}
	f.keep = f.r.layers(f.r.object(root, "layers", ""), f.layerEntry)
}

func (f *foreign) layerEntry(n *jsondoc.Node, where string) []int {
	if n.Get("wblocks") != nil {
		f.r.faults.Add(where, "\"wblocks\" cuts the width of experts, which needs other tensors than slabs copied whole")
	}
	if n.Kind == '[' {
		return f.r.ids(n, where)
	}
	ids := f.r.ids(n.Get("keep"), where)
	for _, key := range dropKeys {
		if list := n.Get(key); list != nil && list.Kind == '[' {
			f.checkDropped(ids, f.r.ids(list, where+": "+key), where)
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
			f.r.faults.Add(where, "expert %d is both kept and dropped", id)
		}
	}
	if len(keep)+len(dropped) != f.experts.Count {
		f.r.faults.Add(where, "keeps %d and drops %d of %d experts", len(keep), len(dropped), f.experts.Count)
	}
}

// readKeep reads {"keep": ...} with an object by block number or a list by place.
func (f *foreign) readKeep(root *jsondoc.Node) {
	f.form = "keep lists"
	f.sameCount(root, "num_experts")
	f.sameCount(root, "n_expert_in")
	if root.Get("mtp_keep") != nil {
		f.r.faults.Add("mtp_keep", "draft layers with lists of their own count: a GGUF file states one expert count for all layers")
	}
	keep := root.Get("keep")
	if keep.Kind != '[' {
		f.keep = f.r.layers(f.r.object(root, "keep", ""), f.r.ids)
		return
	}
	f.keep = map[int][]int{}
	for block, item := range keep.Items() {
		if block == maxLayers {
			f.r.faults.Add("keep", "more than %d layers", maxLayers)
			break
		}
		// An empty list stands for a block without experts.
		if ids := f.r.ids(item, fmt.Sprintf("layer %d", block)); len(ids) > 0 {
			f.keep[block] = ids
		}
	}
}

// readAikar reads the drop lists of llama-prune profiles.
func (f *foreign) readAikar(root *jsondoc.Node) {
	f.form = "aikar-moe-prune"
	if format := f.r.text(root, "format", ""); format != f.form {
		f.r.faults.Add("format", "%q is not a plan that can be read, want %q", format, f.form)
		return
	}
	if version := f.r.number(root, "version", ""); version != 1 {
		f.r.faults.Add("version", "%d, want 1", version)
	}
	if m := root.Get("model"); m != nil {
		f.sameCount(m, "expert_count")
		if a := m.Get("architecture"); a != nil && a.Text() != f.experts.Architecture {
			f.r.faults.Add("model.architecture", "%s, the model is %q", a.Describe(), f.experts.Architecture)
		}
	}
	layers := f.r.object(f.r.object(root, "pruning", ""), "layers", "pruning.")
	f.complement(f.r.layers(layers, func(n *jsondoc.Node, where string) []int {
		return f.r.ids(n.Get("disabled_experts"), where)
	}))
}

// readPairs reads vLLM's list of [block, expert] to drop.
func (f *foreign) readPairs(root *jsondoc.Node) {
	f.form = "pruned_experts"
	drop := map[int][]int{}
	for i, pair := range f.r.list(root, "pruned_experts", "").Items() {
		where := fmt.Sprintf("pruned_experts[%d]", i)
		ids := f.r.ids(pair, where)
		if len(ids) != 2 {
			f.r.faults.Add(where, "want a block and an expert")
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
				f.r.faults.Add(fmt.Sprintf("layer %d", l.Block), "drops expert %d, which is out of range or dropped already", id)
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
