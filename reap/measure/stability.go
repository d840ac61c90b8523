package measure

import (
	"ggufreap/reap"
	"ggufreap/reap/scorefile"
)

// A Stability says how far two halves of what was measured agree: every other chunk is of the
// other half.
type Stability struct {
	Keep int
	// Overlap is the share of experts that both halves keep, mean over the layers; Chance what
	// two blind choices would share.
	Overlap, Chance float64
	// Retention is the score by one half that the other half's choice has, over that of its own
	// choice, the mean of both directions.
	Retention float64
}

// Stability holds the keep lists that the two halves give, by reap-mean and for so many
// experts, against each other. It reports false before both halves have measured anything.
func (r *Run) Stability(keep int) (Stability, bool, error) {
	s := Stability{Keep: keep}
	var scores [2]*reap.Scores
	var plans [2]*reap.Plan
	for half := range 2 {
		var sources []scorefile.Source
		var tokens uint64
		for i, kind := range r.Kinds {
			sums := r.sums[i][half]
			tokens += sums.Tokens
			sources = append(sources, scorefile.Source{Weight: kind.Weight, Layers: layers(sums)})
		}
		if tokens == 0 {
			return s, false, nil
		}
		m := &scorefile.Measurements{Format: "half", Layers: scorefile.Weighted(sources)}
		var err error
		if scores[half], err = m.Scores(reap.ReapMean); err != nil {
			return s, false, err
		}
		scores[half].FillDraft(r.experts, nil)
		if plans[half], err = reap.Choose(r.experts, scores[half], keep, reap.ChooseOptions{AllowFlat: true}); err != nil {
			return s, false, err
		}
	}
	for half := range 2 {
		c, err := reap.Compare(r.experts, scores[half], plans[half], plans[1-half])
		if err != nil {
			return s, false, err
		}
		s.Overlap, s.Chance = c.Overlap, c.Chance
		s.Retention += c.Retention / 2
	}
	return s, true, nil
}
