package main

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
)

const schemaHelp = `Print the JSON Schema of the documents of one kind, or list the kinds.

Usage:
  ggufreap schema [flags] [KIND]

A document begins with "schema": "ggufreap/KIND/v1".

Flags:

Examples:
  ggufreap schema
  ggufreap schema inspect > inspect.schema.json
`

func schemaCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "schema",
		Usage:       "print the JSON Schema of a kind of document",
		Description: schemaHelp,
		Action:      func(c *cli.Context) error { return schemaAction(con, c) },
	}
}

func schemaAction(con *ui.Console, c *cli.Context) error {
	switch c.NArg() {
	case 0:
		return listKinds(con)
	case 1:
		return printSchema(con, c.Args().First())
	}
	return args.Usagef("one kind of document at a time, got %d", c.NArg())
}

func printSchema(con *ui.Console, kind string) error {
	text := document.Schema(kind)
	if text == nil {
		err := args.Usagef("no document of kind %q", kind)
		if near := args.Closest(kind, document.Kinds()); near != "" {
			return hint.With(err, "did you mean: ggufreap schema %s", near)
		}
		return hint.With(err, "to list the kinds: ggufreap schema")
	}
	con.Printf("%s", text)
	return nil
}

// listKinds says of each kind where its documents come from.
func listKinds(con *ui.Console) error {
	var rows [][]string
	for _, kind := range document.Kinds() {
		var about struct {
			Title string `json:"title"`
		}
		if err := json.Unmarshal(document.Schema(kind), &about); err != nil {
			return err
		}
		rows = append(rows, []string{kind, about.Title})
	}
	con.Table("", []table.Column{table.Left("kind"), table.Left("documents of")}, slices.Values(rows))
	return nil
}
