package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/reap"
)

// rulesHelp describes the flags of ruleFlags.
const rulesHelp = `      --draft-layers RULE
                         rank draft layers that FILE does not score by
                         router-mass or router-norm, or as-last-layer: as the
                         last layer before them, in a plan's lists too
      --remap-dropped nearest-kept
                         where a table names the experts of a token (deepseek4),
                         replace a dropped one by the kept expert with the most
                         alike router row
      --copy-key KEY     copy a metadata array that has an entry for each expert
                         as it is (repeatable)
`

// ruleFlags are the choices that neither scores nor lists make.
func ruleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "draft-layers"},
		&cli.StringFlag{Name: "remap-dropped"},
		&cli.StringSliceFlag{Name: "copy-key"},
	}
}

// droppedRule returns the rule for ids of dropped experts.
func droppedRule(c *cli.Context) (string, error) {
	rule := c.String("remap-dropped")
	if rule != "" && rule != reap.NearestKept {
		return "", args.Usagef("--remap-dropped is %q, want %s", rule, reap.NearestKept)
	}
	return rule, nil
}

// applyRules adds the rules of the flags to a plan that was read.
func applyRules(c *cli.Context, plan *reap.Plan, e *reap.Experts) error {
	dropped, err := droppedRule(c)
	if err != nil {
		return err
	}
	if dropped != "" {
		plan.Rules.DroppedIDs = dropped
	}
	switch rule := c.String("draft-layers"); rule {
	case "":
	case reap.DraftAsLast:
		plan.FillDraft(e)
	default:
		return args.Usagef("--draft-layers is %q, want %s with --plan", rule, reap.DraftAsLast)
	}
	return nil
}
