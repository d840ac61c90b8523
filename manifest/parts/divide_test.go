package parts

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDivide has every file in one part, whatever the costs, and parts that are about even:
// none costs more than an even share and the costliest file together.
func TestDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 18))
	for range 500 {
		costs := make([]int64, 1+rng.IntN(60))
		var total, most int64
		for i := range costs {
			costs[i] = rng.Int64N(1 + rng.Int64N(1000))
			total, most = total+costs[i], max(most, costs[i])
		}
		n := 1 + rng.IntN(80)
		divided := Divide(costs, n)
		if len(divided) != n {
			t.Fatalf("%d parts, want %d", len(divided), n)
		}
		seen := make([]int, len(costs))
		for part, files := range divided {
			var cost int64
			for _, i := range files {
				seen[i]++
				cost += costs[i]
			}
			if !slices.IsSorted(files) || (len(files) == 0) != (part >= len(costs)) {
				t.Errorf("%d files in %d parts: part %d has %v", len(costs), n, part+1, files)
			}
			if len(files) > 0 && part > 0 && divided[part-1][0] > files[0] {
				t.Errorf("part %d begins with file %d, the one before with file %d", part+1, files[0], divided[part-1][0])
			}
			if cost > total/int64(n)+most {
				t.Errorf("costs %v: part %d of %d costs %d of %d", costs, part+1, n, cost, total)
			}
		}
		if slices.ContainsFunc(seen, func(times int) bool { return times != 1 }) {
			t.Errorf("files come %v times", seen)
		}
	}
}

// TestAsManyPartsAsFiles gives each part the file of its own number.
func TestAsManyPartsAsFiles(t *testing.T) {
	for part, files := range Divide([]int64{5, 9, 0, 7, 7}, 5) {
		if !slices.Equal(files, []int{part}) {
			t.Errorf("part %d has %v", part+1, files)
		}
	}
}

func TestArray(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "3": {3}, "3,7-9": {3, 7, 8, 9}, "1-2,4,6-7": {1, 2, 4, 6, 7}} {
		if got := Array(numbers); got != want {
			t.Errorf("%v: got %q, want %q", numbers, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"PART-1-of-1.json", "PART-3-of-14.json", "PART-100000-of-100000.json"} {
		if i, n, ok := ParseName(name); !ok || Name(i, n) != name {
			t.Errorf("%q is read as %d of %d, %t", name, i, n, ok)
		}
	}
	for _, name := range []string{"", "PART-", "PART-0-of-3.json", "PART-4-of-3.json", "PART-03-of-14.json", "PART-+3-of-14.json", "part-3-of-14.json", "PART-3-of-14.json.part", "PART-3-of-100001.json", "PART-3-of-99999999999999999999.json"} {
		if i, n, ok := ParseName(name); ok {
			t.Errorf("%q is read as %d of %d", name, i, n)
		}
	}
}
