// Package verification is what "verify" looks at and shows beside what package
// manifest/verify knows: experts and plans are held against the metadata, and a release that
// is to be proven is explained to the proof. Reports of all checks are shown and made a
// document here. It reads no flags.
package verification

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// A Job is what verify looks at beside what package manifest knows: experts
// and plans.
type Job struct {
	Path     string
	Source   *manifest.Pin // or nil
	PlanPath string        // of --plan, or ""
	Stdin    io.Reader     // for a plan that comes from there
	Strict   bool
	// Judge, unless nil, asks an engine whether it would load the model.
	Judge func(*gguf.Model, *verify.Report) error

	experts *reap.Experts
	layers  map[int][]int // of the plan, or nil
	Err     error         // why --plan could not be used
}

// Inspect holds experts and plan against the metadata.
func (v *Job) Inspect(m *gguf.Model, r *verify.Report) {
	if !m.Complete() { // what would be found is what is missing, once more
		r.Gaps = append(r.Gaps, verify.Gap{
			What:     "shards are missing, so experts and plan were not looked at",
			NotShown: "whether the metadata and the plan are those of the tensors",
		})
		return
	}
	v.findExperts(m, r)
	v.checkLoading(m, r)
	checkKeys(m, r)
	if info, err := os.Stat(v.Path); err != nil || !info.IsDir() {
		return
	}
	data, err := files.ReadAtMost(filepath.Join(v.Path, release.PlanName), planfile.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.missPlan(m, r)
	case gguf.MachineFault(err):
		v.Err = err
	case err != nil:
		r.Add(planFinding(err.Error()))
	default:
		v.checkPlan(m, r, data)
	}
}

// missPlan reports a plan that the metadata speaks of and the folder lacks. A release that was
// cut anew has none.
func (v *Job) missPlan(m *gguf.Model, r *verify.Report) {
	keys := slices.DeleteFunc([]string{reap.KeyPlan, reap.KeyCriterion, reap.KeyEvidence}, func(key string) bool { return m.Metadata().Text(key) == "" })
	if len(keys) == 0 {
		return
	}
	stated, _ := m.Metadata().Get(keys[0])
	what := fmt.Sprintf("is not there; key %q says %s", keys[0], valueText(stated))
	if v.Strict {
		r.Add(planFinding(what))
		return
	}
	r.Gaps = append(r.Gaps, verify.Gap{What: release.PlanName + " " + what, NotShown: "whether the experts are those that it keeps"})
}

// findExperts holds the tensors of routed experts against the metadata.
func (v *Job) findExperts(m *gguf.Model, r *verify.Report) {
	if kind := m.Companion(); kind != "" {
		r.Checked = append(r.Checked, "experts: none to count, the file goes beside a model (kind "+kind+")")
		return
	}
	e, faults := reap.FindExperts(m)
	v.experts = e
	for _, fault := range faults {
		r.Add(expertFinding(m, fault))
	}
	if e != nil {
		sayStanding(e, r)
		v.checkLabel(m, e, r)
	}
	if e == nil {
		r.Checked = append(r.Checked, "experts: none, the model is dense")
	} else if len(faults) == 0 {
		tensors := 0
		for range e.Tensors() {
			tensors++
		}
		r.Checked = append(r.Checked, "experts: "+text.Count(tensors, "tensor")+" in "+text.Count(len(e.Layers), "layer")+" with "+text.Count(e.Count, "expert")+" each")
	}
}

// checkLabel looks whether the size label counts the experts that are there.
func (v *Job) checkLabel(m *gguf.Model, e *reap.Experts, r *verify.Report) {
	if label := m.Metadata().Text(reap.KeySizeLabel); reap.StaleSizeLabel(label, e.Count) {
		r.Notes = append(r.Notes, verify.Note{File: filepath.Base(m.Files[0].Name),
			What: fmt.Sprintf("key %q is stale: it says %q, and each layer has %s", reap.KeySizeLabel, label, text.Count(e.Count, "expert"))})
	}
}

