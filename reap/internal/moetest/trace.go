package moetest

import (
	"slices"
	"testing"

	"ggufreap/reap/llama"
)

// Operands are what a graph multiplies with given weights, by the names of those.
type Operands map[string]*[][]float32

// Of returns the operand of a node that multiplies with one of the weights, and where its rows
// belong; nil for another node.
func (o Operands) Of(n llama.Node) (llama.Node, *[][]float32) {
	weight, ok := n.Input(0)
	if !ok || o[weight.Name()] == nil {
		return n, nil
	}
	operand, _ := n.Input(1)
	return operand, o[weight.Name()]
}

// Rows returns the numbers of a node that was computed, a row a token.
func Rows(t *testing.T, n llama.Node, tokens int) [][]float32 {
	list, err := n.Float32s()
	if err != nil {
		t.Error(err)
		return nil
	}
	return slices.Collect(slices.Chunk(list, len(list)/tokens))
}
