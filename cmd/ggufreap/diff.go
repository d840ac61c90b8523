package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

const diffHelp = `Compare two artifacts, or pins of them.

Usage:
  ggufreap diff [flags] A B

A and B are artifacts or pins (.json, .json.zst). Artifacts are read whole. Told
are the tensors that were added, removed, retyped, reshaped or changed, with the
experts whose slabs differ, and the metadata keys likewise, with the first place
where a long value differs; items and bytes count from 0. What does not make a
model another one is noted apart: order, sharding, split keys, the version of
the format, bytes that belong to no tensor. A pin has no metadata values, only
their digests.

Data is compared byte by byte. Where one artifact is little endian and the other
big endian, names, types and shapes are compared, and metadata by value.

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

func diffCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:               "diff",
		CustomHelpTemplate: diffHelp,
		Flags: append(progressFlags(con),
			&cli.IntFlag{Name: "workers"},
			&cli.BoolFlag{Name: "json"},
			typeFlag(),
		),
		Action: func(c *cli.Context) error { return diffAction(con, c) },
	}
}

func diffAction(con *ui.Console, c *cli.Context) error {
	if c.NArg() != 2 {
		return hint.With(args.Usagef("diff takes two artifacts or pins, got %d", c.NArg()), "ggufreap diff A B")
	}
	var sides [2]side
	for i := range sides {
		if err := sides[i].open(c, c.Args().Get(i)); err != nil {
			return err
		}
		defer sides[i].close()
	}
	for _, s := range sides {
		if s.model != nil {
			warnOf(con, s.model)
		}
	}
	if err := measure(con, c, sides[:]); err != nil {
		return err
	}
	d, err := compare(&sides[0], &sides[1])
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = con.JSON(d.document())
	} else {
		showDifference(con, d)
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

func (s *side) version() uint32 { return s.model.Files[0].Version }

// trailing returns the bytes of an artifact that stand behind the last tensor of a file.
func (s *side) trailing() int64 {
	var n int64
	for _, f := range s.model.Files {
		n += f.Trailing()
	}
	return n
}

func (s *side) close() {
	if s.model != nil {
		s.model.Close()
	}
}

// byteOrder returns the byte order of an artifact, and "" for a pin, which does not tell.
func (s *side) byteOrder() string {
	if s.model == nil {
		return ""
	}
	return byteOrder(s.model.Files[0])
}

// measure reads the artifacts among the sides whole.
func measure(con *ui.Console, c *cli.Context, sides []side) error {
	var total, before int64
	for _, s := range sides {
		if s.model != nil {
			total += s.model.FileBytes()
		}
	}
	p := con.StartProgress("diff", total)
	for i := range sides {
		s := &sides[i]
		if s.model == nil {
			continue
		}
		o := pinOptions(c, s.model)
		o.Progress = func(done, _ int64) { p.Set(before+done, total) }
		var err error
		if s.pin, err = manifest.BuildPin(c.Context, s.model, o); err != nil {
			return err
		}
		if sides[0].model != nil && sides[1].model != nil {
			s.pin.Metadata = nil // there can be many keys, and their values are compared
		}
		before += s.model.FileBytes()
	}
	p.Finish()
	return nil
}

// A difference is all that tells two artifacts apart.
type difference struct {
	a, b      *side
	tensors   []manifest.TensorChange
	padded    []string // tensors that differ in padding alone; see differsInPadding
	sameOrder bool

	// of two artifacts
	keyCount     int                  // keys that differ
	keys         []manifest.KeyChange // the first of them
	splitKeys    []string             // that differ
	sameKeyOrder bool

	// where one is a pin
	pairs []manifest.PairChange
}

func compare(a, b *side) (*difference, error) {
	d := &difference{a: a, b: b, sameOrder: manifest.SameOrder(a.pin, b.pin)}
	if err := d.compareTensors(); err != nil {
		return nil, err
	}
	if d.valuesKnown() {
		return d, d.compareMetadata()
	}
	d.pairs = manifest.ComparePairs(a.pin.Metadata, b.pin.Metadata)
	d.keyCount = len(d.pairs)
	return d, nil
}

// compareMetadata keeps no more of the keys that differ than the screen shows.
func (d *difference) compareMetadata() error {
	a, b := d.a.model.Metadata(), d.b.model.Metadata()
	d.sameKeyOrder = manifest.SameKeyOrder(a, b)
	for c, err := range manifest.CompareMetadata(a, b) {
		if err != nil {
			return err
		}
		if d.keyCount++; d.keyCount <= maxChanges {
			d.keys = append(d.keys, c)
		}
	}
	for c, err := range manifest.CompareSplitKeys(a, b) {
		if err != nil {
			return err
		}
		d.splitKeys = append(d.splitKeys, c.Key)
	}
	return nil
}

// compareTensors finds the tensors that differ. Data in another byte order has other
// bytes, which say nothing.
func (d *difference) compareTensors() error {
	for _, c := range manifest.CompareTensors(d.a.pin, d.b.pin) {
		if c.Change == manifest.Changed && !d.dataCompared() {
			continue
		}
		padding, err := d.differsInPadding(c)
		if err != nil {
			return err
		}
		if padding {
			d.padded = append(d.padded, c.Name)
		} else {
			d.tensors = append(d.tensors, c)
		}
	}
	return nil
}

// valuesKnown reports whether both sides have metadata values; a pin has their digests.
func (d *difference) valuesKnown() bool { return d.a.model != nil && d.b.model != nil }

func (d *difference) sameByteOrder() bool {
	return !d.valuesKnown() || d.a.byteOrder() == d.b.byteOrder()
}

// dataCompared reports whether the data of tensors could be compared, if there is some.
func (d *difference) dataCompared() bool {
	return d.sameByteOrder() || min(d.a.pin.Artifact.TensorBytes, d.b.pin.Artifact.TensorBytes) == 0
}

func (d *difference) sameWeights() bool { return d.dataCompared() && len(d.tensors) == 0 }

func (d *difference) sameMetadata() bool { return d.keyCount == 0 }

func (d *difference) same() bool { return d.sameWeights() && d.sameMetadata() }
