package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/urfave/cli/v2"

	"ggufreap/reap"
	"ggufreap/reap/scorefile"
)

// An explanation is what plan tells of a choice beyond the plan.
type explanation struct {
	asked    bool // by a flag
	budget   *budget
	nodes    []int64 // bytes on each machine, with a budget
	scores   *reap.Explanation
	counts   []keepCountRow // with --explain
	compared *reap.Comparison
	halves   []scorefile.SplitHalf
}

// A keepCountRow says what a keep count would keep and how large its files would be.
type keepCountRow struct {
	keep  int
	mass  *reap.Explanation
	bytes int64
}

// explain gathers what --explain, --compare, --split-half and the budget flags ask for.
func (con *console) explain(c *cli.Context, s *source, ch *choice) (*explanation, error) {
	x := &explanation{asked: c.Bool("explain") || c.IsSet("compare") || c.Bool("split-half")}
	if c.IsSet("fit") || c.IsSet("fit-per-node") {
		if err := x.place(c, s, ch); err != nil {
			return nil, err
		}
	}
	x.scores = reap.Explain(s.experts, ch.scores, ch.plan.KeepCount, ch.always)
	if c.Bool("explain") {
		for _, keep := range s.experts.KeepCounts(ch.plan.KeepCount) {
			layout, err := outline(c, s, keep, ch.plan.Criterion)
			if err != nil {
				return nil, err
			}
			x.counts = append(x.counts, keepCountRow{keep, reap.Explain(s.experts, ch.scores, keep, ch.always), layout.Bytes()})
		}
	}
	if path := c.String("compare"); path != "" {
		other, err := con.readOther(c, s, ch, path)
		if err != nil {
			return nil, err
		}
		if x.compared, err = reap.Compare(s.experts, ch.scores, ch.plan, other); err != nil {
			return nil, fmt.Errorf("%s: %w", safe(path), err)
		}
	}
	if c.Bool("split-half") {
		if ch.measured == nil {
			return nil, withHint(usagef("--split-half compares measured scores"), "--from FILE brings them")
		}
		var err error
		if x.halves, err = ch.measured.SplitHalves(s.experts, ch.plan.Criterion.Name, ch.plan.KeepCount); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// place finds how the files of the plan lie on the machines of the budget.
func (x *explanation) place(c *cli.Context, s *source, ch *choice) error {
	b, err := readBudget(c)
	if err != nil {
		return err
	}
	layout, err := outline(c, s, ch.plan.KeepCount, ch.plan.Criterion)
	if err != nil {
		return err
	}
	x.budget = &b
	x.nodes, _ = b.place(layout.Shards)
	return nil
}

// readOther reads the plan to compare with: a plan file, or a score file from which as many
// experts are chosen by the same criterion, or by the first that it allows.
func (con *console) readOther(c *cli.Context, s *source, ch *choice, path string) (*reap.Plan, error) {
	plan, planErr := loadPlan(path, s, func(*reap.Plan) error { return nil })
	if planErr == nil {
		return plan, nil
	}
	m, _, err := con.readMeasurements(c.Context, path, s.experts)
	if err != nil {
		return nil, errors.Join(planErr, err)
	}
	scores, err := m.Scores(ch.plan.Criterion.Name)
	if err != nil && len(m.Criteria()) > 0 {
		scores, err = m.Scores(m.Criteria()[0])
	}
	if err != nil {
		return nil, err
	}
	other, err := reap.Choose(s.experts, scores, ch.plan.KeepCount, reap.ChooseOptions{AllowFlat: c.Bool("allow-flat")})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", safe(path), err)
	}
	return other, nil
}

// describeExplanation prints what was gathered.
func (con *console) describeExplanation(x *explanation) {
	if x.budget != nil {
		con.describeBudget(x)
	}
	con.describeDoubts(x.scores)
	if x.counts != nil {
		con.describeScores(x)
	}
	if x.compared != nil {
		con.describeComparison(x.compared)
	}
	if x.halves != nil {
		con.describeHalves(x.halves)
	}
}

func (con *console) describeBudget(x *explanation) {
	var sum int64
	for _, n := range x.nodes {
		sum += n
	}
	con.field("files", "%s", sizeText(sum))
	if x.budget.nodes == 1 {
		con.field("room", "%s", sizeText(x.budget.bytes))
	} else {
		con.field("room", "%s on each of %s", sizeText(x.budget.bytes), count(x.budget.nodes, "machine"))
		for i, n := range x.nodes {
			con.field("", "machine %d holds %s", i+1, sizeText(n))
		}
	}
	con.field("", "for files alone: the memory to run them comes on top")
}

// largeTie returns how many of a layer's experts must rank alike at a cut to be warned of.
func largeTie(experts int) int { return max(8, experts/16) }

// warnOfTies warns where a cut falls among many experts that rank alike.
func (con *console) warnOfTies(e *reap.Experts, ch *choice) {
	var worst reap.LayerExplanation
	layers := 0
	for _, l := range reap.Explain(e, ch.scores, ch.plan.KeepCount, ch.always).Layers {
		alike := l.TiesKept + l.TiesDropped
		if l.TiesDropped == 0 || alike < largeTie(e.Count) {
			continue
		}
		layers++
		if alike > worst.TiesKept+worst.TiesDropped {
			worst = l
		}
	}
	if layers > 0 {
		con.warnf("in %s the cut falls among many experts that score alike: in layer %d the lowest numbers, %s of %s, are kept, which is no evidence",
			count(layers, "layer"), worst.Block, grouped(worst.TiesKept), grouped(worst.TiesKept+worst.TiesDropped))
	}
}

// describeDoubts prints where the scores did not decide.
func (con *console) describeDoubts(x *reap.Explanation) {
	tied, zero, withoutTokens := 0, 0, 0
	for _, l := range x.Layers {
		if l.Cut == 0 && l.Next == 0 {
			zero++
		}
		if l.TiesDropped > 0 {
			tied++
		}
		withoutTokens += max(l.NeverRoutedKept, 0)
	}
	if tied > 0 {
		con.field("ties", "in %s equal scores meet at the cut, where the lower expert numbers are kept", count(tied, "layer"))
	}
	if zero > 0 {
		con.field("score 0", "in %s experts that score 0 are kept and dropped: the criterion says next to nothing of them", count(zero, "layer"))
	}
	if withoutTokens > 0 {
		con.field("no tokens", "%s kept to which no token was routed", count(withoutTokens, "expert"))
	}
}

func (con *console) describeScores(x *explanation) {
	con.field("score kept", "%s of the layers' scores on average, %s in the worst layer, %d", percent(x.scores.Mass), percent(x.scores.Worst.Mass), x.scores.Worst.Block)
	con.printf("\n")
	columns := []column{{"layer", true}, {"score kept", true}, {"cut at", true}, {"next", true}, {"ties kept", true}, {"dropped", true}, {"no tokens", true}, {"kept", true}, {"", false}}
	con.table("", columns, func(yield func([]string) bool) {
		for _, l := range x.scores.Layers {
			note := ""
			if l.Draft {
				note = "draft"
			}
			if l.Forced > 0 {
				note += fmt.Sprintf(" %d always kept", l.Forced)
			}
			if !yield([]string{
				fmt.Sprint(l.Block), percent(l.Mass), scoreText(l.Cut), scoreText(l.Next),
				grouped(l.TiesKept), grouped(l.TiesDropped), orDash(l.NeverRouted), orDash(l.NeverRoutedKept), note,
			}) {
				return
			}
		}
	})
	con.printf("\n")
	con.table("", []column{{"keep", true}, {"score kept", true}, {"worst layer", true}, {"bytes of files", true}, {"", true}}, func(yield func([]string) bool) {
		for _, row := range x.counts {
			if !yield([]string{grouped(row.keep), percent(row.mass.Mass), percent(row.mass.Worst.Mass), grouped(row.bytes), roundedSize(row.bytes)}) {
				return
			}
		}
	})
}

func (con *console) describeComparison(c *reap.Comparison) {
	con.printf("\n")
	con.field("compared", "%s of the experts are the same, where chance gives %s", percent(c.Overlap), percent(c.Chance))
	con.field("", "the other plan keeps %s of the score that the best choice of as many does", percent(c.Retention))
	con.field("", "%s, %s of them equal at the cut", differ(c.Differing, "expert"), grouped(c.Ties))
	con.printf("\n")
	con.table("", []column{{"layer", true}, {"same", true}, {"retention", true}, {"differ", true}, {"ties", true}}, func(yield func([]string) bool) {
		for _, l := range c.Layers {
			if !yield([]string{fmt.Sprint(l.Block), percent(l.Overlap), percent(l.Retention), grouped(l.Differing), grouped(l.Ties)}) {
				return
			}
		}
	})
}

func (con *console) describeHalves(halves []scorefile.SplitHalf) {
	con.printf("\n")
	con.field("split half", "each kind of text against all others: how much of the choice is the same (chance gives %s), and how much of one side's score the other side's choice keeps", percent(halves[0].Chance))
	con.printf("\n")
	con.table("", []column{{"text", false}, {"tokens", true}, {"same", true}, {"by the others", true}, {"of the others", true}}, func(yield func([]string) bool) {
		for _, h := range halves {
			tokens := "-"
			if h.Tokens > 0 {
				tokens = grouped(h.Tokens)
			}
			if !yield([]string{safe(h.Label), tokens, percent(h.Overlap), percent(h.Retention), percent(h.Reverse)}) {
				return
			}
		}
	})
}

// percent writes a share; "-" for one that does not exist. Only a whole is 100 %.
func percent(share float64) string {
	switch {
	case math.IsNaN(share):
		return "-"
	case share < 1 && share >= 0.99995:
		return "> 99.99 %"
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

// scoreText writes a score in few digits; "-" for none.
func scoreText(score float64) string {
	if math.IsNaN(score) {
		return "-"
	}
	return fmt.Sprintf("%.6g", score)
}

// orDash writes a count; "-" for one that is not known.
func orDash(n int) string {
	if n < 0 {
		return "-"
	}
	return grouped(n)
}
