package main

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
)

const inspectHelp = `Show what a GGUF model is: structure, exact sizes, experts, problems. Only
headers are read.

Usage:
  ggufreap inspect [flags] MODEL
  ggufreap inspect [flags] SHARD SHARD ...

MODEL is any shard of a split model, a single .gguf file, or a folder that
holds exactly one model. Several files are taken for the shards of one model,
whatever their names and order. An address does as well, and then only headers
are fetched: hf://OWNER/REPO[@REVISION][/PATH], a page of the Hugging Face hub,
or https://HOST/PATH/Model-00001-of-00009.gguf.

Flags:

Exit codes:
  0  the headers are sound; there may be warnings
  1  they say another number of experts than there is
  2  they cannot be read, an error in them makes numbers wrong, or llama.cpp
     does not load the model
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap inspect Model-00001-of-00009.gguf
  ggufreap inspect --keep 568 --keep 448 Model-00001-of-00009.gguf
  ggufreap inspect --key tokenizer.chat_template model.gguf
  ggufreap inspect --json --tensors model.gguf
  ggufreap inspect hf://unsloth/Kimi-K3-GGUF/UD-IQ1_S
`

func inspectCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "inspect",
		Usage:       "show what a model is: structure, sizes, experts, problems",
		Description: inspectHelp,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "keep", Usage: "show what keeping `N` routed experts of each layer would leave, a number or a share: 75% (repeatable)"},
			&cli.BoolFlag{Name: "tensors", Usage: "list the tensors: shard, offset in its file, bytes of data, bytes to the next tensor, type, shape " +
				"(innermost dim first), role, name"},
			&cli.StringFlag{Name: "key", Usage: "`K`: print the value of one metadata key whole, a line for each item of a list"},
			&cli.BoolFlag{Name: "raw", Usage: "print the bytes of that value as they stand in the file, of a text without its length"},
			&cli.BoolFlag{Name: "keys", Usage: "list the metadata keys: key, type, value cut to the line"},
			&cli.StringFlag{Name: "prefix", Usage: "`P`: list only keys that begin so, such as general. or reap."},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON document; with --tensors it lists the tensors, with --key it is that of one value. " +
				"Shards count from 0 in it, and from 1 in tables, as in the names of files"},
			typeFlag(),
		}, append(artifactFlags(), fetchFlags()...)...),
		Action: func(c *cli.Context) error { return inspectAction(con, c) },
	}
}

func inspectAction(con *ui.Console, c *cli.Context) error {
	if err := checkInspectFlags(con, c); err != nil {
		return err
	}
	m, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer m.Close()
	switch {
	case c.IsSet("key"):
		return cmp.Or(showKey(con, c, m), inspect.Unsound(m))
	case c.Bool("keys"):
		return cmp.Or(inspect.ListKeys(con, m, c.String("prefix")), inspect.Unsound(m))
	}
	in, err := inspect.New(m, c.StringSlice("keep"))
	if err != nil {
		return err
	}
	verdict, err := judgeInspected(c, m, in)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("json"):
		if c.Bool("tensors") {
			in.Tensors = inspect.TensorDocuments(m)
		}
		if err := con.JSON(*in); err != nil {
			return err
		}
	case c.Bool("tensors"):
		inspect.ListTensors(con, m)
		inspect.Warn(con, m)
		return m.Err()
	default:
		inspect.Show(con, in)
		showVerdict(con, c, verdict)
		describeFetched(con, m)
		return inspected(m, in, in.ListedErrors())
	}
	return inspected(m, in, cmp.Or(inspect.Unsound(m), in.Wrong(), in.NotLoading()))
}

// inspected tells an error about headers that cannot be relied on from one about a sound
// model that has another number of experts than it says.
func inspected(m *gguf.Model, in *inspect.Inspection, err error) error {
	if err != nil && inspect.Unsound(m) == nil && in.Wrong() != nil {
		return difference{err}
	}
	return err
}

// checkInspectFlags refuses flags of which one has no place beside the other.
func checkInspectFlags(con *ui.Console, c *cli.Context) error {
	switch key := c.IsSet("key"); {
	case c.Bool("tensors") && c.IsSet("keep"):
		return args.Usagef("--tensors lists tensors, --keep shows what would be left: leave one of them out")
	case key && (c.Bool("tensors") || c.IsSet("keep") || c.Bool("keys")):
		return args.Usagef("--key prints one value and nothing else: leave out the other flags")
	case c.Bool("keys") && (c.Bool("tensors") || c.IsSet("keep")):
		return args.Usagef("--keys lists keys and nothing else: leave out the other flags")
	case c.Bool("keys") && c.Bool("json"):
		return hint.With(args.Usagef("--keys makes a list for people"), "--json without it has all keys")
	case c.IsSet("prefix") && !c.Bool("keys"):
		return args.Usagef("--prefix is for the list of --keys")
	case c.Bool("raw") && !key:
		return args.Usagef("--raw is for the value of --key")
	case c.Bool("raw") && c.Bool("json"):
		return args.Usagef("--raw prints bytes and --json a document: leave one of them out")
	case c.Bool("raw") && con.Width > 0:
		return hint.With(args.Usagef("--raw prints bytes as they are, which a terminal may act on"), "ggufreap inspect --key K --raw MODEL > FILE")
	}
	return nil
}

func showKey(con *ui.Console, c *cli.Context, m *gguf.Model) error {
	if c.Bool("raw") {
		return inspect.WriteKey(con.Out, m, c.String("key"))
	}
	return inspect.ShowKey(con, m, c.String("key"), c.Bool("json"))
}
