package planfile

import (
	"fmt"

	"ggufreap/gguf/jsondoc"
	"ggufreap/reap"
)

// Limits of a plan: the largest models have a hundred thousand experts, layers by experts.
const (
	MaxBytes  = 16 << 20
	maxValues = 1 << 19
	maxLayers = 1 << 12 // llama.cpp stops at 512
	maxInputs = 1 << 12
	maxFiles  = 1 << 16 // shards
)

// Read reads a plan for the model, from a document in any of the forms of the package. That
// of another tool names the model's architecture as its source; digests and the input file
// are for the caller to add.
func Read(data []byte, e *reap.Experts) (*reap.Plan, error) {
	if isOrdinalMask(data) {
		return nil, errOrdinalMask
	}
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	if root.Get("schema") != nil {
		return decode(root)
	}
	return readForeign(root, e)
}

// Decode reads a document that [Encode] wrote. Unknown fields, other schema versions and
// repeated keys are refused. The error is [reap.Faults] when the document is JSON:
// everything that is wrong with it, whatever the model.
func Decode(data []byte) (*reap.Plan, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	return decode(root)
}

// parse reads a JSON document with an object at its root.
func parse(data []byte) (*jsondoc.Node, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("plan: %d bytes, at most %d are read", len(data), MaxBytes)
	}
	root, err := jsondoc.Parse(data, maxValues)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if root.Kind != '{' {
		return nil, fmt.Errorf("plan: the document is %s, want an object", root.Describe())
	}
	return root, nil
}

