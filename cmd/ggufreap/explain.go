package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
	"ggufreap/reap/picture"
	"ggufreap/reap/scorefile"
)

// An explanation is what plan tells of a choice beyond the plan.
type explanation struct {
	asked    bool // by a flag
	budget   *budget
	nodes    []int64 // bytes on each machine, with a budget
	scores   *reap.Explanation
	counts   []keepCountRow  // with --explain
	choice   *picture.Choice // likewise
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
func explain(con *ui.Console, c *cli.Context, s *source, ch *choice) (*explanation, error) {
	x := &explanation{asked: c.Bool("explain") || c.IsSet("compare") || c.Bool("split-half")}
	if c.IsSet("fit") || c.IsSet("fit-per-node") {
		if err := x.place(c, s, ch); err != nil {
			return nil, err
		}
	}
	x.scores = reap.Explain(s.experts, ch.scores, ch.plan.KeepCount, ch.always)
	if c.Bool("explain") {
		x.choice = &picture.Choice{Experts: s.experts, Scores: ch.scores, Always: ch.always, Keep: ch.plan.KeepCount}
		for _, keep := range s.experts.KeepCounts(ch.plan.KeepCount) {
			layout, err := outline(c, s, keep, ch.plan.Criterion)
			if err != nil {
				return nil, err
			}
			x.counts = append(x.counts, keepCountRow{keep, reap.Explain(s.experts, ch.scores, keep, ch.always), layout.Bytes()})
		}
	}
	if path := c.String("compare"); path != "" {
		other, err := readOther(con, c, s, ch, path)
		if err != nil {
			return nil, err
		}
		if x.compared, err = reap.Compare(s.experts, ch.scores, ch.plan, other); err != nil {
			return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
		}
	}
	if c.Bool("split-half") {
		if ch.measured == nil {
			return nil, hint.With(args.Usagef("--split-half compares measured scores"), "--from FILE brings them")
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
func readOther(con *ui.Console, c *cli.Context, s *source, ch *choice, path string) (*reap.Plan, error) {
	plan, planErr := loadPlan(c, path, s, func(*reap.Plan) error { return nil })
	if planErr == nil {
		return plan, nil
	}
	m, _, err := readMeasurements(c.Context, con, path, s.experts)
	if err != nil {
		return nil, filekind.ExplainFile(errors.Join(planErr, err), path, filekind.Plan, filekind.Scores)
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
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return other, nil
}

// describeExplanation prints what was gathered.
func describeExplanation(con *ui.Console, x *explanation) {
	if x.budget != nil {
		describeBudget(con, x)
	}
	describeDoubts(con, x.scores)
	if x.counts != nil {
		describeScores(con, x)
		sketchScores(con, x.choice)
	}
	if x.compared != nil {
		describeComparison(con, x.compared)
	}
	if x.halves != nil {
		describeHalves(con, x.halves)
	}
}

func describeBudget(con *ui.Console, x *explanation) {
	var sum int64
	for _, n := range x.nodes {
		sum += n
	}
	con.Field("files", "%s", text.Size(sum))
	if x.budget.nodes == 1 {
		con.Field("room", "%s", text.Size(x.budget.bytes))
	} else {
		con.Field("room", "%s on each of %s", text.Size(x.budget.bytes), text.Count(x.budget.nodes, "machine"))
		for i, n := range x.nodes {
			con.Field("", "machine %d holds %s", i+1, text.Size(n))
		}
	}
	con.Field("", "for files alone: the memory to run them comes on top")
}

// largeTie returns how many of a layer's experts must rank alike at a cut to be warned of.
func largeTie(experts int) int { return max(8, experts/16) }

// warnOfTies warns where a cut falls among many experts that rank alike.
func warnOfTies(con *ui.Console, e *reap.Experts, ch *choice) {
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
		con.Warnf("in %s the cut falls among many experts that score alike: in layer %d the lowest numbers, %s of %s, are kept, which is no evidence",
			text.Count(layers, "layer"), worst.Block, text.Grouped(worst.TiesKept), text.Grouped(worst.TiesKept+worst.TiesDropped))
	}
}

// describeDoubts prints where the scores did not decide.
func describeDoubts(con *ui.Console, x *reap.Explanation) {
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
		con.Field("ties", "in %s equal scores meet at the cut, where the lower expert numbers are kept", text.Count(tied, "layer"))
	}
	if zero > 0 {
		con.Field("score 0", "in %s the cut falls among experts with score 0; the choice between them is nearly arbitrary", text.Count(zero, "layer"))
	}
	if withoutTokens > 0 {
		con.Field("no tokens", "%s kept to which no token was routed", text.Count(withoutTokens, "expert"))
	}
}

func describeScores(con *ui.Console, x *explanation) {
	con.Field("score kept", "%s of the layers' scores on average, %s in the worst layer, %d", percent(x.scores.Mass), percent(x.scores.Worst.Mass), x.scores.Worst.Block)
	con.Printf("\n")
	columns := []table.Column{table.Right("layer"), table.Right("score kept"), table.Right("cut at"), table.Right("next"), table.Right("ties kept"), table.Right("ties cut"), table.Right("no tokens"), table.Right("those kept"), table.Left("")}
	con.Table("", columns, func(yield func([]string) bool) {
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
				text.Grouped(l.TiesKept), text.Grouped(l.TiesDropped), orDash(l.NeverRouted), orDash(l.NeverRoutedKept), note,
			}) {
				return
			}
		}
	})
	con.Printf("\n")
	con.Table("", []table.Column{table.Right("keep"), table.Right("score kept"), table.Right("worst layer"), table.Right("bytes of files"), table.Right("")}, func(yield func([]string) bool) {
		for _, row := range x.counts {
			if !yield([]string{text.Grouped(row.keep), percent(row.mass.Mass), percent(row.mass.Worst.Mass), text.Grouped(row.bytes), text.RoundedSize(row.bytes)}) {
				return
			}
		}
	})
}

