package manifest

import (
	"cmp"
	"fmt"
)

// A PairChange is a metadata key by which two pins differ.
type PairChange struct {
	Key    string
	Change Change // not [Reshaped]
	A, B   *Pair  // nil where there is none
}

// String says what is different.
func (c PairChange) String() string {
	switch c.Change {
	case Added:
		return fmt.Sprintf("key %q (%s) was added", c.Key, c.B.Type)
	case Removed:
		return fmt.Sprintf("key %q (%s) is missing", c.Key, c.A.Type)
	case Retyped:
		return fmt.Sprintf("key %q has type %s, was %s", c.Key, c.B.Type, c.A.Type)
	}
	return fmt.Sprintf("key %q has another value", c.Key)
}

// ComparePairs returns the keys by which the metadata that was pinned as b differs from
// that of a, sorted. There are none exactly when the metadata digests are equal.
func ComparePairs(a, b []Pair) []PairChange {
	var changes []PairChange
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && cmp.Less(b[0].Key, a[0].Key):
			changes = append(changes, PairChange{b[0].Key, Added, nil, &b[0]})
			b = b[1:]
		case len(b) == 0 || cmp.Less(a[0].Key, b[0].Key):
			changes = append(changes, PairChange{a[0].Key, Removed, &a[0], nil})
			a = a[1:]
		default:
			if a[0].Type != b[0].Type {
				changes = append(changes, PairChange{a[0].Key, Retyped, &a[0], &b[0]})
			} else if a[0] != b[0] {
				changes = append(changes, PairChange{a[0].Key, Changed, &a[0], &b[0]})
			}
			a, b = a[1:], b[1:]
		}
	}
	return changes
}
