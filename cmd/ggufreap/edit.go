package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
)

const editHelp = `Change metadata keys of a model, everything else byte for byte.

Usage:
  ggufreap edit [flags] -o DIR MODEL

Keys keep their types and their places, tensors their bytes, their order and
their shards; the weights digest stays the same. Shards that stay as they are
share the source's blocks on disk where the file system can (XFS, Btrfs), and
are copied elsewhere, or are hard links with --link. The source is only read.
DIR gets the files, pin.json.zst and, last of all, MANIFEST.sha256; of a release
its plan.json, its source's pin and its LICENSE too. The key reap.edited_keys
names what was changed, so that "verify --source-pin" notes stated changes and
finds others, and changes of what an engine computes with.

With --in-place the new header takes the place of the old one where it has the
same size, padding included: a number or a text of the same length fits, most
else does not, and is refused. The old header lies beside the file until the new
one is durable; "edit --in-place MODEL" takes back what was interrupted.

Keys that decide how an engine computes (all that begin with the architecture's
name, the alignment, what makes tokens of a text, and what of an adapter or an
activation llama.cpp reads by other names) want --force.

` + interruptHelp + `
Flags:

Examples:
  ggufreap edit --set general.name="My K3" -o named K3-00001-of-00009.gguf
  ggufreap edit --set tokenizer.chat_template=@chat.jinja -o fixed K3.gguf
  ggufreap edit --set general.tags='["a","b"]' --unset general.url -o out K3
  ggufreap edit --in-place --no-provenance-keys --set general.version=2 K3.gguf
  ggufreap edit --set kimi-k3.rope.freq_base:f32=50000 --force -o out K3
`

func editCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "edit",
		Usage:       "change metadata keys, everything else byte for byte",
		Description: editHelp,
		Flags: slices.Concat(
			args.In("What to change", editFlags()...),
			args.In("Output", slices.Concat(releaseFlags("the folder to write", "that of the source"), []cli.Flag{
				&cli.BoolFlag{Name: "in-place", Usage: "write the new header over the old one where the model lies, if it has the same size; a list of sums, a pin or a signature beside it is refused"},
				&cli.BoolFlag{Name: "link", Usage: "give files that stay as they are a second name in DIR, a hard link, in place of copies: whoever changes one changes both"},
				&cli.BoolFlag{Name: "no-provenance-keys", Usage: "leave out the key that names what was changed: \"verify --source-pin\" then finds each change to be unstated"},
				typeFlag(),
			}, layoutFlags(), progressFlags(con))...),
			fetchFlags(),
		),
		Action: func(c *cli.Context) error { return editAction(con, c) },
	}
}

func editAction(con *ui.Console, c *cli.Context) error {
	if c.Bool("in-place") {
		return editInPlace(con, c)
	}
	if err := checkFolder(c); err != nil {
		return err
	}
	m, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.CheckWritable(); err != nil {
		return err
	}
	inspect.Warn(con, m)
	md, changes, err := applyChanges(c, m.Metadata())
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return errNoChange("nothing says what to change")
	}
	layout, err := m.LayoutWith(md)
	if err != nil {
		return err
	}
	r, err := copyRelease(con, c, m, layout)
	if err != nil {
		return err
	}
	r.AsCut, r.Link = true, c.Bool("link")
	return writeCopy(con, c, r, func() error {
		if c.Bool("json") {
			return con.JSON(r.Document())
		}
		describeChanges(con, m.Metadata(), md, changes)
		describeFetched(con, m)
		release.Describe(con, r)
		return nil
	})
}

// describeChanges prints what each key was and is.
func describeChanges(con *ui.Console, was, is *gguf.Metadata, changes []edit.Change) {
	for _, change := range changes {
		old, there := was.Get(change.Key)
		now, stays := is.Get(change.Key)
		switch {
		case change.Rename != "":
			con.Field("renamed", "%s is now %s", text.Safe(change.Key), text.Safe(change.Rename))
		case !stays:
			con.Field("removed", "%s, it was %s %s", text.Safe(change.Key), old.TypeName(), metadata.Short(old))
		case !there:
			con.Field("added", "%s: %s %s", text.Safe(change.Key), now.TypeName(), metadata.Short(now))
		default:
			con.Field("changed", "%s: %s %s, it was %s %s", text.Safe(change.Key), now.TypeName(), metadata.Short(now), old.TypeName(), metadata.Short(old))
		}
	}
	con.Field("weights", "unchanged: every tensor is copied byte for byte")
}
