package reap

import (
	"fmt"
	"slices"

	"ggufreap/reap/internal/jsondoc"
)

// Limits of a plan: the largest models have a hundred thousand experts, layers by experts.
const (
	maxPlanBytes  = 16 << 20
	maxPlanValues = 1 << 19
	maxLayers     = 1 << 12 // llama.cpp stops at 512
	maxInputs     = 1 << 12
)

// DecodePlan reads a plan document of this package. Unknown fields, other schema
// versions and repeated keys are refused. The error is [Faults] when the document is
// JSON: everything that is wrong with it, whatever the model. [Plan.Check] compares a
// plan with a model.
func DecodePlan(data []byte) (*Plan, error) {
	root, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	return decodePlan(root)
}

// parseDocument reads a JSON document with an object at its root.
func parseDocument(data []byte) (*jsondoc.Node, error) {
	if len(data) > maxPlanBytes {
		return nil, fmt.Errorf("plan: %d bytes, at most %d are read", len(data), maxPlanBytes)
	}
	root, err := jsondoc.Parse(data, maxPlanValues)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if root.Kind != '{' {
		return nil, fmt.Errorf("plan: the document is %s, want an object", root.Describe())
	}
	return root, nil
}

func decodePlan(root *jsondoc.Node) (*Plan, error) {
	r := &reader{}
	if schema := r.text(root, "schema", ""); schema != PlanSchema && len(r.faults) == 0 {
		r.faults.Add("schema", "%q, want %q", schema, PlanSchema)
	}
	if err := r.faults.Err(); err != nil {
		return nil, err // nothing else is known of another schema
	}
	p := &Plan{
		Source:       r.source(root),
		NumExperts:   r.number(root, "num_experts", ""),
		KeepCount:    r.number(root, "keep_count", ""),
		Criterion:    r.criterion(root),
		ScoresDigest: r.textOrNull(root, "scores_digest", ""),
		Rules:        r.rules(root),
		Layers:       r.layers(r.object(root, "layers", ""), r.keepObject),
	}
	if mode := r.text(root, "mode", ""); mode != planMode && mode != "" {
		r.faults.Add("mode", "%q, want %q", mode, planMode)
	}
	r.known(root, "", "schema", "source", "mode", "num_experts", "keep_count", "criterion", "scores_digest", "rules", "layers")
	if len(r.faults) == 0 {
		r.faults = p.faults()
	}
	if err := r.faults.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// A reader takes fields out of a JSON tree and collects what is wrong with them.
type reader struct {
	faults Faults
}

// known reports the members that have none of the given names.
func (r *reader) known(n *jsondoc.Node, path string, names ...string) {
	for m := range n.Members() {
		if !slices.Contains(names, m.Key) {
			r.faults.Add(path+m.Key, "unknown field")
		}
	}
}

func (r *reader) text(n *jsondoc.Node, key, path string) string {
	v := n.Get(key)
	if v == nil || v.Kind != '"' {
		r.want(v, path+key, "a string")
		return ""
	}
	return v.Text()
}

func (r *reader) textOrNull(n *jsondoc.Node, key, path string) string {
	if v := n.Get(key); v != nil && v.Kind == 'n' {
		return ""
	}
	return r.text(n, key, path)
}

func (r *reader) number(n *jsondoc.Node, key, path string) int {
	v := n.Get(key)
	i, ok := v.Int()
	if !ok || i < 0 {
		r.want(v, path+key, "a whole number")
	}
	return i
}

// object returns a member that is an object; an empty one in place of anything else.
func (r *reader) object(n *jsondoc.Node, key, path string) *jsondoc.Node {
	v := n.Get(key)
	if v == nil || v.Kind != '{' {
		r.want(v, path+key, "an object")
		return &jsondoc.Node{Kind: '{'}
	}
	return v
}

// list returns a member that is a list; an empty one in place of anything else.
func (r *reader) list(n *jsondoc.Node, key, path string) *jsondoc.Node {
	v := n.Get(key)
	if v == nil || v.Kind != '[' {
		r.want(v, path+key, "a list")
		return &jsondoc.Node{Kind: '['}
	}
	return v
}

func (r *reader) want(v *jsondoc.Node, where, what string) {
	if v == nil {
		r.faults.Add(where, "missing")
		return
	}
	r.faults.Add(where, "%s, want %s", v.Describe(), what)
}

func (r *reader) source(root *jsondoc.Node) Source {
	n := r.object(root, "source", "")
	r.known(n, "source.", "structure_digest", "weights_digest", "architecture", "name")
	return Source{
		StructureDigest: r.text(n, "structure_digest", "source."),
		WeightsDigest:   r.textOrNull(n, "weights_digest", "source."),
		Architecture:    r.text(n, "architecture", "source."),
		Name:            r.text(n, "name", "source."),
	}
}

func (r *reader) criterion(root *jsondoc.Node) Criterion {
	n := r.object(root, "criterion", "")
	r.known(n, "criterion.", "name", "version", "evidence", "parameters", "inputs")
	c := Criterion{
		Name:     r.text(n, "name", "criterion."),
		Version:  r.number(n, "version", "criterion."),
		Evidence: Evidence(r.textOrNull(n, "evidence", "criterion.")),
	}
	for m := range r.object(n, "parameters", "criterion.").Members() {
		if m.Value.Kind != '"' {
			r.want(m.Value, "criterion.parameters."+m.Key, "a string")
			continue
		}
		if c.Parameters == nil {
			c.Parameters = map[string]string{}
		}
		c.Parameters[m.Key] = m.Value.Text()
	}
	c.Inputs = r.inputs(r.list(n, "inputs", "criterion."))
	return c
}

func (r *reader) inputs(list *jsondoc.Node) []Input {
	var inputs []Input
	for i, item := range list.Items() {
		if i == maxInputs {
			r.faults.Add("criterion.inputs", "more than %d", maxInputs)
			break
		}
		path := fmt.Sprintf("criterion.inputs[%d].", i)
		r.known(item, path, "file", "sha256")
		inputs = append(inputs, Input{
			File:   r.text(item, "file", path),
			SHA256: r.text(item, "sha256", path),
		})
	}
	return inputs
}

func (r *reader) rules(root *jsondoc.Node) Rules {
	if root.Get("rules") == nil {
		return Rules{}
	}
	n := r.object(root, "rules", "")
	r.known(n, "rules.", "always_keep", "draft_layers", "dropped_ids")
	return Rules{
		AlwaysKeep:  r.textOrNull(n, "always_keep", "rules."),
		DraftLayers: r.textOrNull(n, "draft_layers", "rules."),
		DroppedIDs:  r.textOrNull(n, "dropped_ids", "rules."),
	}
}

// layers reads an object whose keys are block numbers; list reads one value.
func (r *reader) layers(n *jsondoc.Node, list func(n *jsondoc.Node, where string) []int) map[int][]int {
	layers := map[int][]int{}
	for m := range n.Members() {
		where := fmt.Sprintf("layer %q", m.Key)
		block, ok := parseID(m.Key)
		if !ok {
			r.faults.Add(where, "not a block number in plain decimal")
			continue
		}
		if len(layers) == maxLayers {
			r.faults.Add(where, "more than %d layers", maxLayers)
			break
		}
		layers[block] = list(m.Value, where)
	}
	return layers
}

// keepObject reads {"keep": [...]} and nothing more.
func (r *reader) keepObject(n *jsondoc.Node, where string) []int {
	if n.Kind != '{' {
		r.want(n, where, "an object")
		return nil
	}
	r.known(n, where+": ", "keep")
	return r.ids(n.Get("keep"), where)
}

// ids reads a list of expert ids.
func (r *reader) ids(n *jsondoc.Node, where string) []int {
	if n == nil || n.Kind != '[' {
		r.want(n, where, "a list of expert ids")
		return nil
	}
	ids := []int{}
	for i, item := range n.Items() {
		id, ok := item.Int()
		if !ok {
			r.faults.Add(where, "entry %d is %s, want an expert id", i, item.Describe())
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
