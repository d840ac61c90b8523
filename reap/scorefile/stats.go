package scorefile

import "ggufreap/gguf/jsondoc"

// isStats reports whether the first member of a document has counts.
func isStats(root *jsondoc.Node) bool {
	for m := range root.Members() {
		return m.Value.Get("activation_counts") != nil
	}
	return false
}

// readStats reads expert_stats.json of llama.cpp PR 20454: an object by block with a list
// for each quantity, means where REAP has sums. A variant of the same author in Python has
// avg_weight in place of avg_gate_weight and no norms.
func (d *document) readStats(root *jsondoc.Node) *Measurements {
	m := &Measurements{
		Format: "expert_stats.json",
		Notes:  []string{"its router weights are those before the chosen ones are normalised and scaled"},
	}
	m.Layers = d.layers(root, "layer ", func(n *jsondoc.Node, path string) *Layer {
		if tokens, ok := n.Get("total_tokens").Int(); ok {
			m.Tokens = max(m.Tokens, tokens)
		}
		gate := "avg_gate_weight"
		if n.Get(gate) == nil {
			gate = "avg_weight"
		}
		l := &Layer{
			Count:    d.numbers(n, "activation_counts", path, false),
			ReapMean: d.numbers(n, "reap", path, true),
		}
		if mean := d.numbers(n, gate, path, true); len(mean) == len(l.Count) {
			l.GateSum = times(mean, l.Count)
		} else if mean != nil {
			d.Fault(path+gate, "%d entries, but %d counts", len(mean), len(l.Count))
		}
		return l
	})
	return m
}
