package reap

import (
	"cmp"
	"maps"
	"slices"
)

// sortedKeys returns the keys of a map, ascending.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
