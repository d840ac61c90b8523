package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

const inspectHelp = `Show what a GGUF artifact is: structure, exact sizes, experts, problems. Only
headers are read.

Usage:
  ggufreap inspect [flags] ARTIFACT
  ggufreap inspect [flags] SHARD SHARD ...

ARTIFACT is any shard of a split model, a single .gguf file, or a folder that
holds exactly one model. Several files are taken for the shards of one model,
whatever their names and order.

Flags:
      --keep N           show what keeping N routed experts of each layer would
                         leave (repeatable)
      --tensors          list the tensors: shard, offset in its file, bytes of
                         data, bytes to the next tensor, type, shape (innermost
                         dim first), role, name
      --key K            print the value of one metadata key whole, a line for
                         each item of a list
      --json             print a JSON document; with --tensors it lists the
                         tensors, with --key it is that of one value. Shards
                         count from 0 in it, and from 1 in tables, as in the
                         names of files
      --type ID=B/E      teach a type: B bytes store E elements (repeatable)
  -h, --help             show this text

Exit codes:
  0  the headers are sound; there may be warnings
  2  they cannot be read, or an error in them makes numbers wrong

Examples:
  ggufreap inspect Model-00001-of-00009.gguf
  ggufreap inspect --keep 568 --keep 448 Model-00001-of-00009.gguf
  ggufreap inspect --key tokenizer.chat_template model.gguf
  ggufreap inspect --json --tensors model.gguf
`

func inspectCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:               "inspect",
		CustomHelpTemplate: inspectHelp,
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "keep"},
			&cli.BoolFlag{Name: "tensors"},
			&cli.StringFlag{Name: "key"},
			&cli.BoolFlag{Name: "json"},
			typeFlag(),
		},
		Action: func(c *cli.Context) error { return inspectAction(con, c) },
	}
}

func inspectAction(con *ui.Console, c *cli.Context) error {
	if c.Bool("tensors") && c.IsSet("keep") {
		return args.Usagef("--tensors lists tensors and has no place for what --keep tells: leave one of them out")
	}
	if c.IsSet("key") && (c.Bool("tensors") || c.IsSet("keep")) {
		return args.Usagef("--key prints one value and nothing else: leave out the other flags")
	}
	m, err := openArtifact(c)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.IsSet("key") {
		if err := showKey(con, m, c.String("key"), c.Bool("json")); err != nil {
			return err
		}
		return unsound(m)
	}
	in, err := inspect(m, c.IntSlice("keep"))
	if err != nil {
		return err
	}
	switch {
	case c.Bool("json"):
		if c.Bool("tensors") {
			in.Tensors = tensorDocuments(m)
		}
		if err := con.JSON(*in); err != nil {
			return err
		}
	case c.Bool("tensors"):
		listTensors(con, m)
		warnOf(con, m)
		return m.Err()
	default:
		showInspection(con, in)
		return in.listedErrors()
	}
	return unsound(m)
}

// listedErrors stands for the errors that the screen has shown.
func (in *inspection) listedErrors() error {
	switch n, _ := in.countProblems(); {
	case n == 0:
		return nil
	case n == 1:
		return errors.New("an error was found, listed above; numbers may be wrong")
	case n <= screenProblems:
		return fmt.Errorf("%s were found, listed above; numbers may be wrong", text.Count(n, "error"))
	default:
		return fmt.Errorf("%s were found, of which %d are listed above; numbers may be wrong", text.Count(n, "error"), screenProblems)
	}
}

// warnOf prints a few of the warnings about a model, where no screen lists them.
func warnOf(con *ui.Console, m *gguf.Model) {
	warnings := 0
	for _, p := range m.Problems {
		if p.Severity != gguf.Warning {
			continue
		}
		if warnings++; warnings <= screenProblems {
			con.Warnf("%v", p)
		}
	}
	if more := warnings - screenProblems; more > 0 {
		con.Warnf("and %s more", text.Grouped(more))
	}
}

// unsound is the error of a model with problems that make numbers wrong.
func unsound(m *gguf.Model) error {
	var first gguf.Problem
	found := 0
	for _, p := range m.Problems {
		if p.Severity != gguf.Error {
			continue
		}
		if found++; found == 1 {
			first = p
		}
	}
	switch found {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%v", first)
	}
	return fmt.Errorf("%v (and %s)", first, text.Count(found-1, "more error"))
}

// A keyDocument is what "inspect --json --key" prints.
type keyDocument struct {
	Schema string        `json:"schema"`
	Key    document.Text `json:"key"`
	Type   string        `json:"type"`
	Length int64         `json:"length"`
	Value  any           `json:"value"`
}

// showKey prints one value whole.
func showKey(con *ui.Console, m *gguf.Model, key string, asJSON bool) error {
	md := m.Metadata()
	v, ok := md.Get(key)
	if !ok {
		return missingKey(m, key)
	}
	if err := printKey(con, key, v, asJSON); err != nil {
		return fmt.Errorf("%s: key %q: %w", text.Safe(m.Files[0].Name), key, err)
	}
	return nil
}

func printKey(con *ui.Console, key string, v gguf.Value, asJSON bool) error {
	if err := metadata.CheckPrintable(v); err != nil {
		return err
	}
	if asJSON {
		doc := keyDocument{"ggufreap/value/v1", document.Text(key), v.TypeName(), v.Len(), document.Value{Value: v}}
		if v.Type() == gguf.Array {
			doc.Value = document.Items(v)
		}
		return con.JSON(doc)
	}
	if v.Type() == gguf.Array {
		return v.Each(func(_ int64, e gguf.Value) error {
			line, err := metadata.Line(e)
			con.Printf("%s\n", line)
			return err
		})
	}
	if v.Type() == gguf.Text {
		s, err := document.TextOf(v)
		con.Printf("%s\n", text.SafeLines(s))
		return err
	}
	con.Printf("%s\n", document.Scalar(v))
	return nil
}

func missingKey(m *gguf.Model, key string) error {
	if !m.HasMetadata() {
		return fmt.Errorf("%s: metadata key %q is not known: %s", text.Safe(m.Name), key, noFirstShard)
	}
	err := fmt.Errorf("%s: no metadata key %q", text.Safe(m.Files[0].Name), key)
	md := m.Metadata()
	if full := md.ArchKey(key); hasKey(md, full) {
		return hint.With(err, "did you mean %q?", full)
	}
	if near := args.Closest(key, md.Keys()); near != "" {
		return hint.With(err, "did you mean %q?", near)
	}
	return hint.With(err, "inspect --json lists all keys")
}

func hasKey(md *gguf.Metadata, key string) bool {
	_, ok := md.Get(key)
	return ok
}
