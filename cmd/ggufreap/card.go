package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

const cardHelp = `Write the model card of a release, or find one that no longer fits.

Usage:
  ggufreap card [flags] -o README.md RELEASE
  ggufreap card [flags] --check README.md RELEASE

The card has front matter as the Hugging Face hub reads it, and sections about
what the release is, its exact files, its source and how that is pinned, how to
check it, its evidence, its limits, how to run it, and its license. They are
made from the documents in the folder and from evidence; what nobody said reads
"Not specified". Whether scores were measured is taken from the plan.

A card that exists is renewed: sections between <!-- ggufreap:begin NAME --> and
<!-- ggufreap:end NAME --> are written anew, and everything else stays as it is.
Its license, base model, evidence and number of machines hold unless flags say
otherwise. The same release and flags give the same card.

What is written into the folder of the release itself becomes part of it: its
MANIFEST.sha256 is renewed, and --evidence is put in as evidence.yaml,
--license-file as LICENSE. A release that is signed is refused, since the
signatures would no longer fit; --force removes them, and it must be signed
again.

Evidence is evidence.yaml of the folder, unless --evidence or the card name
other files. --bom writes a bill of materials in the form of CycloneDX 1.6: the
model, its files with their SHA-256, and its source as ancestor. Where another
file lies at the path of the bill or of a script, only --force replaces it; at
the path of the card it is always refused.

Flags:

Exit codes:
  0  written; or the card fits
  1  the card does not fit its release
  2  the request could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap card -o K3-REAP568/README.md --license mit K3-REAP568
  ggufreap card -o K3-REAP568/README.md --evidence bench.yaml K3-REAP568
  ggufreap card --bom K3-REAP568/bom.cdx.json K3-REAP568
  ggufreap card --recipes recipes --fit-per-node 4x119GB K3-REAP568
  ggufreap card --check K3-REAP568/README.md K3-REAP568
`

func cardCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "card",
		Usage:       "write the model card of a release, or check it",
		Description: cardHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write or renew `FILE`"},
			&cli.StringFlag{Name: "bom", Usage: "`FILE`: write a bill of materials there, CycloneDX in JSON"},
			&cli.StringFlag{Name: "recipes", Usage: "`DIR`: write launch scripts there, for the machines of --nodes or --fit-per-node"},
			&cli.StringFlag{Name: "check", Usage: "`FILE`: say where this card does not fit the release"},
			&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: the pin of the source (" + release.SourcePinName + " of the folder)"},
			&cli.StringSliceFlag{Name: "signed-by", Usage: "`FILE`: a public key, of SSH or in PEM, that signs the release; the card names it (repeatable)"},
			&cli.StringFlag{Name: "fit-per-node", Usage: "`NxSIZE`: as --nodes N, and refuse a split that gives a machine more than SIZE of tensor data: 4x119GB"},
			licenseFileFlag(),
			&cli.BoolFlag{Name: "force", Usage: "replace files that card did not write, and change a release that is signed: its signatures are removed"},
		}, factFlags(), []cli.Flag{typeFlag()}, progressFlags(con)),
		Action: func(c *cli.Context) error { return cardAction(con, c) },
	}
}

func cardAction(con *ui.Console, c *cli.Context) error {
	if err := checkCardFlags(c); err != nil {
		return err
	}
	was, err := readCard(c)
	if err != nil {
		return err
	}
	f, m, err := releaseFacts(con, c, was)
	if err != nil {
		return err
	}
	defer m.Close()
	if path := c.String("check"); path != "" {
		return checkCard(con, path, was, f)
	}
	w := &cardWriter{con: con, folder: folderOf(c.Args().First()), force: c.Bool("force"), facts: f}
	w.sources = slices.Concat(m.OnDisk(), c.StringSlice("evidence"), c.StringSlice("signed-by"), []string{c.String("source-pin")})
	if err := w.adopt(c.String("output")); err != nil {
		return err
	}
	if err := w.putLicense(c); err != nil {
		return err
	}
	list, err := cardOutputs(c, was, f)
	if err != nil {
		return err
	}
	if c.String("output") != "" {
		noteOpen(con, f)
	}
	return w.write(list)
}

