package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
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
		licenseFileFlag(),
		&cli.BoolFlag{Name: "no-source-pin", Usage: "leave out the source's pin, by which verify proves the release"},
	}, factFlags())...)
}

func licenseFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "license-file", Usage: "`FILE`: put its text into the release as " + licenseName}
}

// checkCardValue refuses a file name behind --card, which takes none: it would be taken for a model.
func checkCardValue(c *cli.Context) error {
	for _, arg := range c.Args().Slice() {
		if c.Bool("card") && c.NArg() > 1 && strings.HasSuffix(strings.ToLower(arg), ".md") {
			return hint.With(args.Usagef("--card takes no file name, got %q", arg), "the card is %s in the release; ggufreap card -o FILE RELEASE writes it elsewhere", cardName)
		}
	}
	return nil
}

// publish adds to a release what is published with it.
func (d *derivative) publish(con *ui.Console, c *cli.Context, r *release.Release, keys signers) error {
	if err := checkFactFlags(c); err != nil {
		return err
	}
	pinned := d.source.pin != nil || c.IsSet("pin-source")
	inFolder := pinned && !c.Bool("no-source-pin")
	if inFolder {
		if err := d.addSourcePin(r); err != nil {
			return err
		}
	}
	if err := addLicense(c, r); err != nil {
		return err
	}
	evidence, err := addEvidence(c, r)
	if err != nil {
		return err
	}
	if !c.Bool("card") {
		return onlyForCard(c)
	}
	r.Documents = append(r.Documents, release.File{Name: cardName, Make: func(pin *manifest.Pin) ([]byte, error) {
		f := &card.Facts{Pin: pin, Metadata: d.layout.Shards[0].Metadata, Plan: d.plan, SourcePin: d.sourcePin(r), InFolder: inFolder, Evidence: evidence, Keys: keys.names()}
		return newCard(con, c, f)
	}})
	return nil
}

// sourcePin is the pin of the source: the one that is taken while the release is written, known
// at its end, or the one that was given.
func (d *derivative) sourcePin(r *release.Release) *manifest.Pin {
	if r.SourcePin != nil {
		return r.SourcePin.Pin
	}
	return d.source.pin
}

// addSourcePin puts in the pin of the source, at once where it is known.
func (d *derivative) addSourcePin(r *release.Release) error {
	encoded := func(*manifest.Pin) ([]byte, error) {
		var b bytes.Buffer
		err := manifest.EncodePin(&b, release.SourcePinName, d.sourcePin(r))
		return b.Bytes(), err
	}
	f := release.File{Name: release.SourcePinName, Make: encoded}
	if d.source.pin != nil {
		data, err := encoded(nil)
		if err != nil {
			return err
		}
		f = release.File{Name: release.SourcePinName, Data: data}
	}
	r.Documents = append(r.Documents, f)
	return nil
}

// newCard makes the card of a release that was just written.
func newCard(con *ui.Console, c *cli.Context, f *card.Facts) ([]byte, error) {
	if f.Pin == nil {
		return nil, errors.New("a release that cannot be pinned has no card")
	}
	if err := checkEvidence(f.Evidence, f.Pin); err != nil {
		return nil, err
	}
	takeFlags(c, f)
	noteOpen(con, f)
	text, err := card.Renew("", f)
	return []byte(text), err
}

// addLicense puts in the license that a flag names.
func addLicense(c *cli.Context, r *release.Release) error {
	data, err := readLicense(c)
	if data != nil {
		r.Documents = append(r.Documents, release.File{Name: licenseName, Data: data})
	}
	return err
}

// readLicense reads the license that a flag names, nil for none.
func readLicense(c *cli.Context) ([]byte, error) {
	path := c.String("license-file")
	if path == "" {
		return nil, nil
	}
	data, err := files.ReadInput(c.App.Reader, path)
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s: empty", text.Safe(path))
	}
	return data, err
}

// addEvidence puts in the evidence that a flag names.
func addEvidence(c *cli.Context, r *release.Release) ([]card.Evidence, error) {
	var list []card.Evidence
	for _, path := range c.StringSlice("evidence") {
		e, err := readEvidenceFile(c.App.Reader, path)
		if err != nil {
			return nil, err
		}
		e.Name, e.Inside = evidenceName, true
		list = append(list, e)
		r.Documents = append(r.Documents, release.File{Name: e.Name, Data: e.Data})
	}
	return list, oneEvidence(list)
}

// onlyForCard refuses flags that would do nothing.
func onlyForCard(c *cli.Context) error {
	for _, name := range []string{"license", "license-name", "license-link", "nodes"} {
		if c.IsSet(name) {
			return args.Usagef("--%s is for --card", name)
		}
	}
	return nil
}

// pruneSigners reads the keys before anything is written.
func pruneSigners(con *ui.Console, c *cli.Context) (signers, error) {
	keys, err := readSigners(con, c, c.String("output"))
	if err == nil && c.Bool("provenance") && !keys.any() {
		err = hint.With(args.Usagef("--provenance is a statement that somebody signs, and no key is given"),
			"--ssh-key FILE for an SSH key, --key FILE for an EC key; ggufreap sign --provenance states it later")
	}
	return keys, err
}

// signDerivative signs a release that was just written. What was signed there before is of
// another one.
func signDerivative(c *cli.Context, r *release.Release, keys signers) error {
	if !keys.any() {
		return nil
	}
	keys.force = true
	if source := c.Args().First(); remote.IsAddress(source) {
		keys.source = remote.Redacted(source)
	}
	made, err := signRelease(c, r.Folder, keys)
	if err != nil {
		return hint.With(fmt.Errorf("the release is written, and not signed: %w", err), "ggufreap sign signs it")
	}
	for _, s := range made {
		r.Signed = append(r.Signed, s.File)
	}
	return nil
}
