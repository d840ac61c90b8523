package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// A verification is what verify looks at beside what package manifest knows: experts
// and plans.
type verification struct {
	path     string
	source   *manifest.Pin // or nil
	planPath string        // of --plan, or ""

	experts *reap.Experts
	layers  map[int][]int // of the plan, or nil
	err     error         // why --plan could not be used
}

func newVerification(c *cli.Context) (*verification, error) {
	v := &verification{path: c.Args().First(), planPath: c.String("plan")}
	path := c.String("source-pin")
	switch {
	case path == "" && v.planPath != "":
		return nil, usagef("--plan says what the release keeps of its source, so --source-pin is needed too")
	case path == "":
		return v, nil
	}
	var err error
	v.source, err = manifest.ReadPin(path)
	return v, err
}

// inspect holds experts and plan against the metadata.
func (v *verification) inspect(m *gguf.Model, r *manifest.Report) {
	v.findExperts(m, r)
	if info, err := os.Stat(v.path); err != nil || !info.IsDir() {
		return
	}
	data, err := readDocument(filepath.Join(v.path, planName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.Findings = append(r.Findings, planFinding(err.Error()))
	default:
		v.checkPlan(m, r, data)
	}
}

// findExperts holds the tensors of routed experts against the metadata.
func (v *verification) findExperts(m *gguf.Model, r *manifest.Report) {
	e, faults := reap.FindExperts(m)
	v.experts = e
	for _, fault := range faults {
		r.Findings = append(r.Findings, expertFinding(m, fault))
	}
	if e == nil {
		r.Checked = append(r.Checked, "experts: none, the model is dense")
	} else if len(faults) == 0 {
		tensors := 0
		for range e.Tensors() {
			tensors++
		}
		r.Checked = append(r.Checked, "experts: "+count(tensors, "tensor")+" in "+count(len(e.Layers), "layer")+" with "+count(e.Count, "expert")+" each")
	}
}

// expertFinding names file and tensor of a fault that is about one tensor.
func expertFinding(m *gguf.Model, fault reap.Fault) manifest.Finding {
	f := manifest.Finding{Kind: manifest.KindExperts, Expert: manifest.NoExpert, What: fault.String()}
	name, err := strconv.Unquote(strings.TrimPrefix(fault.Where, "tensor "))
	if t := m.Tensor(name); err == nil && t != nil {
		f.File, f.Tensor, f.What = filepath.Base(t.File().Name), name, fault.What
	}
	return f
}

func planFinding(what string) manifest.Finding {
	return manifest.Finding{Kind: manifest.KindPlan, File: planName, Expert: manifest.NoExpert, What: what}
}

// checkPlan holds the folder's plan against the model and its metadata.
func (v *verification) checkPlan(m *gguf.Model, r *manifest.Report, data []byte) {
	plan, err := reap.DecodePlan(data)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Findings = append(r.Findings, planFinding(strings.TrimSuffix(line, "\n")))
		}
		return
	}
	before := len(r.Findings)
	for _, wrong := range planDifferences(plan, manifest.DigestBytes(data), m, v.experts) {
		r.Findings = append(r.Findings, planFinding(wrong))
	}
	if len(r.Findings) == before {
		r.Checked = append(r.Checked, fmt.Sprintf("%s: fits the model, keeps %d of %d experts in %s", planName, plan.KeepCount, plan.NumExperts, count(len(plan.Layers), "layer")))
	}
}

// planDifferences says in what a plan and the release that should be made by it disagree.
func planDifferences(plan *reap.Plan, digest manifest.Digest, m *gguf.Model, e *reap.Experts) []string {
	md := m.Metadata()
	var wrong []string
	compare := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, the plan says %s", what, got, want))
		}
	}
	compare("the architecture", md.Architecture(), plan.Source.Architecture)
	if e == nil {
		return append(wrong, "the model has no routed experts")
	}
	compare("the expert count", strconv.Itoa(e.Count), strconv.Itoa(plan.KeepCount))
	for _, block := range e.Blocks() {
		if plan.Layers[block] == nil {
			wrong = append(wrong, fmt.Sprintf("layer %d routes, and the plan has no list for it", block))
		}
	}
	for _, block := range plan.Blocks() {
		if e.Layer(block) == nil {
			wrong = append(wrong, fmt.Sprintf("layer %d has a list in the plan, and does not route", block))
		}
	}
	for _, stated := range []struct{ key, want string }{
		{reap.KeyPlan, digest.String()},
		{reap.KeySourceStructure, plan.Source.StructureDigest},
		{reap.KeySourceWeights, plan.Source.WeightsDigest},
		{reap.KeyCriterion, plan.Criterion.Name},
		{reap.KeySourceExperts, strconv.Itoa(plan.NumExperts)},
	} {
		value, ok := md.Get(stated.key)
		if !ok || stated.want == "" {
			continue
		}
		got, isText := value.Text()
		if n, isNumber := value.Uint(); !isText && isNumber {
			got = strconv.FormatUint(n, 10)
		}
		compare(fmt.Sprintf("key %q", stated.key), got, stated.want)
	}
	return wrong
}

