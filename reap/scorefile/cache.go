package scorefile

import (
	"fmt"
	"strings"

	"ggufreap/gguf/jsondoc"
)

// cacheFormat marks the importance cache of llama-prune.
const cacheFormat = "llama-moe-prune-importance-cache"

// readCache reads an importance cache: for each block a list of experts with their sums.
// The router's weights in it are normalised.
func (d *document) readCache(root *jsondoc.Node) *Measurements {
	m := &Measurements{Format: "llama-prune importance cache"}
	if version := d.Whole(root, "version", ""); version != 1 && len(d.faults) == 0 {
		d.Fault("version", "%d, want 1", version)
	}
	if model := root.Get("model"); model != nil {
		d.Same(model, "expert_count", "model.", d.experts.Count)
		d.Same(model, "experts_used", "model.", d.experts.Used)
		d.sameArchitecture(model, "model.")
	}
	m.Layers = d.layers(d.Object(root, "stats", ""), "stats.", d.cacheLayer)
	return m
}

func (d *document) cacheLayer(n *jsondoc.Node, path string) *Layer {
	l := &Layer{}
	if n.Kind != '[' {
		d.Fault(path, "%s, want a list of experts", n.Describe())
		return l
	}
	for i, item := range n.Items() {
		if i == d.experts.Count {
			d.Fault(strings.TrimSuffix(path, "."), "more than %d experts, which the model has", i)
			break
		}
		for _, field := range []struct {
			key  string
			list *[]float64
		}{{"selection_count", &l.Count}, {"probability_sum", &l.GateSum}, {"weighted_output_sum", &l.ReapSum}} {
			x, ok := item.Get(field.key).Float()
			if !ok {
				d.Fault(fmt.Sprintf("%s%d.%s", path, i, field.key), "%s, want a number", item.Get(field.key).Describe())
			}
			*field.list = append(*field.list, x)
		}
	}
	return l
}

// sameArchitecture wants a stated architecture to be the model's.
func (d *document) sameArchitecture(n *jsondoc.Node, path string) {
	if a := n.Get("architecture"); a != nil && a.Text() != d.experts.Architecture {
		d.Fault(path+"architecture", "%s, the model is %q", a.Describe(), d.experts.Architecture)
	}
}
