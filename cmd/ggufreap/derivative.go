package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// A derivative is a pruned model that is settled to the last byte, and not written yet.
type derivative struct {
	source   *source
	plan     *reap.Plan
	document []byte          // the plan's
	digest   manifest.Digest // likewise
	layout   *gguf.Layout
	stem     string
}

// newDerivative reads or makes the plan and lays its output out.
func newDerivative(con *ui.Console, c *cli.Context, s *source) (*derivative, error) {
	plan, err := planFor(con, c, s)
	if err != nil {
		return nil, err
	}
	d := &derivative{source: s, plan: plan}
	if d.stem, err = stemFlag(c, derivedStem(s.Name, plan.KeepCount)); err != nil {
		return nil, err
	}
	if d.document, err = planfile.Encode(plan); err != nil {
		return nil, err
	}
	identity, err := planfile.Identity(d.document, plan)
	if err != nil {
		return nil, err
	}
	d.digest = manifest.DigestBytes(identity)
	contents, err := derive(c, s, plan, provenanceOf(c, s, plan, d.digest))
	if err != nil {
		return nil, err
	}
	split, err := pruneSplit(c, s, plan.Shards)
	if err != nil {
		return nil, err
	}
	if d.layout, err = gguf.NewLayout(contents, split); err != nil {
		return nil, s.named(err)
	}
	return d, s.named(manifest.CheckNames(d.layout))
}

func planFor(con *ui.Console, c *cli.Context, s *source) (*reap.Plan, error) {
	path := c.String("plan")
	switch {
	case path == "":
		ch, err := choose(con, c, s)
		if err != nil {
			return nil, err
		}
		return ch.plan, nil
	case choosing(c):
		return nil, args.Usagef("--plan and the choosing flags contradict each other, give one or the other")
	}
	plan, err := loadPlan(c, path, s, func(plan *reap.Plan) error { return applyRules(c, plan, s) })
	if err != nil {
		return nil, err
	}
	s.restate(con, path, plan)
	for _, note := range plan.Notes {
		con.Warnf("%s: %s", text.Safe(path), note)
	}
	return plan, nil
}

// provenanceOf is what a derivative says of where it comes from, if it may.
func provenanceOf(c *cli.Context, s *source, plan *reap.Plan, digest manifest.Digest) reap.Provenance {
	if c.Bool("no-provenance-keys") {
		return reap.Provenance{}
	}
	return reap.Provenance{Plan: plan, PlanDigest: digest.String(), SourceWeights: s.weights(), SourcePin: s.pinned()}
}

// derive returns the contents of the model that a plan makes of a source.
func derive(c *cli.Context, s *source, plan *reap.Plan, provenance reap.Provenance) (gguf.Contents, error) {
	views, err := reap.Views(c.Context, s.Model, s.experts, plan)
	if err != nil {
		return gguf.Contents{}, s.named(err)
	}
	md, err := derivedMetadata(c, s, plan, provenance)
	if err != nil {
		return gguf.Contents{}, s.named(err)
	}
	return gguf.Contents{Version: s.Files[0].Version, Metadata: md, Views: views}, nil
}

// derivedMetadata returns the metadata of the model that a plan makes of a source, with what
// flags change of it.
func derivedMetadata(c *cli.Context, s *source, plan *reap.Plan, provenance reap.Provenance) (*gguf.Metadata, error) {
	md, err := reap.Metadata(s.Model, s.experts, plan, provenance, c.StringSlice("copy-key")...)
	if err != nil {
		return nil, err
	}
	if err := addLineage(c, s, md); err != nil {
		return nil, err
	}
	md, _, err = applyChanges(c, md, labels(c, s, plan.KeepCount)...)
	return md, err
}

// derivedStem names a derivative after its source: "X" that keeps 568 is "X-REAP568".
func derivedStem(name string, keep int) string {
	return fmt.Sprintf("%s-REAP%d", name, keep)
}

// pruneSplit settles the cut: what the flags say, else the plan, else the preset that makes
// one, else the source's.
func pruneSplit(c *cli.Context, s *source, planned int) (gguf.Split, error) {
	split, given, err := readSplit(c)
	if err != nil || given {
		return split, err
	}
	if planned > 0 {
		return gguf.Split{Shards: planned}, nil
	}
	if name := c.String("preset"); name != "" {
		preset, err := reap.FindPreset(name)
		return gguf.Split{Shards: preset.Shards}, err
	}
	return gguf.Split{Shards: s.Shards}, nil
}

// release is what prune writes.
func (d *derivative) release(c *cli.Context) *release.Release {
	standing := string(d.source.standing())
	return &release.Release{
		Task:      "prune",
		Standing:  &standing,
		Folder:    c.String("output"),
		Stem:      d.stem,
		Layout:    d.layout,
		Source:    d.source.Model,
		Inputs:    typedInputs(c),
		Slabs:     slabCount(d.source.experts, d.plan.KeepCount),
		IDs:       idTables(d.source.Model, d.source.experts, d.plan.Layers),
		Documents: []release.File{{Name: release.PlanName, Data: d.document}},
		Origin: []stage.Fact{
			{Name: "plan", Digest: d.digest},
			{Name: "source's structure digest", Digest: d.source.structure},
		},
	}
}
