package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
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
