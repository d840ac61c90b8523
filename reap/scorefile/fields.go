package scorefile

import (
	"strconv"
	"strings"

	"ggufreap/reap/internal/jsondoc"
)

// text returns a member that is a string.
func (d *document) text(n *jsondoc.Node, key, path string) string {
	v := n.Get(key)
	if v == nil || v.Kind != '"' {
		d.fault(path+key, "%s, want a string", v.Describe())
		return ""
	}
	return v.Text()
}

// textOrNull returns a member that is a string; "" for null.
func (d *document) textOrNull(n *jsondoc.Node, key, path string) string {
	if v := n.Get(key); v != nil && v.Kind == 'n' {
		return ""
	}
	return d.text(n, key, path)
}

// whole returns a member that is a whole number from 0 up.
func (d *document) whole(n *jsondoc.Node, key, path string) int {
	v := n.Get(key)
	i, ok := v.Int()
	if !ok || i < 0 {
		d.fault(path+key, "%s, want a whole number", v.Describe())
	}
	return i
}

// same wants a member to be the model's number. It may be missing.
func (d *document) same(n *jsondoc.Node, key, path string, want int) {
	if v := n.Get(key); v != nil {
		if got, ok := v.Int(); !ok || got != want {
			d.fault(path+key, "%s, the model has %d", v.Describe(), want)
		}
	}
}

// object returns a member that is an object; an empty one in place of anything else.
func (d *document) object(n *jsondoc.Node, key, path string) *jsondoc.Node {
	v := n.Get(key)
	if v == nil || v.Kind != '{' {
		d.fault(path+key, "%s, want an object", v.Describe())
		return &jsondoc.Node{Kind: '{'}
	}
	return v
}

// list returns a member that is a list; an empty one in place of anything else.
func (d *document) list(n *jsondoc.Node, key, path string) *jsondoc.Node {
	v := n.Get(key)
	if v == nil || v.Kind != '[' {
		d.fault(path+key, "%s, want a list", v.Describe())
		return &jsondoc.Node{Kind: '['}
	}
	return v
}

// numbers returns a member that is a list of numbers. It is nil when the member is
// missing, which is a fault unless it is optional.
func (d *document) numbers(n *jsondoc.Node, key, path string, optional bool) []float64 {
	if optional && n.Get(key) == nil {
		return nil
	}
	values := []float64{}
	for i, item := range d.list(n, key, path).Items() {
		x, ok := item.Float()
		if !ok {
			d.fault(path+key, "entry %d is %s, want a number", i, item.Describe())
		}
		values = append(values, x)
	}
	return values
}

// layers reads an object whose keys are block numbers.
func (d *document) layers(n *jsondoc.Node, path string, layer func(n *jsondoc.Node, path string) *Layer) map[int]*Layer {
	layers := map[int]*Layer{}
	for m := range n.Members() {
		block, ok := blockNumber(m.Key)
		if !ok {
			d.fault(path+m.Key, "not a block number in plain decimal")
			continue
		}
		if len(layers) == maxBlocks {
			d.fault(strings.TrimRight(path, ". "), "more than %d layers", maxBlocks)
			break
		}
		layers[block] = layer(m.Value, path+m.Key+".")
	}
	return layers
}

// blockNumber reads a number in plain decimal: no sign, no leading zero, no spaces.
func blockNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && strconv.FormatUint(n, 10) == s
}
