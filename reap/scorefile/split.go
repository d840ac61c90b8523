package scorefile

import (
	"fmt"

	"ggufreap/reap"
)

// A SplitHalf holds the choice by one kind of text against the choice by all others: how
// far a plan depends on what the model was measured on. Kinds are domains, not samples, so
// it shows the shift between them, not noise.
type SplitHalf struct {
	Label  string
	Tokens int // 0 when the file does not say
	// Overlap is the share of experts that both choices keep, mean over the layers; Chance
	// what two blind choices would share.
	Overlap, Chance float64
	// Retention is the score by the other kinds that this kind's choice has, over that of the
	// other kinds' own choice; Reverse is the same with the sides changed.
	Retention, Reverse float64
}

// SplitHalves compares each kind of text with all others, by a criterion and a keep count.
// With two kinds, which mirror each other, there is one comparison.
func (m *Measurements) SplitHalves(e *reap.Experts, criterion string, keep int) ([]SplitHalf, error) {
	if len(m.Sources) < 2 {
		return nil, fmt.Errorf("%s: the scores were not kept apart by kind of text", m.Format)
	}
	var halves []SplitHalf
	for i, source := range m.Sources {
		if i == 1 && len(m.Sources) == 2 {
			break
		}
		h := SplitHalf{Label: source.Label, Tokens: source.Tokens}
		if err := m.splitHalf(e, criterion, keep, i, &h); err != nil {
			return nil, fmt.Errorf("source %q: %w", source.Label, err)
		}
		halves = append(halves, h)
	}
	return halves, nil
}

func (m *Measurements) splitHalf(e *reap.Experts, criterion string, keep, source int, h *SplitHalf) error {
	var scores [2]*reap.Scores
	var plans [2]*reap.Plan
	for side := range scores {
		var err error
		if scores[side], err = m.sourceScores(criterion, source, side == 1); err != nil {
			return err
		}
		// A kind of text need not reach every layer.
		if plans[side], err = reap.Choose(e, scores[side], keep, reap.ChooseOptions{AllowFlat: true}); err != nil {
			return err
		}
	}
	byOthers, err := reap.Compare(e, scores[1], plans[1], plans[0])
	if err != nil {
		return err
	}
	byThis, err := reap.Compare(e, scores[0], plans[0], plans[1])
	if err != nil {
		return err
	}
	h.Overlap, h.Chance = byOthers.Overlap, byOthers.Chance
	h.Retention, h.Reverse = byOthers.Retention, byThis.Retention
	return nil
}