func decode(root *jsondoc.Node) (*reap.Plan, error) {
	r := newReader()
	if schema := r.Text(root, "schema", ""); schema != Schema && len(r.faults) == 0 {
		r.Fault("schema", "%q, want %q", schema, Schema)
	}
	if err := r.faults.Err(); err != nil {
		return nil, err // nothing else is known of another schema
	}
	p := &reap.Plan{
		Source:       r.source(root),
		NumExperts:   r.Whole(root, "num_experts", ""),
		KeepCount:    r.Whole(root, "keep_count", ""),
		Criterion:    r.criterion(root),
		ScoresDigest: r.TextOrNull(root, "scores_digest", ""),
		Coverage:     r.coverage(root),
		Rules:        r.rules(root),
		Layers:       r.layers(r.Object(root, "layers", ""), r.keepObject),
	}
	if root.Get("shards") != nil {
		if p.Shards = r.Whole(root, "shards", ""); p.Shards == 0 {
			r.Fault("shards", "0, want 1 or more")
		}
	}
	if m := r.Text(root, "mode", ""); m != mode && m != "" {
		r.Fault("mode", "%q, want %q", m, mode)
	}
	r.Known(root, "", "schema", "source", "mode", "num_experts", "keep_count", "shards", "criterion", "scores_digest", "coverage", "rules", "layers")
	if p.Coverage != nil && p.Criterion.Evidence != reap.Measured {
		r.Fault("coverage", "of a plan whose scores were not measured")
	}
	if len(r.faults) == 0 {
		r.faults = p.Faults()
	}
	if err := r.faults.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// A reader takes fields out of a document and collects what is wrong with them.
type reader struct {
	jsondoc.Fields
	faults reap.Faults
}

func newReader() *reader {
	r := &reader{}
	r.Fault = r.faults.Add
	return r
}

func (r *reader) source(root *jsondoc.Node) reap.Source {
	n := r.Object(root, "source", "")
	r.Known(n, "source.", "structure_digest", "weights_digest", "architecture", "name", "stated_by_hub")
	return reap.Source{
		StructureDigest: r.Text(n, "structure_digest", "source."),
		WeightsDigest:   r.TextOrNull(n, "weights_digest", "source."),
		Architecture:    r.Text(n, "architecture", "source."),
		Name:            r.Text(n, "name", "source."),
		StatedByHub:     r.stated(n),
	}
}

func (r *reader) stated(source *jsondoc.Node) *reap.Stated {
	const path = "source.stated_by_hub."
	if source.Get("stated_by_hub") == nil {
		return nil
	}
	n := r.Object(source, "stated_by_hub", "source.")
	r.Known(n, path, "repo", "commit", "files")
	s := &reap.Stated{Repo: r.Text(n, "repo", path), Commit: r.Text(n, "commit", path)}
	for i, item := range r.List(n, "files", path).Items() {
		if i == maxFiles {
			r.Fault(path+"files", "more than %d", maxFiles)
			break
		}
		path := fmt.Sprintf("%sfiles[%d].", path, i)
		r.Known(item, path, "path", "size", "sha256", "etag")
		s.Files = append(s.Files, reap.StatedFile{
			Path:   r.Text(item, "path", path),
			Size:   int64(r.Whole(item, "size", path)),
			SHA256: r.TextOrNull(item, "sha256", path),
			ETag:   r.TextOrNull(item, "etag", path),
		})
	}
	return s
}

// coverage reads what measured scores say of the lists, nil where the plan does not.
func (r *reader) coverage(root *jsondoc.Node) *reap.Coverage {
	const path = "coverage."
	if root.Get("coverage") == nil {
		return nil
	}
	n := r.Object(root, "coverage", "")
	r.Known(n, path, "tokens", "texts", "score_kept", "least_score_kept", "least_score_layer", "experts_without_tokens", "kept_without_tokens")
	c := &reap.Coverage{
		Tokens: r.Whole(n, "tokens", path), Kept: r.share(n, "score_kept", path), Worst: r.share(n, "least_score_kept", path),
		WorstLayer: r.Whole(n, "least_score_layer", path), NeverRouted: -1, NeverRoutedKept: -1,
	}
	if without := n.Get("experts_without_tokens"); without == nil || without.Kind != 'n' {
		c.NeverRouted, c.NeverRoutedKept = r.Whole(n, "experts_without_tokens", path), r.Whole(n, "kept_without_tokens", path)
	}
	for i, item := range r.List(n, "texts", path).Items() {
		if i == maxInputs {
			r.Fault(path+"texts", "more than %d", maxInputs)
			break
		}
		path := fmt.Sprintf("%stexts[%d].", path, i)
		r.Known(item, path, "label", "tokens")
		c.Texts = append(c.Texts, reap.CoveredText{Label: r.Text(item, "label", path), Tokens: r.Whole(item, "tokens", path)})
	}
	return c
}

// share returns a member that is a number from 0 to 1.
func (r *reader) share(n *jsondoc.Node, key, path string) float64 {
	x, ok := n.Get(key).Float()
	if !ok || x < 0 || x > 1 {
		r.Want(n.Get(key), path+key, "a number from 0 to 1")
	}
	return x
}

func (r *reader) criterion(root *jsondoc.Node) reap.Criterion {
	n := r.Object(root, "criterion", "")
	r.Known(n, "criterion.", "name", "version", "evidence", "parameters", "inputs")
	c := reap.Criterion{
		Name:     r.Text(n, "name", "criterion."),
		Version:  r.Whole(n, "version", "criterion."),
		Evidence: reap.Evidence(r.TextOrNull(n, "evidence", "criterion.")),
	}
	for m := range r.Object(n, "parameters", "criterion.").Members() {
		if m.Value.Kind != '"' {
			r.Want(m.Value, "criterion.parameters."+m.Key, "a string")
			continue
		}
		if c.Parameters == nil {
			c.Parameters = map[string]string{}
		}
		c.Parameters[m.Key] = m.Value.Text()
	}
	c.Inputs = r.inputs(r.List(n, "inputs", "criterion."))
	return c
}

func (r *reader) inputs(list *jsondoc.Node) []reap.Input {
	var inputs []reap.Input
	for i, item := range list.Items() {
		if i == maxInputs {
			r.Fault("criterion.inputs", "more than %d", maxInputs)
			break
		}
		path := fmt.Sprintf("criterion.inputs[%d].", i)
		r.Known(item, path, "file", "sha256")
		inputs = append(inputs, reap.Input{
			File:   r.Text(item, "file", path),
			SHA256: r.Text(item, "sha256", path),
		})
	}
	return inputs
}

func (r *reader) rules(root *jsondoc.Node) reap.Rules {
	if root.Get("rules") == nil {
		return reap.Rules{}
	}
	n := r.Object(root, "rules", "")
	r.Known(n, "rules.", "always_keep", "draft_layers", "dropped_ids", "incomplete")
	rules := reap.Rules{
		AlwaysKeep:  r.TextOrNull(n, "always_keep", "rules."),
		DraftLayers: r.TextOrNull(n, "draft_layers", "rules."),
		DroppedIDs:  r.TextOrNull(n, "dropped_ids", "rules."),
	}
	if n.Get("incomplete") != nil {
		rules.Incomplete = r.Text(n, "incomplete", "rules.")
	}
	return rules
}

// layers reads an object whose keys are block numbers; list reads one value.
func (r *reader) layers(n *jsondoc.Node, list func(n *jsondoc.Node, where string) []int) map[int][]int {
	layers := map[int][]int{}
	for m := range n.Members() {
		where := fmt.Sprintf("layer %q", m.Key)
		block, ok := jsondoc.Decimal(m.Key)
		if !ok {
			r.Fault(where, "not a layer number in plain decimal")
			continue
		}
		if len(layers) == maxLayers {
			r.Fault(where, "more than %d layers", maxLayers)
			break
		}
		layers[block] = list(m.Value, where)
	}
	return layers
}

// keepObject reads {"keep": [...]} and nothing more.
func (r *reader) keepObject(n *jsondoc.Node, where string) []int {
	if n.Kind != '{' {
		r.Want(n, where, "an object")
		return nil
	}
	r.Known(n, where+": ", "keep")
	return r.ids(n.Get("keep"), where)
}

// ids reads a list of expert ids.
func (r *reader) ids(n *jsondoc.Node, where string) []int {
	if n == nil || n.Kind != '[' {
		r.Want(n, where, "a list of expert ids")
		return nil
	}
	ids := []int{}
	for i, item := range n.Items() {
		id, ok := item.Int()
		if !ok {
			r.Fault(where, "entry %d is %s, want an expert id", i, item.Describe())
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
