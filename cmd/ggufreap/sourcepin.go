package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// A sourcePin is the pin of a release's source that is taken while the release is written.
type sourcePin struct {
	path  string
	force bool
	// derivation says what the release is made of, given the pin.
	derivation func(source *manifest.Pin) *manifest.Derivation

	recorder *manifest.Recorder
	pin      *manifest.Pin // once it is taken
}

// writeDerivative writes the release, and the pin of its source where that is wanted.
func writeDerivative(con *ui.Console, c *cli.Context, d *derivative, r *release) error {
	var err error
	switch path := c.String("pin-source"); {
	case d.source.pin != nil:
		r.derivation = d.derivation(d.source.pin)
		if err := d.checkTables(d.source.pin); err != nil {
			return err
		}
	case path != "":
		// An interrupted run may have come to write it; then it must turn out the same.
		if err := files.CheckOutput(path, c.Bool("force") || c.Bool("resume"), d.source.Paths()); err != nil {
			return err
		}
		r.sourcePin = &sourcePin{path: path, force: c.Bool("force"), derivation: d.derivation}
	}
	r.pin, err = writeRelease(con, c, r)
	return err
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

// record makes the source's bytes pass a recorder on their way into the release.
func (r *release) record(c *cli.Context, p *progress.Task) error {
	o := pinOptions(c, r.source)
	o.Progress = p.Set
	var err error
	if r.sourcePin.recorder, err = manifest.NewRecorder(c.Context, r.source, o); err != nil {
		return err
	}
	for _, shard := range r.layout.Shards {
		shard.Views = r.sourcePin.recorder.Views(shard.Views)
	}
	return nil
}

// save completes the pin of the source, holds the release against it, since some bytes
// may have been read twice, and writes it.
func (s *sourcePin) save(ctx context.Context, release *manifest.Pin, sources []string) error {
	pin, err := s.recorder.Finish(ctx)
	if err != nil {
		return err
	}
	if err := s.derivation(pin).CheckAll(release); err != nil {
		return fmt.Errorf("the source was not the same when it was read again: %w", err)
	}
	s.pin = pin
	_, err = savePin(s.path, pin, s.force, sources)
	return err
}

// sourceBytes says what vouches for the source.
func sourceBytes(c *cli.Context, r *release, d *derivative) string {
	switch {
	case d.source.pin != nil && r.pin == nil:
		return "held against the pin when they are read: weights digest " + d.source.weights()
	case d.source.pin != nil:
		return "every one that was read is the pinned one: weights digest " + d.source.weights()
	case c.String("pin-source") != "" && r.pin == nil:
		return "pinned as they are read, in " + text.Safe(c.String("pin-source"))
	case r.sourcePin != nil:
		return fmt.Sprintf("pinned as they were read, in %s: weights digest %s", text.Safe(r.sourcePin.path), r.sourcePin.pin.WeightsDigest)
	}
	return "not pinned: nothing vouches that the source is what its name says"
}
