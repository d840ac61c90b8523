package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/reap"
)

// ruleFlags are the choices that neither scores nor lists make.
func ruleFlags() []cli.Flag {
	return []cli.Flag{
		args.OneOf(&cli.StringFlag{Name: "draft-layers",
			Usage: "`RULE`: how to choose in draft layers for which --from has no scores: router-mass or router-norm rank them by their routers, as-last-layer keeps what the last layer before them keeps (with --plan too)"},
			reap.DraftMass, reap.DraftNorm, reap.DraftAsLast),
		args.OneOf(&cli.StringFlag{Name: "remap-dropped",
			Usage: "`nearest-kept`: where a table names the experts of a token (deepseek4), put the kept expert with the most similar router row in the place of a dropped one"},
			reap.NearestKept),
		&cli.StringSliceFlag{Name: "copy-key", Usage: "`KEY`: copy a metadata array that has an entry for each expert as it is (repeatable)"},
		&cli.StringSliceFlag{Name: "copy-tensor", Usage: "`NAME`: copy a tensor of unknown role that has the expert count among its dims as it is (repeatable)"},
		&cli.BoolFlag{Name: "allow-incomplete", Usage: "go on with a model that llama.cpp does not load, as its headers tell; the plan says so"},
	}
}

// incompleteRule is the rule of --allow-incomplete, where the source needs it.
func incompleteRule(c *cli.Context, s *source) string {
	if c.Bool("allow-incomplete") && len(s.unloadable()) > 0 {
		return reap.IncompleteAllowed
	}
	return ""
}

// applyRules adds the rules of the flags to a plan that was read.
func applyRules(c *cli.Context, plan *reap.Plan, s *source) error {
	if dropped := c.String("remap-dropped"); dropped != "" {
		plan.Rules.DroppedIDs = dropped
	}
	plan.Rules.Incomplete = incompleteRule(c, s)
	switch rule := c.String("draft-layers"); rule {
	case "":
	case reap.DraftAsLast:
		plan.FillDraft(s.experts)
	default:
		return args.Usagef("--draft-layers is %q, want %s with --plan", rule, reap.DraftAsLast)
	}
	return nil
}