// sketchScores draws the scores and the shares that keep counts keep, as small as they are
// useful.
func sketchScores(con *ui.Console, c *picture.Choice) {
	s := picture.Sketch{Columns: 64, ASCII: !con.ShowsUTF8()}
	if con.Width > 0 {
		s.Columns = min(max(con.Width-8, 16), 112)
	}
	con.Printf("\n")
	con.Paragraph(ui.Dim, "each layer's experts, kept | dropped, both from best to worst, by their scores beside the layer's best:")
	for _, line := range s.Heat(c) {
		con.Printf("%s\n", line)
	}
	con.Printf("\n")
	con.Paragraph(ui.Dim, "score kept, on average and below it in the worst layer, by how many experts are kept:")
	for _, line := range s.Shares(c) {
		con.Printf("%s\n", line)
	}
}

func describeComparison(con *ui.Console, c *reap.Comparison) {
	con.Printf("\n")
	con.Field("compared", "%s of the experts are the same, where chance gives %s", percent(c.Overlap), percent(c.Chance))
	con.Field("", "the other plan keeps %s of the score that the best choice of as many does", percent(c.Retention))
	con.Field("", "%s, %s of them equal at the cut", text.Differ(c.Differing, "expert"), text.Grouped(c.Ties))
	con.Printf("\n")
	con.Table("", []table.Column{table.Right("layer"), table.Right("same"), table.Right("retention"), table.Right("differ"), table.Right("ties")}, func(yield func([]string) bool) {
		for _, l := range c.Layers {
			if !yield([]string{fmt.Sprint(l.Block), percent(l.Overlap), percent(l.Retention), text.Grouped(l.Differing), text.Grouped(l.Ties)}) {
				return
			}
		}
	})
}

func describeHalves(con *ui.Console, halves []scorefile.SplitHalf) {
	con.Printf("\n")
	con.Field("split half", "each kind of text against all others: how much of the choice is the same (chance gives %s), and how much of one side's score the other side's choice keeps", percent(halves[0].Chance))
	con.Printf("\n")
	con.Table("", []table.Column{table.Left("text"), table.Right("tokens"), table.Right("same"), table.Right("by the others"), table.Right("of the others")}, func(yield func([]string) bool) {
		for _, h := range halves {
			tokens := "-"
			if h.Tokens > 0 {
				tokens = text.Grouped(h.Tokens)
			}
			if !yield([]string{text.Safe(h.Label), tokens, percent(h.Overlap), percent(h.Retention), percent(h.Reverse)}) {
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
	return text.Grouped(n)
}
