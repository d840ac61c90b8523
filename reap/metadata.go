package reap

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// Provenance is what a pruned model says of its making. The zero value adds nothing.
type Provenance struct {
	Plan       *Plan
	PlanDigest string
	// SourceWeights is the weights digest that the source is known to have, "" when it was
	// not pinned. What the plan says of it is a claim about what the plan was made for.
	SourceWeights string
	// SourcePin is the pin digest of the same pin, or "".
	SourcePin string
}

// Keys that a pruned model gains, see [Provenance].
const (
	KeySourceStructure = "reap.source_structure_digest"
	KeySourceWeights   = "reap.source_weights_digest"
	KeySourcePin       = "reap.source_pin_digest"
	KeyPlan            = "reap.plan_digest"
	KeyCriterion       = "reap.criterion"
	KeyEvidence        = "reap.criterion_evidence" // "measured", "proxy" or "baseline"
	KeySourceExperts   = "reap.source_expert_count"
)

// Metadata returns the pairs of the pruned model: those of the source, of which only
// the expert count changes and keeps its type, followed by the provenance. Keys that
// have a value for each expert are a fault, since nothing says how to cut them, unless
// they are named in copied.
func Metadata(m *gguf.Model, e *Experts, p *Plan, provenance Provenance, copied ...string) (*gguf.Metadata, error) {
	source := m.Metadata()
	var faults Faults
	for _, key := range perExpertKeys(m, e) {
		if !slices.Contains(copied, key) {
			faults.Add(fmt.Sprintf("key %q", key), "has %d entries, as many as there are experts, and its meaning is not known", e.Count)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	md := source.Clone()
	key := source.ArchKey("expert_count")
	old, _ := source.Get(key)
	count, err := old.WithInt(int64(p.KeepCount))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	md.Set(key, count)
	provenance.set(md)
	return md, nil
}

func (v Provenance) set(md *gguf.Metadata) {
	if v.Plan == nil {
		return
	}
	for _, pair := range []struct{ key, text string }{
		{KeySourceStructure, v.Plan.Source.StructureDigest},
		{KeySourceWeights, v.SourceWeights},
		{KeySourcePin, v.SourcePin},
		{KeyPlan, v.PlanDigest},
		{KeyCriterion, v.Plan.Criterion.Name},
		{KeyEvidence, string(v.Plan.Criterion.Evidence)},
	} {
		if pair.text != "" {
			md.Set(pair.key, gguf.TextValue(pair.text))
		}
	}
	md.Set(KeySourceExperts, gguf.Uint32Value(uint32(v.Plan.NumExperts)))
}

// perExpertKeys lists the keys that are arrays with one entry for each expert, as far as
// lengths can tell. Arrays that are known to run over layers or to have a length of their
// own are left out.
func perExpertKeys(m *gguf.Model, e *Experts) []string {
	md := m.Metadata()
	var keys []string
	for key, v := range md.All() {
		if v.Type() == gguf.Array && v.Len() == int64(e.Count) && !knownArray(strings.TrimPrefix(key, md.ArchKey(""))) {
			keys = append(keys, key)
		}
	}
	return keys
}

// knownArray reports whether an array's length has nothing to do with experts. Its name is
// the key without the architecture.
func knownArray(name string) bool {
	switch name {
	case "feed_forward_length", "swiglu_clamp_exp", "swiglu_clamp_shexp", // by layer
		"deepstack_mapping", "target_layers", "classifier.output_labels":
		return true
	}
	for _, prefix := range []string{
		"attention.", "rope.", "xielu.", "ssm.", "kda.", "shortconv.", "ple.",
		"general.", "tokenizer.", "split.",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