// prove says what is known of a release that is to be proven.
func (v *verification) prove(m *gguf.Model) manifest.ProveOptions {
	experts, _ := reap.FindExperts(m)
	tables := map[string]bool{}
	if experts != nil {
		for _, t := range experts.Tensors() {
			if t.Role == reap.IDTable {
				tables[t.Name] = true
			}
		}
	}
	v.readPlan(experts)
	return manifest.ProveOptions{
		Keep:      v.layers,
		ExpertIDs: func(tensor string) bool { return tables[tensor] },
		OldIDs:    func(tensor string, keep []int) (manifest.Sum, error) { return oldIDs(m.Tensor(tensor), keep) },
		MayChange: v.mayChange,
	}
}

// oldIDs returns the digest that a table of expert ids would have with the source's
// numbers.
func oldIDs(t *gguf.Tensor, keep []int) (manifest.Sum, error) {
	digest, err := manifest.DigestOf(oldTable{t, keep})
	return digest.Sum, err
}

// An oldTable writes a table of expert ids with each id i replaced by keep[i].
type oldTable struct {
	*gguf.Tensor
	keep []int
}

func (t oldTable) WriteTo(w io.Writer) (int64, error) {
	in, out := bufio.NewReader(t.Reader()), bufio.NewWriter(w)
	id := make([]byte, 4)
	for n := int64(0); ; n += 4 {
		if _, err := io.ReadFull(in, id); err == io.EOF {
			return n, out.Flush()
		} else if err != nil {
			return n, fmt.Errorf("entry %d: %w", n/4, err)
		}
		i := t.File().Order.Uint32(id)
		if int64(i) >= int64(len(t.keep)) {
			return n, fmt.Errorf("entry %d is expert %d, want 0 to %d", n/4, int32(i), len(t.keep)-1)
		}
		t.File().Order.PutUint32(id, uint32(t.keep[i]))
		out.Write(id)
	}
}

// readPlan reads the plan that was given, or else the folder's own.
func (v *verification) readPlan(experts *reap.Experts) {
	path := v.planPath
	if path == "" {
		path = filepath.Join(v.path, planName)
	}
	data, err := readDocument(path)
	if err != nil {
		if v.planPath != "" {
			v.err = err
		}
		return
	}
	var source reap.Experts
	if experts != nil {
		source = *experts
	}
	source.Count = v.sourceExperts()
	plan, err := reap.ReadPlan(data, &source)
	switch {
	case err == nil:
		v.layers = plan.Layers
	case v.planPath != "":
		v.err = fmt.Errorf("%s: %w", safe(path), err)
	}
}

// sourceExperts returns how many experts a block of the source has, as its pin tells.
func (v *verification) sourceExperts() int {
	n := 0
	for _, t := range v.source.Tensors {
		if t.Slabs != nil {
			n = max(n, t.Slabs.Count)
		}
	}
	return n
}

// mayChange allows the keys by which prune states the derivation, with what they must say
// of the source, and those by which the model is said to have a base.
func (v *verification) mayChange(key string) (*gguf.Value, bool) {
	switch key {
	case reap.KeySourceStructure:
		structure, err := v.source.StructureDigest()
		value := gguf.TextValue(structure.String())
		return &value, err == nil
	case reap.KeySourceWeights:
		value := gguf.TextValue(v.source.WeightsDigest.String())
		return &value, true
	case reap.KeySourceExperts:
		value := gguf.Uint32Value(uint32(v.sourceExperts()))
		return &value, true
	case reap.KeyPlan, reap.KeyCriterion, reap.KeyEvidence:
		return nil, true
	}
	return nil, strings.HasPrefix(key, "general.base_model.")
}

// maxUnproven bounds the tensors that are printed; the JSON document has all.
const maxUnproven = 20

// printProof prints how much of a release is shown to be its source's, and what is not.
func (con *console) printProof(p *manifest.Proof) {
	con.printf("\n")
	con.field("source", "%s, weights digest %s", safe(p.Source), p.WeightsDigest)
	con.field("proven", "%s", sizeText(p.Proven))
	con.field("unproven", "%s", sizeText(p.Unproven))
	if len(p.Blocks) > 0 {
		con.field("experts", "%d of %d in each of %s, found by their bytes", len(p.Blocks[0].Keep), p.Experts, count(len(p.Blocks), "block"))
	}
	for _, m := range p.Metadata {
		if m.Allowed {
			con.field("may differ", "key %s was %s", safe(m.Key), m.Change)
		}
	}
	unproven := slices.DeleteFunc(slices.Clone(p.Tensors), func(t manifest.TensorProof) bool { return t.Proven == t.Size })
	for _, t := range unproven[:min(len(unproven), maxUnproven)] {
		con.field("unproven", "tensor %s: %s of %s", safe(t.Name), grouped(t.Size-t.Proven), count(t.Size, "byte"))
	}
	if more := len(unproven) - maxUnproven; more > 0 {
		con.field("", "and %s more; --json lists them all", count(more, "tensor"))
	}
}