func checkCardFlags(c *cli.Context) error {
	output, check := c.String("output"), c.String("check")
	written := output != "" || c.String("recipes") != "" || c.String("bom") != ""
	switch {
	case c.NArg() != 1:
		return hint.With(args.Usagef("card takes the folder of one release, got %d arguments", c.NArg()), "ggufreap card -o README.md RELEASE")
	case !written && check == "":
		return hint.With(args.Usagef("nothing says where the card goes"), "-o README.md writes it, --check README.md looks at one")
	case output != "" && check != "":
		return args.Usagef("-o and --check contradict each other: write a card, or look at one")
	case check != "" && written:
		return args.Usagef("--check writes nothing: leave --bom and --recipes out")
	case c.IsSet("license-file") && (output == "" || output == files.Stdin):
		return hint.With(args.Usagef("--license-file is put into the release with its card"), "-o RELEASE/%s writes that", cardName)
	case c.IsSet("nodes") && c.IsSet("fit-per-node"):
		return args.Usagef("--nodes and --fit-per-node both say how many machines there are, give one of them")
	}
	return checkFactFlags(c)
}

// readCard reads the card that is to be renewed or looked at, "" when there is none yet. Where
// no file is named, that of the release tells what is stated beside its documents.
func readCard(c *cli.Context) (string, error) {
	if check := c.String("check"); check != "" {
		data, err := files.ReadInput(c.App.Reader, check)
		return string(data), err
	}
	path := c.String("output")
	if path == "" || path == files.Stdin || files.IsSink(path) {
		path = filepath.Join(folderOf(c.Args().First()), cardName)
	}
	if _, err := os.Lstat(path); err != nil {
		return "", nil // to write it says what is wrong, if anything is
	}
	data, err := files.Read(path)
	if err == nil && path == c.String("output") && len(data) > 0 && !card.IsCard(path, data) {
		err = hint.With(fmt.Errorf("%s exists and is no model card: neither Markdown by its name nor text with our sections", text.Safe(path)), "give the card another name, such as %s", cardName)
	}
	return string(data), err
}

// cardOutputs makes what flags ask for.
func cardOutputs(c *cli.Context, was string, f *card.Facts) ([]cardOutput, error) {
	var list []cardOutput
	if path := c.String("output"); path != "" {
		if path == files.Stdin || files.IsSink(path) {
			was = "" // a new card, with what the one in the release states
		}
		is, err := card.Renew(was, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
		}
		list = append(list, cardOutput{path: path, data: []byte(is), kind: theCard})
	}
	if path := c.String("bom"); path != "" {
		data, err := f.BOM()
		if err != nil {
			return nil, err
		}
		list = append(list, cardOutput{path: path, data: data, kind: theBOM})
	}
	if dir := c.String("recipes"); dir != "" {
		for _, r := range f.Recipes(wayTo(dir, folderOf(c.Args().First()))) {
			list = append(list, cardOutput{path: filepath.Join(dir, r.Name), data: []byte(r.Text), kind: aRecipe})
		}
	}
	return list, nil
}

// wayTo is the way from one folder to another, for scripts that lie in the first.
func wayTo(from, to string) string {
	here, err := filepath.Abs(from)
	there, otherErr := filepath.Abs(to)
	if way, relErr := filepath.Rel(here, there); err == nil && otherErr == nil && relErr == nil {
		return filepath.ToSlash(way)
	}
	return filepath.ToSlash(there) // on another drive
}

// checkCard says where a card does not fit its release.
func checkCard(con *ui.Console, path, was string, f *card.Facts) error {
	list, err := card.Check(was, f)
	if err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	con.Field("card", "%s", text.Safe(files.Name(path)))
	con.Field("release", "%s, pin digest %s", text.Safe(f.Pin.Artifact.Name), f.Pin.PinDigest)
	for _, d := range list {
		con.StyledField(ui.Red, "differs", fmt.Sprintf("%s, line %d, %s", d.Section, d.CardLine, text.Differ(d.LineCount, "line")))
		con.Field("", "the card says: %s", text.Safe(orNothingThere(d.Card)))
		con.Field("", "it should say: %s", text.Safe(orNothingThere(d.Should)))
	}
	if len(list) > 0 {
		con.Field("result", "the card does not fit its release")
		return errDiffers
	}
	con.Field("result", "the card fits")
	return nil
}

func orNothingThere(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
