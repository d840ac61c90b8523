package main

import (
	"math"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/reap"
)

// explanationDocument is the --json output of plan with --explain, --compare or
// --split-half. Shares are from 0 to 1; a number that does not exist is null.
type explanationDocument struct {
	Schema     string             `json:"schema"`
	Standing   string             `json:"standing"` // of the architecture\'s pruning
	KeepCount  int                `json:"keep_count"`
	Criterion  criterionOutput    `json:"criterion"`
	Mass       *massOutput        `json:"mass"`
	Layers     []layerExplanation `json:"layers"`
	KeepCounts []keepCountOutput  `json:"keep_counts"`
	Compared   *comparisonOutput  `json:"compared"`
	SplitHalf  []splitHalfOutput  `json:"split_half"`
}

type criterionOutput struct {
	Name     string `json:"name"`
	Evidence string `json:"evidence"`
}

type massOutput struct {
	Mean       *float64 `json:"mean"`
	Worst      *float64 `json:"worst"`
	WorstLayer int      `json:"worst_layer"`
}

type layerExplanation struct {
	Layer           int      `json:"layer"`
	Draft           bool     `json:"draft"`
	Mass            *float64 `json:"mass"`
	Cut             *float64 `json:"cut"`
	Next            *float64 `json:"next"`
	TiesKept        int      `json:"ties_kept"`
	TiesDropped     int      `json:"ties_dropped"`
	NeverRouted     *int     `json:"never_routed"`
	NeverRoutedKept *int     `json:"never_routed_kept"`
	AlwaysKept      int      `json:"always_kept"`
}

type keepCountOutput struct {
	Keep      int        `json:"keep"`
	Mass      massOutput `json:"mass"`
	FileBytes int64      `json:"file_bytes"`
}

type comparisonOutput struct {
	Overlap   *float64          `json:"overlap"`
	Chance    *float64          `json:"chance"`
	Retention *float64          `json:"retention"`
	Differing int               `json:"differing"`
	Ties      int               `json:"ties"`
	Layers    []layerComparison `json:"layers"`
}

type layerComparison struct {
	Layer     int      `json:"layer"`
	Overlap   *float64 `json:"overlap"`
	Retention *float64 `json:"retention"`
	Differing int      `json:"differing"`
	Ties      int      `json:"ties"`
}

type splitHalfOutput struct {
	Label     document.Text `json:"label"`
	Tokens    int           `json:"tokens"` // 0 when not known
	Overlap   *float64      `json:"overlap"`
	Chance    *float64      `json:"chance"`
	Retention *float64      `json:"retention"`
	Reverse   *float64      `json:"reverse"`
}

func (x *explanation) document(ch *choice) explanationDocument {
	info, _ := reap.FindCriterion(ch.plan.Criterion.Name)
	d := explanationDocument{
		Schema:    "ggufreap/explanation/v1",
		Standing:  string(reap.StandingOf(ch.plan.Source.Architecture)),
		KeepCount: ch.plan.KeepCount,
		Criterion: criterionOutput{info.Name, string(info.Evidence)},
	}
	if x.counts != nil {
		mass := massOf(x.scores)
		d.Mass = &mass
		for _, l := range x.scores.Layers {
			d.Layers = append(d.Layers, layerExplanation{
				Layer: l.Block, Draft: l.Draft, Mass: orNull(l.Mass), Cut: orNull(l.Cut), Next: orNull(l.Next),
				TiesKept: l.TiesKept, TiesDropped: l.TiesDropped,
				NeverRouted: countOrNull(l.NeverRouted), NeverRoutedKept: countOrNull(l.NeverRoutedKept), AlwaysKept: l.Forced,
			})
		}
	}
	for _, row := range x.counts {
		d.KeepCounts = append(d.KeepCounts, keepCountOutput{row.keep, massOf(row.mass), row.bytes})
	}
	if c := x.compared; c != nil {
		d.Compared = &comparisonOutput{
			Overlap: orNull(c.Overlap), Chance: orNull(c.Chance), Retention: orNull(c.Retention), Differing: c.Differing, Ties: c.Ties,
		}
		for _, l := range c.Layers {
			d.Compared.Layers = append(d.Compared.Layers, layerComparison{l.Block, orNull(l.Overlap), orNull(l.Retention), l.Differing, l.Ties})
		}
	}
	for _, h := range x.halves {
		d.SplitHalf = append(d.SplitHalf, splitHalfOutput{
			document.Text(h.Label), h.Tokens, orNull(h.Overlap), orNull(h.Chance), orNull(h.Retention), orNull(h.Reverse),
		})
	}
	return d
}

func massOf(x *reap.Explanation) massOutput {
	return massOutput{orNull(x.Mass), orNull(x.Worst.Mass), x.Worst.Block}
}

// orNull is nil for a number that does not exist.
func orNull(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// countOrNull is nil for a count that is not known.
func countOrNull(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}
