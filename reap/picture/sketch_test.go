package picture

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ggufreap/reap"
)

// TestSketchByHand draws a layer of eight experts whose heights can be read off.
func TestSketchByHand(t *testing.T) {
	e := &reap.Experts{Count: 8, Used: 1, Groups: 1, GroupsUsed: 1, Layers: []*reap.Layer{{Block: 3}}}
	c := &Choice{Experts: e, Keep: 4, Scores: &reap.Scores{Layers: map[int][]float64{3: {0, 100, 25, 1, 64, 0, 36, 4}}}}
	// roots of the shares: 1 .8 .6 .5 .2 .1 0 0
	if got := strings.Join((Sketch{Columns: 20}).Heat(c), "\n"); got != "3 █▇▅▄|▂▁" {
		t.Errorf("heat: %q", got)
	}
	if got := strings.Join((Sketch{Columns: 4, ASCII: true}).Heat(c), "\n"); got != "3 @+|:" {
		t.Errorf("heat in four columns: %q", got)
	}
	// shares of 230: 43.5, 71.3, 87.0, 97.8, 99.6 and then all
	want := `
100 %    *****
        *|
       * |
         |
 50 %    |
      *  |
         |
         |
  0 %    |
         4   8`
	if got := "\n" + strings.Join((Sketch{Columns: 8, ASCII: true}).Shares(c), "\n"); got != want {
		t.Errorf("shares:\n%s", got)
	}
}

// TestSketch wants every line to have room, and all sizes to be drawn.
func TestSketch(t *testing.T) {
	flat := large(1, 16, 8)
	flat.Scores.Layers[1] = make([]float64, 16)
	for _, c := range []*Choice{large(92, 896, 568), large(3, 8, 8), large(2, 9, 1), large(1, 5, 4), flat} {
		for _, s := range []Sketch{{Columns: 8}, {Columns: 64, ASCII: true}, {Columns: 112}} {
			heat := s.Heat(c)
			if len(heat) != len(c.Scores.Layers) {
				t.Errorf("%d lines for %d layers", len(heat), len(c.Scores.Layers))
			}
			for _, line := range append(heat, s.Shares(c)...) {
				if n := utf8.RuneCountInString(line); n > s.Columns+7 || strings.HasSuffix(line, " ") {
					t.Errorf("%d columns in %d: %q", n, s.Columns, line)
				}
				if s.ASCII && len(line) != utf8.RuneCountInString(line) {
					t.Errorf("not ASCII: %q", line)
				}
			}
		}
	}
}
