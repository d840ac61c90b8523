package picture

import (
	"slices"

	"ggufreap/reap"
)

// A Choice is scores with the experts that are kept of them.
type Choice struct {
	Experts *reap.Experts // count, groups and layers are used
	Scores  *reap.Scores
	Always  map[int][]int // experts that were kept whatever their score
	Keep    int           // 0 when nothing is kept yet
	// Kept are the lists of a plan, nil for those that the scores choose.
	Kept map[int][]int
}

// order lists the experts of a block: the kept ones from best to worst, then the others.
func (c *Choice) order(block int) []int {
	order := c.byScore(block)
	if c.Kept == nil {
		c.sortByScore(block, order[:c.Keep])
		c.sortByScore(block, order[c.Keep:])
		return order
	}
	kept := make([]bool, len(order))
	for _, id := range c.Kept[block] {
		kept[id] = true
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case kept[a] == kept[b]:
			return 0
		case kept[a]:
			return -1
		}
		return 1
	})
	c.sortByScore(block, order[:c.Keep])
	c.sortByScore(block, order[c.Keep:])
	return order
}

// sortByScore puts experts that groups or rules mixed back into the order of their scores.
func (c *Choice) sortByScore(block int, ids []int) {
	scores := c.Scores.Layers[block]
	slices.SortStableFunc(ids, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
}

// greatest returns the greatest of some numbers, 0 for none.
func greatest(list []float64) float64 {
	most := 0.0
	for _, x := range list {
		most = max(most, x)
	}
	return most
}

// byScore lists the experts of a block in the order in which growing keep counts take them.
func (c *Choice) byScore(block int) []int {
	return reap.KeepOrder(c.Experts, c.Scores, block, c.Always[block])
}
