package scorefile

import (
	"strings"

	"ggufreap/gguf/jsondoc"
)

// numbers returns a member that is a list of numbers. It is nil when the member is
// missing, which is a fault unless it is optional.
func (d *document) numbers(n *jsondoc.Node, key, path string, optional bool) []float64 {
	if optional && n.Get(key) == nil {
		return nil
	}
	values := []float64{}
	for i, item := range d.List(n, key, path).Items() {
		x, ok := item.Float()
		if !ok {
			d.Fault(path+key, "entry %d is %s, want a number", i, item.Describe())
		}
		values = append(values, x)
	}
	return values
}

// layers reads an object whose keys are block numbers.
func (d *document) layers(n *jsondoc.Node, path string, layer func(n *jsondoc.Node, path string) *Layer) map[int]*Layer {
	layers := map[int]*Layer{}
	for m := range n.Members() {
		block, ok := jsondoc.Decimal(m.Key)
		if !ok {
			d.Fault(path+m.Key, "not a layer number in plain decimal")
			continue
		}
		if len(layers) == maxBlocks {
			d.Fault(strings.TrimRight(path, ". "), "more than %d layers", maxBlocks)
			break
		}
		layers[block] = layer(m.Value, path+m.Key+".")
	}
	return layers
}
