package reap

import (
	"fmt"
	"slices"
)

// maxPlanBytes is far more than a plan of any model needs.
const maxPlanBytes = 64 << 20

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
func parseDocument(data []byte) (*node, error) {
	if len(data) > maxPlanBytes {
		return nil, fmt.Errorf("plan: %d bytes, at most %d are read", len(data), maxPlanBytes)
	}
	root, err := parseJSON(data)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if root.kind != '{' {
		return nil, fmt.Errorf("plan: the document is %s, want an object", root.describe())
	}
	return root, nil
}

func decodePlan(root *node) (*Plan, error) {
	r := &reader{}
	if schema := r.text(root, "schema", ""); schema != PlanSchema && len(r.faults) == 0 {
		r.faults.add("schema", "%q, want %q", schema, PlanSchema)
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
		r.faults.add("mode", "%q, want %q", mode, planMode)
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
func (r *reader) known(n *node, path string, names ...string) {
	for _, m := range n.members {
		if !slices.Contains(names, m.key) {
			r.faults.add(path+m.key, "unknown field")
		}
	}
}

func (r *reader) text(n *node, key, path string) string {
	v := n.get(key)
	if v == nil || v.kind != '"' {
		r.want(v, path+key, "a string")
		return ""
	}
	return v.text
}

func (r *reader) textOrNull(n *node, key, path string) string {
	if v := n.get(key); v != nil && v.kind == 'n' {
		return ""
	}
	return r.text(n, key, path)
}

func (r *reader) number(n *node, key, path string) int {
	v := n.get(key)
	i, ok := v.integer()
	if !ok || i < 0 {
		r.want(v, path+key, "a whole number")
	}
	return i
}

// object returns a member that is an object; an empty one in place of anything else.
func (r *reader) object(n *node, key, path string) *node {
	v := n.get(key)
	if v == nil || v.kind != '{' {
		r.want(v, path+key, "an object")
		return &node{kind: '{'}
	}
	return v
}

// list returns a member that is a list; an empty one in place of anything else.
func (r *reader) list(n *node, key, path string) *node {
	v := n.get(key)
	if v == nil || v.kind != '[' {
		r.want(v, path+key, "a list")
		return &node{kind: '['}
	}
	return v
}

func (r *reader) want(v *node, where, what string) {
	if v == nil {
		r.faults.add(where, "missing")
		return
	}
	r.faults.add(where, "%s, want %s", v.describe(), what)
}

func (r *reader) source(root *node) Source {
	n := r.object(root, "source", "")
	r.known(n, "source.", "structure_digest", "weights_digest", "architecture", "name")
	return Source{
		StructureDigest: r.text(n, "structure_digest", "source."),
		WeightsDigest:   r.textOrNull(n, "weights_digest", "source."),
		Architecture:    r.text(n, "architecture", "source."),
		Name:            r.text(n, "name", "source."),
	}
}

func (r *reader) criterion(root *node) Criterion {
	n := r.object(root, "criterion", "")
	r.known(n, "criterion.", "name", "version", "parameters", "inputs")
	c := Criterion{
		Name:    r.text(n, "name", "criterion."),
		Version: r.number(n, "version", "criterion."),
	}
	for _, m := range r.object(n, "parameters", "criterion.").members {
		if m.value.kind != '"' {
			r.want(m.value, "criterion.parameters."+m.key, "a string")
			continue
		}
		if c.Parameters == nil {
			c.Parameters = map[string]string{}
		}
		c.Parameters[m.key] = m.value.text
	}
	c.Inputs = r.inputs(r.list(n, "inputs", "criterion."))
	return c
}

func (r *reader) inputs(list *node) []Input {
	var inputs []Input
	for i, item := range list.items {
		path := fmt.Sprintf("criterion.inputs[%d].", i)
		r.known(item, path, "file", "sha256")
		inputs = append(inputs, Input{
			File:   r.text(item, "file", path),
			SHA256: r.text(item, "sha256", path),
		})
	}
	return inputs
}

func (r *reader) rules(root *node) Rules {
	if root.get("rules") == nil {
		return Rules{}
	}
	n := r.object(root, "rules", "")
	r.known(n, "rules.", "draft_layers", "dropped_ids")
	return Rules{
		DraftLayers: r.textOrNull(n, "draft_layers", "rules."),
		DroppedIDs:  r.textOrNull(n, "dropped_ids", "rules."),
	}
}

// layers reads an object whose keys are block numbers; list reads one value.
func (r *reader) layers(n *node, list func(n *node, where string) []int) map[int][]int {
	layers := map[int][]int{}
	for _, m := range n.members {
		where := fmt.Sprintf("layer %q", m.key)
		block, ok := parseID(m.key)
		if !ok {
			r.faults.add(where, "not a block number in plain decimal")
			continue
		}
		layers[block] = list(m.value, where)
	}
	return layers
}

// keepObject reads {"keep": [...]} and nothing more.
func (r *reader) keepObject(n *node, where string) []int {
	if n.kind != '{' {
		r.want(n, where, "an object")
		return nil
	}
	r.known(n, where+": ", "keep")
	return r.ids(n.get("keep"), where)
}

// ids reads a list of expert ids.
func (r *reader) ids(n *node, where string) []int {
	if n == nil || n.kind != '[' {
		r.want(n, where, "a list of expert ids")
		return nil
	}
	ids := make([]int, 0, len(n.items))
	for i, item := range n.items {
		id, ok := item.integer()
		if !ok {
			r.faults.add(where, "entry %d is %s, want an expert id", i, item.describe())
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
