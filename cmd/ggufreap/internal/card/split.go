package card

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/manifest"
)

// A Node is a machine with its part of the layers.
type Node struct {
	From, To int // layers From to To-1
	Bytes    int64
}

// Layers names the node's layers.
func (n Node) Layers() string {
	switch n.To - n.From {
	case 0:
		return "none"
	case 1:
		return fmt.Sprint(n.From)
	}
	return fmt.Sprintf("%d to %d", n.From, n.To-1)
}

// Split spreads the layers of a model over machines, in order, as evenly in bytes as whole
// layers allow. llama.cpp gives the first layers to the RPC servers, in
// their order, and the last ones to the machine that runs it, which is the last here. What
// belongs to no layer is counted for that one.
func Split(pin *manifest.Pin, nodes int) []Node {
	layers, rest := layerBytes(pin)
	low, high := rest, rest
	for _, n := range layers {
		low, high = max(low, n), high+n
	}
	for low < high { // the least room in which all layers fit
		middle := low + (high-low)/2
		if _, ok := place(layers, rest, nodes, middle); ok {
			high = middle
		} else {
			low = middle + 1
		}
	}
	placed, _ := place(layers, rest, nodes, high)
	return placed
}

// place fills machines with room bytes each, one after the other.
func place(layers []int64, rest int64, nodes int, room int64) ([]Node, bool) {
	list := make([]Node, nodes)
	list[nodes-1].Bytes = rest
	at := 0
	for i, n := range layers {
		for list[at].Bytes+n > room {
			if at++; at == nodes {
				return list, false
			}
			list[at].From, list[at].To = i, i
		}
		list[at].To = i + 1
		list[at].Bytes += n
	}
	for i := at + 1; i < nodes; i++ {
		list[i].From, list[i].To = len(layers), len(layers)
	}
	return list, true
}

// layerBytes counts the bytes of each layer, and of what is in none.
func layerBytes(pin *manifest.Pin) (layers []int64, rest int64) {
	for _, t := range pin.Tensors {
		name, ok := strings.CutPrefix(t.Name, "blk.")
		number, _, dotted := strings.Cut(name, ".")
		block, err := strconv.Atoi(number)
		if !ok || !dotted || err != nil || block < 0 || block >= 1<<12 {
			rest += t.Size
			continue
		}
		for len(layers) <= block {
			layers = append(layers, 0)
		}
		layers[block] += t.Size
	}
	return layers, rest
}
