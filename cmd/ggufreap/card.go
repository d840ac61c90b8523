package main

import (
	"errors"
	"fmt"
	"io/fs"
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
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/evidence"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
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
Its license, base model and number of machines hold unless flags say otherwise.
The same release and flags give the same card.

Evidence is evidence.yaml of the folder, unless --evidence names other files.

Flags:

Exit codes:
  0  written; or the card fits
  1  the card does not fit its release
  2  the request could not be carried out

Examples:
  ggufreap card -o K3-REAP568/README.md --license mit K3-REAP568
  ggufreap card -o README.md --evidence bench.yaml --nodes 4 K3-REAP568
  ggufreap card --check README.md K3-REAP568
`

func cardCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "card",
		Usage:       "write the model card of a release, or check it",
		Description: cardHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write or renew `FILE`"},
			&cli.StringFlag{Name: "recipes", Usage: "`DIR`: write launch scripts there, for --nodes machines"},
			&cli.StringFlag{Name: "check", Usage: "`FILE`: say where this card does not fit the release"},
			&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: the pin of the source (" + sourcePinName + " of the folder)"},
		}, factFlags(), []cli.Flag{typeFlag()}, progressFlags(con)),
		Action: func(c *cli.Context) error { return cardAction(con, c) },
	}
}

// factFlags bring what a card says beside the release's own documents.
func factFlags() []cli.Flag {
	return args.In("What the card says",
		&cli.StringSliceFlag{Name: "evidence", Usage: "`FILE`: what was measured, configured and stated (repeatable)"},
		&cli.StringSliceFlag{Name: "license", Usage: "`ID`: the license, as the hub names it (repeatable)"},
		&cli.StringFlag{Name: "license-name", Usage: "`NAME`: of the license \"other\""},
		&cli.StringFlag{Name: "license-link", Usage: "`LINK`: to its text: LICENSE, or an address"},
		&cli.StringFlag{Name: "base-model", Usage: "`REPO`: the source's repository"},
		&cli.IntFlag{Name: "nodes", Usage: "show how `N` machines run it too"},
	)
}

func cardAction(con *ui.Console, c *cli.Context) error {
	output, check := c.String("output"), c.String("check")
	switch {
	case c.NArg() != 1:
		return hint.With(args.Usagef("card takes the folder of one release, got %d arguments", c.NArg()), "ggufreap card -o README.md RELEASE")
	case output == "" && check == "" && c.String("recipes") == "":
		return hint.With(args.Usagef("nothing says where the card goes"), "-o README.md writes it, --check README.md looks at one")
	case output != "" && check != "":
		return args.Usagef("-o and --check contradict each other: write a card, or look at one")
	}
	f, m, err := releaseFacts(con, c, c.Args().First())
	if err != nil {
		return err
	}
	defer m.Close()
	if check != "" {
		return checkCard(con, check, f)
	}
	sources := slices.Concat(m.Paths(), c.StringSlice("evidence"), []string{c.String("source-pin")})
	if output != "" {
		if err := writeCard(con, output, f, sources); err != nil {
			return err
		}
	}
	return writeRecipes(con, c.String("recipes"), f, sources)
}

func writeCard(con *ui.Console, path string, f *card.Facts, sources []string) error {
	was, err := files.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.TakeStated(string(was))
	is, err := card.Renew(string(was), f)
	if err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	size, err := files.Write(path, true, sources, files.Bytes([]byte(is)))
	if err != nil {
		return err
	}
	con.Field("card of", "%s", text.Safe(f.Pin.Artifact.Name))
	con.Field("evidence", "%s", text.Count(len(f.Evidence), "file"))
	con.Field("written", "%s, %s", text.Safe(path), text.Size(size))
	return nil
}

// writeRecipes writes launch scripts to a folder, unless it is "".
func writeRecipes(con *ui.Console, dir string, f *card.Facts, sources []string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, r := range f.Recipes() {
		path := filepath.Join(dir, r.Name)
		if _, err := files.Write(path, true, sources, files.Bytes([]byte(r.Text))); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o755); err != nil {
			return err
		}
		con.Field("written", "%s", text.Safe(path))
	}
	return nil
}

// checkCard says where a card does not fit its release.
func checkCard(con *ui.Console, path string, f *card.Facts) error {
	data, err := files.Read(path)
	if err != nil {
		return err
	}
	f.TakeStated(string(data))
	list, err := card.Check(string(data), f)
	if err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	con.Field("card", "%s", text.Safe(path))
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

// releaseFacts reads the documents of a release's folder.
func releaseFacts(con *ui.Console, c *cli.Context, dir string) (*card.Facts, *gguf.Model, error) {
	m, err := openPaths(con, c, dir)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	f, err := readFacts(c, dir, m)
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return f, m, nil
}

func readFacts(c *cli.Context, dir string, m *gguf.Model) (*card.Facts, error) {
	pin, err := manifest.ReadPin(filepath.Join(dir, manifest.PinName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.With(fmt.Errorf("%s has no %s, from which a card takes its digests", text.Safe(dir), manifest.PinName),
			"%s", args.CommandLine([]string{"ggufreap", "pin", "-o", filepath.Join(dir, manifest.PinName), dir}))
	}
	if err != nil {
		return nil, err
	}
	if err := pin.CheckHeaders(m); err != nil {
		return nil, fmt.Errorf("%s is of other files: %w", manifest.PinName, err)
	}
	plan, err := planOf(dir)
	if err != nil {
		return nil, err
	}
	source, inFolder, err := sourcePinOf(c, dir)
	if err != nil {
		return nil, err
	}
	return cardFacts(c, dir, pin, m.Metadata(), plan, source, inFolder)
}

// planOf reads the plan of a release, nil when it has none.
func planOf(dir string) (*reap.Plan, error) {
	data, err := files.Read(filepath.Join(dir, release.PlanName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := planfile.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", release.PlanName, err)
	}
	return plan, nil
}

// sourcePinOf reads the pin of the source, from the folder unless a flag names another.
func sourcePinOf(c *cli.Context, dir string) (pin *manifest.Pin, inFolder bool, err error) {
	own := filepath.Join(dir, sourcePinName)
	if path := c.String("source-pin"); path != "" {
		pin, err = files.ReadPin(c.App.Reader, path)
		_, there := os.Stat(own)
		return pin, there == nil, err
	}
	pin, err = manifest.ReadPin(own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return pin, true, err
}

// evidenceName is the evidence of a release in its folder.
const evidenceName = "evidence.yaml"

// cardFacts joins the documents of a release with what flags say.
func cardFacts(c *cli.Context, dir string, pin *manifest.Pin, md *gguf.Metadata, plan *reap.Plan, source *manifest.Pin, inFolder bool) (*card.Facts, error) {
	f := &card.Facts{Pin: pin, Metadata: md, Plan: plan, SourcePin: source, InFolder: inFolder,
		Licenses: c.StringSlice("license"), LicenseName: c.String("license-name"), LicenseLink: c.String("license-link"), Nodes: c.Int("nodes")}
	if f.Nodes < 0 || f.Nodes > 1024 {
		return nil, args.Usagef("--nodes is %d, want 1 to 1024", f.Nodes)
	}
	if (f.LicenseName != "" || f.LicenseLink != "") && !slices.Contains(f.Licenses, "other") {
		return nil, args.Usagef("--license-name and --license-link are for --license other")
	}
	if f.Licenses == nil {
		f.Licenses = statedLicense(pin, md)
	}
	f.BaseModel = baseModel(c, source)
	paths := c.StringSlice("evidence")
	if own := filepath.Join(dir, evidenceName); paths == nil && dir != "" {
		if _, err := os.Stat(own); err == nil {
			paths = []string{own}
		}
	}
	for _, path := range paths {
		d, err := evidence.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if got := d.Release.PinDigest; got != "" && got != pin.PinDigest.String() {
			return nil, fmt.Errorf("%s: evidence for the release with the pin digest %s, this one has %s", text.Safe(path), got, pin.PinDigest)
		}
		f.Evidence = append(f.Evidence, d)
	}
	return f, nil
}

// statedLicense is the license that pin or metadata state.
func statedLicense(pin *manifest.Pin, md *gguf.Metadata) []string {
	stated := md.Text("general.license")
	if pin.Declared.License != nil {
		stated = *pin.Declared.License
	}
	if stated == "" {
		return nil
	}
	return []string{stated}
}

// baseModel is the repository of the source: as a flag says, or as its pin declares.
func baseModel(c *cli.Context, source *manifest.Pin) string {
	switch {
	case c.IsSet("base-model"):
		return c.String("base-model")
	case source != nil && source.Declared.Repo != nil:
		return *source.Declared.Repo
	}
	return ""
}