// sayStanding says what is known of pruning the architecture: one that was not judged is
// noted.
func sayStanding(e *reap.Experts, r *verify.Report) {
	standing := reap.StandingOf(e.Architecture)
	said := fmt.Sprintf("architecture %s: %s: %s", e.Architecture, standing, standing.Meaning())
	if standing == reap.Judged {
		r.Checked = append(r.Checked, said)
		return
	}
	r.Gaps = append(r.Gaps, verify.Gap{What: said, NotShown: "whether experts are cut as the model wants it"})
}

// expertFinding names file and tensor of a fault that is about one tensor.
func expertFinding(m *gguf.Model, fault reap.Fault) verify.Finding {
	f := verify.Finding{Kind: verify.KindExperts, Expert: manifest.NoExpert, What: fault.String()}
	name, err := strconv.Unquote(strings.TrimPrefix(fault.Where, "tensor "))
	if t := m.Tensor(name); err == nil && t != nil {
		f.File, f.Tensor, f.What = filepath.Base(t.File().Name), name, fault.What
	}
	return f
}

func planFinding(what string) verify.Finding {
	return verify.Finding{Kind: verify.KindPlan, File: release.PlanName, Expert: manifest.NoExpert, What: what}
}

// checkPlan holds the folder's plan against the model and its metadata.
func (v *Job) checkPlan(m *gguf.Model, r *verify.Report, data []byte) {
	plan, err := planfile.Decode(data)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Add(planFinding(strings.TrimSuffix(line, "\n")))
		}
		return
	}
	identity, err := planfile.Identity(data, plan)
	if err != nil {
		r.Add(planFinding(err.Error()))
		return
	}
	v.checkStated(plan.Source.StatedByHub, r)
	before := r.Total()
	for _, wrong := range planDifferences(plan, manifest.DigestBytes(identity), m, v.experts) {
		r.Add(planFinding(wrong))
	}
	if r.Total() == before {
		if _, ok := m.Metadata().Get(reap.KeyPlan); ok {
			r.Hold(release.PlanName)
		}
		r.Checked = append(r.Checked, fmt.Sprintf("%s: fits the model, keeps %d of %d experts in %s", release.PlanName, plan.KeepCount, plan.NumExperts, text.Count(len(plan.Layers), "layer")))
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
	return append(wrong, keyDifferences(plan, digest, md)...)
}

// keyDifferences says in what the keys that state the derivation and the plan disagree.
func keyDifferences(plan *reap.Plan, digest manifest.Digest, md *gguf.Metadata) []string {
	want := map[string]gguf.Value{
		reap.KeyPlan:            gguf.TextValue(digest.String()),
		reap.KeySourceStructure: gguf.TextValue(plan.Source.StructureDigest),
		reap.KeyCriterion:       gguf.TextValue(plan.Criterion.Name),
		reap.KeyEvidence:        gguf.TextValue(string(plan.Criterion.Evidence)),
		reap.KeySourceExperts:   gguf.Uint32Value(uint32(plan.NumExperts)),
	}
	if plan.Source.WeightsDigest != "" { // else whoever pruned may know more
		want[reap.KeySourceWeights] = gguf.TextValue(plan.Source.WeightsDigest)
	}
	var wrong []string
	for key, got := range md.All() {
		if !strings.HasPrefix(key, "reap.") {
			continue
		}
		says, known := want[key]
		switch {
		case known && valueText(got) != valueText(says):
			wrong = append(wrong, fmt.Sprintf("key %q is %s, the plan says %s", key, valueText(got), valueText(says)))
		}
	}
	return wrong
}

// valueText writes a value as a message shows it.
func valueText(v gguf.Value) string {
	const digest = 7 + 64 // characters of a digest, shown whole
	if s, ok := v.Text(); ok && len(s) <= digest {
		return s
	}
	if n, ok := v.Uint(); ok {
		return strconv.FormatUint(n, 10)
	}
	return v.Describe()
}
