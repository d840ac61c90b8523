package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/evidence"
)

// The files that a release has for those who download it.
const (
	cardName    = "README.md"
	licenseName = "LICENSE"
)

// publishFlags say what a release has beside its model, plan and pin.
func publishFlags() []cli.Flag {
	return args.In("What to publish with it", slices.Concat([]cli.Flag{
		&cli.BoolFlag{Name: "card", Usage: "write a model card, " + cardName},
		&cli.StringFlag{Name: "license-file", Usage: "`FILE`: put its text in as " + licenseName},
		&cli.BoolFlag{Name: "no-source-pin", Usage: "leave out the source's pin, by which verify proves the release"},
	}, factFlags())...)
}

// publish adds to a release what is published with it.
func (d *derivative) publish(c *cli.Context, r *release.Release) error {
	add := func(name string, make func(pin *manifest.Pin) ([]byte, error)) {
		r.Documents = append(r.Documents, release.File{Name: name, Make: make})
	}
	pinned := d.source.pin != nil || c.IsSet("pin-source")
	inFolder := pinned && !c.Bool("no-source-pin")
	source := func() *manifest.Pin {
		if r.SourcePin != nil {
			return r.SourcePin.Pin
		}
		return d.source.pin
	}
	if inFolder {
		add(sourcePinName, func(*manifest.Pin) ([]byte, error) {
			var b bytes.Buffer
			err := manifest.EncodePin(&b, sourcePinName, source())
			return b.Bytes(), err
		})
	}
	if err := addFiles(c, r); err != nil {
		return err
	}
	if !c.Bool("card") {
		return onlyForCard(c)
	}
	add(cardName, func(pin *manifest.Pin) ([]byte, error) {
		if pin == nil {
			return nil, errors.New("a release that cannot be pinned has no card")
		}
		f, err := cardFacts(c, "", pin, d.layout.Shards[0].Metadata, d.plan, source(), inFolder)
		if err != nil {
			return nil, err
		}
		text, err := card.Renew("", f)
		return []byte(text), err
	})
	return nil
}

// addFiles puts in the license and the evidence that flags name.
func addFiles(c *cli.Context, r *release.Release) error {
	paths := c.StringSlice("evidence")
	if len(paths) > 1 {
		return args.Usagef("one file of evidence goes into a release, got %d", len(paths))
	}
	if len(paths) == 1 {
		if _, err := evidence.ReadFile(paths[0]); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, path string }{{licenseName, c.String("license-file")}, {evidenceName, slices.Concat(paths, []string{""})[0]}} {
		if f.path == "" {
			continue
		}
		data, err := files.Read(f.path)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("%s: empty", text.Safe(f.path))
		}
		r.Documents = append(r.Documents, release.File{Name: f.name, Data: data})
	}
	return nil
}

// onlyForCard refuses flags that would do nothing.
func onlyForCard(c *cli.Context) error {
	for _, name := range []string{"license", "license-name", "license-link", "base-model", "nodes"} {
		if c.IsSet(name) {
			return args.Usagef("--%s is for --card", name)
		}
	}
	return nil
}
