package parts

import (
	"cmp"
	"container/heap"
	"slices"
)

// Divide returns which files each of n parts has, given what each file costs: as evenly as
// giving the costliest one that is left to the part that has least comes to. Files of a part
// are in order, and so are parts by their first files, so that with as many parts as files
// each part has the file of its own number. The last parts are empty where there are more
// parts than files. The same costs give the same division on every machine.
func Divide(costs []int64, n int) [][]int {
	order := make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	loads := make(loads, min(n, len(costs)))
	for i := range loads {
		loads[i].part = i
	}
	divided := make([][]int, n)
	for _, file := range order {
		least := &loads[0]
		divided[least.part] = append(divided[least.part], file)
		least.cost += costs[file]
		least.files++
		heap.Fix(&loads, 0)
	}
	used := divided[:len(loads)]
	for _, files := range used {
		slices.Sort(files)
	}
	slices.SortFunc(used, slices.Compare)
	return divided
}

// A load is what a part has been given so far.
type load struct {
	part, files int
	cost        int64
}

// loads are a heap with the least one on top; files that cost nothing go around.
type loads []load

func (l loads) Len() int { return len(l) }
func (l loads) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].cost, l[j].cost), cmp.Compare(l[i].files, l[j].files), cmp.Compare(l[i].part, l[j].part)) < 0
}
func (l loads) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *loads) Push(any)     {} // their number is fixed
func (l *loads) Pop() any     { return nil }
