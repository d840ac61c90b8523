package words

import (
	"math"
	"strings"
	"testing"
)

func TestGroup(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 15797888: "15,797,888",
		math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Group(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Group(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Errorf("got %q", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 shards", 1: "1 shard", 2: "2 shards", 1200: "1,200 shards", -1: "-1 shards"} {
		if got := Count(n, "shard"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestVerb(t *testing.T) {
	for n, want := range map[int]string{0: "are", 1: "is", 2: "are", -1: "are"} {
		if got := Verb(n, "is", "are"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		list []int
		want string
	}{{nil, ""}, {[]int{4}, "4"}, {[]int{1, 2, 3, 7}, "1-3, 7"}, {[]int{0, 2, 3}, "0, 2-3"}} {
		if got := Ranges(c.list); got != c.want {
			t.Errorf("%v: got %q, want %q", c.list, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"keep", "keep"}: 0, {"keep", "kept"}: 2, {"inspect", "inpsect"}: 2, {"prune", "prunes"}: 1,
		{strings.Repeat("x", 65), "x"}: 64,
	} {
		if got := Distance(words[0], words[1]); got != want {
			t.Errorf("%q: %d, want %d", words, got, want)
		}
		if got := Distance(words[1], words[0]); got != want {
			t.Errorf("%q the other way: %d, want %d", words, got, want)
		}
	}
}
