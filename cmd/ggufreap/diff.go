package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
)

const diffHelp = `Compare two artifacts, or pins of them.

Usage:
  ggufreap diff [flags] A B

A and B are artifacts or pins (.json, .json.zst). Artifacts are read whole. Told
are the tensors that were added, removed, retyped, reshaped or changed, with the
experts whose slabs differ, and the metadata keys likewise. Order, sharding and
split keys do not make a model another one; they are noted apart. A pin has no
metadata values, only their digests.

Flags:
      --workers N        files read at once (two for each processor)
      --json             print a JSON document
      --type ID=B/E      teach a type: B bytes store E elements (repeatable)
` + progressHelp + `  -h, --help             show this text

Exit codes:
  0  same weights and same metadata
  1  they differ
  2  the comparison could not be carried out

Examples:
  ggufreap diff K3.gguf K3-00001-of-00009.gguf
  ggufreap diff K3.pin.json.zst K3-00001-of-00009.gguf
`

func diffCommand(con *console) *cli.Command {
	return &cli.Command{
		Name:               "diff",
		CustomHelpTemplate: diffHelp,
		Flags: append(con.progressFlags(),
			&cli.IntFlag{Name: "workers"},
			&cli.BoolFlag{Name: "json"},
			typeFlag(),
		),
		Action: func(c *cli.Context) error { return diffAction(con, c) },
	}
}

func diffAction(con *console, c *cli.Context) error {
	if c.NArg() != 2 {
		return withHint(usagef("diff takes two artifacts or pins, got %d", c.NArg()), "ggufreap diff A B")
	}
	var sides [2]side
	for i := range sides {
		if err := sides[i].open(c, c.Args().Get(i)); err != nil {
			return err
		}
		defer sides[i].close()
	}
	if err := con.measure(c, sides[:]); err != nil {
		return err
	}
	d, err := compare(&sides[0], &sides[1])
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = con.json(d.document())
	} else {
		con.showDifference(d)
	}
	if err == nil && !d.same() {
		err = errDiffers
	}
	return err
}

// A side is one of the two things that are compared.
type side struct {
	path  string
	model *gguf.Model // nil for a pin
	pin   *manifest.Pin
}

func (s *side) open(c *cli.Context, path string) error {
	s.path = path
	var err error
	if isPinName(path) {
		s.pin, err = manifest.ReadPin(path)
		return err
	}
	if s.model, err = openPaths(c, path); err != nil {
		return err
	}
	return s.model.Err()
}

func isPinName(path string) bool {
	return strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".zst")
}

func (s *side) close() {
	if s.model != nil {
		s.model.Close()
	}
}

// measure reads the artifacts among the sides whole.
func (con *console) measure(c *cli.Context, sides []side) error {
	var total, before int64
	for _, s := range sides {
		if s.model != nil {
			total += s.model.FileBytes()
		}
	}
	p := con.startProgress("diff", total)
	for i := range sides {
		s := &sides[i]
		if s.model == nil {
			continue
		}
		experts, _ := reap.FindExperts(s.model)
		pin, err := manifest.BuildPin(c.Context, s.model, manifest.BuildOptions{
			Slabs:    routedSlabs(experts),
			Workers:  c.Int("workers"),
			Progress: func(done, _ int64) { p.set(before+done, total) },
		})
		if err != nil {
			return err
		}
		s.pin = pin
		before += s.model.FileBytes()
	}
	p.finish()
	return nil
}

// A difference is all that tells two artifacts apart.
type difference struct {
	a, b      *side
	tensors   []manifest.TensorChange
	keys      []manifest.KeyChange // with values, when both sides are artifacts
	pairs     []manifest.PairChange
	sameOrder bool
}

func compare(a, b *side) (*difference, error) {
	d := &difference{a: a, b: b, tensors: manifest.CompareTensors(a.pin, b.pin), sameOrder: manifest.SameOrder(a.pin, b.pin),
		pairs: manifest.ComparePairs(a.pin.Metadata, b.pin.Metadata)}
	if !d.valuesKnown() {
		return d, nil
	}
	var err error
	d.keys, err = manifest.CompareMetadata(a.model.Metadata(), b.model.Metadata())
	return d, err
}

// valuesKnown reports whether both sides have metadata values; a pin has their digests.
func (d *difference) valuesKnown() bool { return d.a.model != nil && d.b.model != nil }

func (d *difference) sameWeights() bool { return d.a.pin.WeightsDigest == d.b.pin.WeightsDigest }

func (d *difference) sameMetadata() bool { return d.a.pin.MetadataDigest == d.b.pin.MetadataDigest }

func (d *difference) same() bool { return d.sameWeights() && d.sameMetadata() }
