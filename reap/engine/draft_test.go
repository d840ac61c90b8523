package engine

import (
	"errors"
	"slices"
	"testing"
)

func TestDraft(t *testing.T) {
	var d Draft
	for _, step := range []struct {
		first int
		lists [][]int
	}{{0, [][]int{{1}, {2}}}, {0, [][]int{{3}, {4}, {5}}}, {1, [][]int{nil, {6}, {7, 8}}}} {
		if err := d.Add(step.first, step.lists); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][]int{{1, 3}, {2, 4}, {5, 6}, {7, 8}}; !slices.EqualFunc(d.Documents, want, slices.Equal) || d.Written() != 8 {
		t.Errorf("documents %v, %d tokens, want %v", d.Documents, d.Written(), want)
	}
	for _, first := range []int{-1, 5} {
		if err := d.Add(first, [][]int{{1}}); !errors.Is(err, errGarbled) {
			t.Errorf("document %d: error %v", first, err)
		}
	}
}

// Documents have the text's tokens together, and differ by one token at most.
func TestDocumentLength(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {129, 2}, {1000, 7}, {65536, 128}, {5, 5}} {
		sum := 0
		for i := range c[1] {
			n := DocumentLength(c[0], c[1], i)
			if sum += n; n != c[0]/c[1] && n != c[0]/c[1]+1 {
				t.Errorf("%d tokens in %d documents: one of %d", c[0], c[1], n)
			}
		}
		if sum != c[0] {
			t.Errorf("%d documents have %d tokens, want %d", c[1], sum, c[0])
		}
	}
}
