package reap

import "math"

// Coverage says how much of what was measured the kept experts have, and on how much text that
// was.
type Coverage struct {
	Tokens int // 0 where the score file does not say
	Texts  []CoveredText
	// Kept is the mean of the layers' shares of the score that the kept experts have, from 0
	// to 1 in steps of a millionth; Worst is the least, in WorstLayer.
	Kept, Worst float64
	WorstLayer  int
	// NeverRouted counts experts without tokens in all layers, NeverRoutedKept those of them
	// that are kept; -1 where tokens were not counted.
	NeverRouted, NeverRoutedKept int
}

// A CoveredText is a kind of text that was measured on.
type CoveredText struct {
	Label  string
	Tokens int // 0 where the score file does not say
}

// Coverage returns what an explanation tells of a choice by measured scores, nil where there is
// no score to have a share of. Tokens and texts are for the caller to add.
func (x *Explanation) Coverage() *Coverage {
	if math.IsNaN(x.Mass) {
		return nil
	}
	c := &Coverage{Kept: millionths(x.Mass), Worst: millionths(x.Worst.Mass), WorstLayer: x.Worst.Block}
	for _, l := range x.Layers {
		if l.NeverRouted < 0 {
			c.NeverRouted, c.NeverRoutedKept = -1, -1
			break
		}
		c.NeverRouted += l.NeverRouted
		c.NeverRoutedKept += l.NeverRoutedKept
	}
	return c
}

// millionths cuts a share down, so that only a whole is 1.
func millionths(share float64) float64 { return math.Floor(share*1e6) / 1e6 }
