package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// writeDerivative writes the release, and the pin of its source where that is wanted.
func writeDerivative(con *ui.Console, c *cli.Context, d *derivative, r *release.Release) error {
	switch path := c.String("pin-source"); {
	case d.source.pin != nil:
		if err := d.bindSource(r); err != nil {
			return err
		}
	case path != "":
		// An interrupted run may have come to write it; then it must turn out the same.
		if err := files.CheckOutput(path, c.Bool("force") || c.Bool("resume"), inputs(c, d.source.Model)); err != nil {
			return err
		}
		if err := files.CheckApart(path, r.Folder); err != nil {
			return err
		}
		want, err := digestFlag(c, "source-digest")
		if err != nil {
			return err
		}
		options := pinOptions(c, d.source.Model)
		options.Declared = statedOf(d.source.Model) // flags for the card are about the release
		r.SourcePin = &release.SourcePin{Path: path, Force: c.Bool("force"), Program: programVersion(), Digest: want, Options: options, Derivation: d.derivation}
	}
	return release.Write(c.Context, con, r, writeOptions(c))
}

// derivation says what of a pinned source each tensor of the release is.
func (d *derivative) derivation(source *manifest.Pin) *manifest.Derivation {
	keep := map[string][]int{}
	tables := map[string]bool{}
	for layer, t := range d.source.experts.Tensors() {
		if t.Role == reap.IDTable {
			tables[t.Name] = true
		} else {
			keep[t.Name] = d.plan.Layers[layer.Block]
		}
	}
	derivation := manifest.NewDerivation(source)
	derivation.Keep = func(tensor string) []int { return keep[tensor] }
	derivation.Rewritten = func(tensor string) bool { return tables[tensor] }
	derivation.File = func(tensor string) string { return text.Safe(d.source.Tensor(tensor).File().Name) }
	return derivation
}

// bindSource has what is written held against the pin of the source, if there is one.
func (d *derivative) bindSource(r *release.Release) error {
	if d.source.pin == nil {
		return nil
	}
	r.Derivation = d.derivation(d.source.pin)
	return d.checkTables(d.source.pin)
}

// checkTables holds the source's tables of expert ids against its pin. They are written
// anew, so that what passes into the release cannot be compared.
func (d *derivative) checkTables(source *manifest.Pin) error {
	pinned := map[string]manifest.Sum{}
	for _, t := range source.Tensors {
		pinned[t.Name] = t.BLAKE3
	}
	for _, t := range d.source.experts.Tensors() {
		if t.Role != reap.IDTable {
			continue
		}
		got, err := manifest.DigestOf(tensorBytes{t.Reader()})
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", text.Safe(t.File().Name), t.Name, err)
		}
		if want := pinned[t.Name]; got.Sum != want {
			return fmt.Errorf("%s: tensor %q: blake3 is %s, the source's pin says %s", text.Safe(t.File().Name), t.Name, got.Sum, want)
		}
	}
	return nil
}

// tensorBytes are the data of a tensor, to be hashed.
type tensorBytes struct{ *io.SectionReader }

func (d tensorBytes) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, d.SectionReader) }

// sourceBytes says what vouches for the source.
func sourceBytes(c *cli.Context, r *release.Release, d *derivative) string {
	switch {
	case d.source.pin != nil && r.Pin == nil:
		return "held against the pin when they are read: pin digest " + d.source.pinned()
	case d.source.pin != nil:
		return "every one that was read is the pinned one: pin digest " + d.source.pinned()
	case c.String("pin-source") != "" && r.Pin == nil:
		return "pinned as they are read, in " + text.Safe(c.String("pin-source"))
	case r.SourcePin != nil:
		return fmt.Sprintf("pinned as they were read, in %s: pin digest %s", text.Safe(r.SourcePin.Path), r.SourcePin.Pin.PinDigest)
	}
	return "not pinned: nothing shows that the source is what its name says"
}

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
