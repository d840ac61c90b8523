package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
)

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

const maxNodes = 1024

var licenseID = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// checkFactFlags refuses what no card can say, before anything is written.
func checkFactFlags(c *cli.Context) error {
	if n := c.Int("nodes"); c.IsSet("nodes") && (n < 1 || n > maxNodes) {
		return args.Usagef("--nodes is %d, want 1 to %d", n, maxNodes)
	}
	licenses := c.StringSlice("license")
	for _, id := range licenses {
		if !licenseID().MatchString(id) {
			return hint.With(args.Usagef("--license is %q, want a name that the hub has for it, such as mit or apache-2.0", id), "--license other --license-name NAME --license-link LINK is for any other")
		}
	}
	for _, name := range []string{"license-name", "license-link", "base-model"} {
		if s := c.String(name); strings.TrimSpace(s) != s || text.UnsafeAt(s, "") >= 0 {
			return args.Usagef("--%s is %q, want a text on one line", name, s)
		}
	}
	named := c.IsSet("license-name") || c.IsSet("license-link") || c.IsSet("license-file")
	switch other := slices.Contains(licenses, "other"); {
	case !other && (c.IsSet("license-name") || c.IsSet("license-link")):
		return args.Usagef("--license-name and --license-link are for --license other")
	case other && !named:
		return hint.With(args.Usagef("--license other does not say which"), "--license-name NAME and --license-link LINK do")
	}
	return nil
}

// folderOf is the folder that an argument names, itself or by a file in it.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// releaseFacts reads the documents of a release's folder, and what flags and the card as it was
// say beside them.
func releaseFacts(con *ui.Console, c *cli.Context, was string) (*card.Facts, *gguf.Model, error) {
	m, err := openPaths(con, c, c.Args().First())
	if err != nil {
		return nil, nil, err
	}
	f, err := readFacts(c, m, was)
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return f, m, nil
}

func readFacts(c *cli.Context, m *gguf.Model, was string) (*card.Facts, error) {
	dir := folderOf(c.Args().First())
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
	f := &card.Facts{Pin: pin, Metadata: m.Metadata()}
	if f.Plan, err = release.ReadPlan(dir); err != nil {
		return nil, err
	}
	if f.SourcePin, f.InFolder, err = sourcePinOf(c, dir); err != nil {
		return nil, err
	}
	if f.Evidence, err = cardEvidence(c, dir, was); err != nil {
		return nil, err
	}
	if err := checkEvidence(f.Evidence, pin); err != nil {
		return nil, err
	}
	takeFlags(c, f)
	if f.Keys, err = publicKeys(c); err != nil {
		return nil, err
	}
	f.TakeStated(was)
	return f, takeNodes(c, f)
}

// takeFlags takes what flags say, and where they are silent what the documents state.
func takeFlags(c *cli.Context, f *card.Facts) {
	f.Licenses, f.LicenseName, f.LicenseLink = c.StringSlice("license"), c.String("license-name"), c.String("license-link")
	if f.Licenses == nil {
		f.Licenses = statedLicense(f.Pin, f.Metadata)
	}
	if f.LicenseLink == "" && slices.Contains(f.Licenses, "other") && c.IsSet("license-file") {
		f.LicenseLink = licenseName
	}
	f.BaseModel = baseModel(c, f.SourcePin)
	f.Nodes = c.Int("nodes")
}

// noteOpen says what a card leaves open, and which flag could say it.
func noteOpen(con *ui.Console, f *card.Facts) {
	if list := f.Open(); len(list) > 0 {
		con.Notef("the card does not say %s", strings.Join(list, ", nor "))
	}
}

// publicKeys names the keys of --signed-by, nil for none.
func publicKeys(c *cli.Context) ([]card.Key, error) {
	var list []card.Key
	for _, path := range c.StringSlice("signed-by") {
		data, err := files.ReadInput(c.App.Reader, path)
		if err != nil {
			return nil, err
		}
		kind, name, err := sign.NameKey(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
		}
		list = append(list, card.Key{Kind: kind, Name: name})
	}
	return list, nil
}

// takeNodes takes the number of machines from --fit-per-node, and holds the split by layers
// against their size.
func takeNodes(c *cli.Context, f *card.Facts) error {
	if !c.IsSet("fit-per-node") {
		return nil
	}
	b, err := readBudget(c)
	if err != nil {
		return err
	}
	if f.Nodes = b.nodes; f.Nodes > maxNodes {
		return args.Usagef("--fit-per-node is for %d machines, want 1 to %d", f.Nodes, maxNodes)
	}
	for i, n := range card.Split(f.Pin, f.Nodes) {
		if n.Bytes > b.bytes {
			return hint.With(fmt.Errorf("machine %d gets %s of tensor data, more than %s: llama.cpp splits by whole layers", i+1, text.Size(n.Bytes), text.Size(b.bytes)),
				"more machines, or larger ones; what cache and buffers take comes on top")
		}
	}
	return nil
}

// sourcePinOf reads the pin of the source, from the folder unless a flag names another.
func sourcePinOf(c *cli.Context, dir string) (pin *manifest.Pin, inFolder bool, err error) {
	own := filepath.Join(dir, release.SourcePinName)
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
