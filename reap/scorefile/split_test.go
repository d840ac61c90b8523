package scorefile

import (
	"strings"
	"testing"

	"ggufreap/reap"
)

// code keeps experts 0, 1 of layer 1 (70, 27, 1, 0) and, of two 5s the lower, 0, 1 of
// layer 2 (5, 30, 0, 5); prose keeps 0, 2 (10, 0, 50, 0) and 1, 2 (0, 10, 15, 5).
func TestSplitHalves(t *testing.T) {
	for _, file := range []string{"whole.npz", "saliency.json"} {
		m, err := read(t, file)
		if err != nil {
			t.Fatal(err)
		}
		halves, err := m.SplitHalves(model(), reap.ReapSum, 2)
		if err != nil {
			t.Fatal(err)
		}
		want := SplitHalf{
			Label: "code", Tokens: 25, Overlap: 0.5, Chance: 0.5,
			Retention: (10.0/60 + 10.0/25) / 2, // code's choice by prose's scores
			Reverse:   (71.0/97 + 30.0/35) / 2,
		}
		if len(halves) != 1 || halves[0] != want {
			t.Errorf("%s: %+v, want %+v", file, halves, want)
		}
		m.Sources = append(m.Sources, m.Sources[0])
		if halves, err = m.SplitHalves(model(), reap.ReapMean, 2); err != nil || len(halves) != 3 {
			t.Errorf("%s: three sources give %d comparisons (%v)", file, len(halves), err)
		}
	}
	m, err := read(t, "untagged.npz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.SplitHalves(model(), reap.ReapSum, 2); err == nil || !strings.Contains(err.Error(), "not kept apart") {
		t.Errorf("one source: error %v", err)
	}
}
