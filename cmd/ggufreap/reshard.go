package main

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

const reshardHelp = `Split a model, merge its shards, or cut it anew. No weight changes.

Usage:
  ggufreap reshard [flags] -o DIR MODEL

Tensors keep their bytes and their order, metadata its types, bytes and order;
only the split keys change. The source is only read. DIR gets the files, of a
release its plan.json, its source's pin and its LICENSE too, and, last of all,
MANIFEST.sha256: a folder with a manifest is finished.

Merging the shards of a model that was one file gives that file back, byte for
byte, if it had no split keys and its data stood in order, each tensor padded
with zeros to the alignment, the last one too. That is how most programs write
it, and how merging does. A file that is written as one file keeps split keys.

Split keys that lie, of a whole file that was once a shard or a total of tensors
that does not fit, numbers that contradict each other or the names, are refused
unless --repair-split writes right ones. What the shards hold is taken for all
of the model, in the order of their names, or of their keys where the shard with
the metadata is not the first by its name: inspect says what is there.

` + interruptHelp + `
Flags:

Examples:
  ggufreap reshard --shards 1 -o merged K3-00001-of-00009.gguf
  ggufreap reshard --max-shard-size 45GB -o split K3.gguf
  ggufreap reshard --shards 14 --dry-run K3-00001-of-00009.gguf
`

func reshardCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "reshard",
		Usage:       "split or merge a model, its weights untouched",
		Description: reshardHelp,
		Flags: slices.Concat(
			args.In("How to cut", append(splitFlags(),
				&cli.BoolFlag{Name: "repair-split", Usage: "take a model whose split keys are wrong and nothing else, and write right ones"})...),
			args.In("The source's bytes",
				&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: stop at the first bytes of the source that are not those of this pin"},
				&cli.StringFlag{Name: "source-digest", Usage: "`D`: refuse a source whose pin has another pin digest"},
			),
			args.In("Metadata", editFlags()...),
			args.In("Output", slices.Concat(releaseFlags("the folder to write", "that of the source"), []cli.Flag{onlyFlag(), typeFlag()}, layoutFlags(), progressFlags(con))...),
			fetchFlags(),
		),
		Action: func(c *cli.Context) error { return reshardAction(con, c) },
	}
}

func reshardAction(con *ui.Console, c *cli.Context) error {
	split, given, err := readSplit(c)
	if err != nil {
		return err
	}
	if err := cmp.Or(checkCut(c, given), checkFolder(c), checkOnly(c)); err != nil {
		return err
	}
	source, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer source.Close()
	m, repaired, err := checkSplit(c, source)
	if err != nil {
		return err
	}
	if !given {
		split.Shards = len(m.Files)
	}
	inspect.Warn(con, m)
	for _, p := range repaired {
		con.Notef("right split keys are written in place of: %v", p)
	}
	derivation, err := copyOf(c, m) // before the layout, which is of what the pin guards
	if err != nil {
		return err
	}
	layout, err := cutAnew(c, m, split, len(repaired) > 0)
	if err != nil {
		return err
	}
	r, err := copyRelease(con, c, m, layout)
	if err != nil {
		return err
	}
	r.Derivation = derivation
	return writeCopy(con, c, r, func() error { return reportReshard(con, c, r) })
}

// checkCut refuses flags that do not say how to cut, or of what the source is.
func checkCut(c *cli.Context, given bool) error {
	switch {
	case !given && !c.Bool("repair-split"):
		return hint.With(args.Usagef("nothing says how to cut the model"), "--shards 1 merges, --shards N or --max-shard-size S splits")
	case c.IsSet("source-digest") && !c.IsSet("source-pin"):
		return args.Usagef("--source-digest is what the source's pin must have: give it with --source-pin")
	}
	return nil
}

// cutAnew lays out what a model has, with changed metadata, and without its split keys where those
// are wrong.
func cutAnew(c *cli.Context, m *gguf.Model, split gguf.Split, repair bool) (*gguf.Layout, error) {
	contents := m.Contents()
	var err error
	if contents.Metadata, _, err = applyChanges(c, contents.Metadata); err != nil {
		return nil, err
	}
	if repair {
		contents.Metadata = contents.Metadata.WithoutSplit()
	}
	return gguf.NewLayout(contents, split)
}

// copyOf says that every tensor is that of a pinned source, nil where no pin was given.
func copyOf(c *cli.Context, m *gguf.Model) (*manifest.Derivation, error) {
	path := c.String("source-pin")
	if path == "" {
		return nil, nil
	}
	pin, err := pinOf(c, path, m, c.String("output"))
	if err != nil {
		return nil, err
	}
	d := manifest.NewDerivation(pin)
	d.Keep = func(string) []int { return nil }
	d.File = func(tensor string) string { return text.Safe(m.Tensor(tensor).File().Name) }
	return d, nil
}

// checkSplit refuses a model that cannot be cut anew. With --repair-split it returns the model as
// it is without faults of split keys, and those faults, which the cut mends.
func checkSplit(c *cli.Context, m *gguf.Model) (*gguf.Model, []gguf.Problem, error) {
	sound, faults, err := m, []gguf.Problem(nil), m.CheckWritable()
	if err != nil {
		var others error
		if faults, others = m.SplitFaults(); others != nil {
			if named, mended := m.ByNames(); named != nil && len(mended) > 0 && named.CheckWritable() == nil {
				sound, faults, others = named, mended, nil
			}
		}
		switch {
		case len(faults) == 0 || others != nil:
			return nil, nil, err
		case !c.Bool("repair-split"):
			return nil, nil, hint.With(err, "only split keys are wrong: --repair-split writes right ones")
		}
	}
	return sound, faults, nil
}

// reportReshard prints what was, or would be, written.
func reportReshard(con *ui.Console, c *cli.Context, r *release.Release) error {
	if c.Bool("json") {
		return con.JSON(r.Document())
	}
	describeFetched(con, r.Source)
	if r.Derivation != nil && r.Pin != nil {
		con.Field("source bytes", "every tensor is the pinned one, of %s", text.Safe(c.String("source-pin")))
	}
	if r.Verified > 0 {
		con.Field("checked", "sha256 of %d of %s as the hub states it", r.Verified, text.Files(len(r.Source.Files)))
	}
	release.Describe(con, r)
	return nil
}
