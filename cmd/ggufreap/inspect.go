package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

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

func inspectCommand(con *console) *cli.Command {
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

func inspectAction(con *console, c *cli.Context) error {
	if c.Bool("tensors") && c.IsSet("keep") {
		return usagef("--tensors lists tensors and has no place for what --keep tells: leave one of them out")
	}
	if c.IsSet("key") && (c.Bool("tensors") || c.IsSet("keep")) {
		return usagef("--key prints one value and nothing else: leave out the other flags")
	}
	m, err := openArtifact(c)
	if err != nil {
		return err
	}
	defer m.Close()
	if c.IsSet("key") {
		if err := con.showKey(m, c.String("key"), c.Bool("json")); err != nil {
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
		if err := con.json(*in); err != nil {
			return err
		}
	case c.Bool("tensors"):
		con.listTensors(m)
		con.warnOf(m)
		return m.Err()
	default:
		con.showInspection(in)
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
		return fmt.Errorf("%s were found, listed above; numbers may be wrong", count(n, "error"))
	default:
		return fmt.Errorf("%s were found, of which %d are listed above; numbers may be wrong", count(n, "error"), screenProblems)
	}
}

// warnOf prints a few of the warnings about a model, where no screen lists them.
func (con *console) warnOf(m *gguf.Model) {
	warnings := 0
	for _, p := range m.Problems {
		if p.Severity != gguf.Warning {
			continue
		}
		if warnings++; warnings <= screenProblems {
			con.warnf("%v", p)
		}
	}
	if more := warnings - screenProblems; more > 0 {
		con.warnf("and %s more", grouped(more))
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
	return fmt.Errorf("%v (and %s)", first, count(found-1, "more error"))
}

// A keyDocument is what "inspect --json --key" prints.
type keyDocument struct {
	Schema string `json:"schema"`
	Key    text   `json:"key"`
	Type   string `json:"type"`
	Length int64  `json:"length"`
	Value  any    `json:"value"`
}

// showKey prints one value whole.
func (con *console) showKey(m *gguf.Model, key string, asJSON bool) error {
	md := m.Metadata()
	v, ok := md.Get(key)
	if !ok {
		return missingKey(m, key)
	}
	if err := con.printKey(key, v, asJSON); err != nil {
		return fmt.Errorf("%s: key %q: %w", safe(m.Files[0].Name), key, err)
	}
	return nil
}

func (con *console) printKey(key string, v gguf.Value, asJSON bool) error {
	if err := (value{v}).checkPrintable(); err != nil {
		return err
	}
	if asJSON {
		doc := keyDocument{"ggufreap/value/v1", text(key), v.TypeName(), v.Len(), value{v}}
		if v.Type() == gguf.Array {
			doc.Value = valueElements(v)
		}
		return con.json(doc)
	}
	if v.Type() == gguf.Array {
		return v.Each(func(_ int64, e gguf.Value) error {
			line, err := value{e}.line()
			con.printf("%s\n", line)
			return err
		})
	}
	if v.Type() == gguf.Text {
		s, err := value{v}.text()
		con.printf("%s\n", safeLines(s))
		return err
	}
	con.printf("%s\n", value{v}.scalar())
	return nil
}

// valueElements lists an array, an element to a line.
func valueElements(v gguf.Value) elements {
	return func(yield func(any) error) error {
		return v.Each(func(_ int64, e gguf.Value) error { return yield(value{e}) })
	}
}

func missingKey(m *gguf.Model, key string) error {
	if !m.HasMetadata() {
		return fmt.Errorf("%s: metadata key %q is not known: %s", safe(m.Name), key, noFirstShard)
	}
	err := fmt.Errorf("%s: no metadata key %q", safe(m.Files[0].Name), key)
	md := m.Metadata()
	if full := md.ArchKey(key); hasKey(md, full) {
		return withHint(err, "did you mean %q?", full)
	}
	if near := closest(key, md.Keys()); near != "" {
		return withHint(err, "did you mean %q?", near)
	}
	return withHint(err, "inspect --json lists all keys")
}

func hasKey(md *gguf.Metadata, key string) bool {
	_, ok := md.Get(key)
	return ok
}
