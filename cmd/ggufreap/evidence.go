package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest/evidence"
)

const evidenceHelp = `Keep what was measured apart from what was configured, stated or never said.

Usage:
  ggufreap evidence init|check|show|import|schema [flags] [FILE...]

init prints a template with comments, check all that is wrong with line numbers,
show the tables that a card would have, import rows from what tools wrote, and
schema the JSON Schema of such files.

Evidence is a YAML or JSON file about a release: workloads with their conditions
and results. Nothing is filled in: what is absent reads "Not specified". A first
pass of a benchmark has a denominator and ids; what retries add is computed and
shown with its history; a configured limit is no measurement.

Imported are llama-bench -o json, jsonl or csv, what llama-perplexity prints,
answers and logs of llama-server with timings, and results and samples of
lm-evaluation-harness. Each row has the sha256 of the file it came from.

Flags:

Exit codes:
  0  nothing is wrong
  1  check found something
  2  the request could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap evidence init -o evidence.yaml
  ggufreap evidence check evidence.yaml
  ggufreap evidence import -o bench.yaml bench.json results.json samples.jsonl
`

func evidenceCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "evidence",
		Usage:       "keep what was measured apart from what was said",
		Description: evidenceHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` what init and import would print"},
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it exists"},
			&cli.BoolFlag{Name: "json", Usage: "print what check found as one JSON document"},
		},
		Action: func(c *cli.Context) error { return evidenceAction(con, c) },
	}
}

// evidenceVerbs are what the command does, by its first argument.
var evidenceVerbs = map[string]func(*ui.Console, *cli.Context, []string) error{
	"init":   evidenceInit,
	"check":  evidenceCheck,
	"show":   evidenceShow,
	"import": evidenceImport,
	"schema": evidenceSchema,
}

func evidenceAction(con *ui.Console, c *cli.Context) error {
	names := []string{"init", "check", "show", "import", "schema"}
	if c.NArg() == 0 {
		return hint.With(args.Usagef("evidence needs to know what to do"), "ggufreap evidence init, check, show, import or schema")
	}
	name, rest := c.Args().First(), c.Args().Slice()[1:]
	verb := evidenceVerbs[name]
	if verb == nil {
		err := args.Usagef("evidence does not know %q, want init, check, show, import or schema", name)
		if near := args.Closest(name, names); near != "" {
			return hint.With(err, "did you mean: ggufreap evidence %s", near)
		}
		return err
	}
	if takes := name != "init" && name != "schema"; takes && len(rest) == 0 || !takes && len(rest) > 0 {
		return args.Usagef("evidence %s takes %s", name, map[bool]string{true: "a file or several", false: "no file"}[takes])
	}
	if c.Bool("json") && name != "check" {
		return args.Usagef("--json is for evidence check: %s prints what it makes", name)
	}
	return verb(con, c, rest)
}

// put writes a document to the output, or prints it.
func put(con *ui.Console, c *cli.Context, document []byte, sources []string) error {
	output := c.String("output")
	if output == "" || output == files.Stdin {
		con.Printf("%s", document)
		return nil
	}
	size, err := files.Write(output, c.Bool("force"), sources, files.Bytes(document))
	if err == nil {
		con.Field("written", "%s, %s", text.Safe(output), text.Size(size))
	}
	return err
}

func evidenceInit(con *ui.Console, c *cli.Context, _ []string) error {
	return put(con, c, evidence.Template(), nil)
}

func evidenceSchema(con *ui.Console, c *cli.Context, _ []string) error {
	return put(con, c, evidence.JSONSchema(), nil)
}

// An evidenceReport is what "evidence check --json" prints.
type evidenceReport struct {
	Schema string          `json:"schema"`
	OK     bool            `json:"ok"`
	Files  []checkedSource `json:"files"`
}

// A checkedSource is a file of evidence that was looked at.
type checkedSource struct {
	File     document.Text   `json:"file"`
	Rows     int             `json:"rows"`
	Setups   int             `json:"setups"`
	Sources  int             `json:"sources"`
	FilledIn bool            `json:"filled_in"`
	Faults   []evidenceFault `json:"faults"`
	Warnings []evidenceFault `json:"warnings"`
}

type evidenceFault struct {
	Line *int   `json:"line"` // null where it is about no single one
	What string `json:"what"`
}

// evidenceCheck says what is wrong with each file, and what is to be warned of.
func evidenceCheck(con *ui.Console, c *cli.Context, paths []string) error {
	report := evidenceReport{Schema: "ggufreap/evidencecheck/v1", OK: true}
	for _, path := range paths {
		data, err := files.ReadInput(con.In, path)
		if err != nil {
			return err
		}
		f := checkSource(files.Name(path), data)
		report.OK = report.OK && len(f.Faults) == 0
		report.Files = append(report.Files, f)
	}
	if c.Bool("json") {
		if err := con.JSON(report); err != nil {
			return err
		}
	} else {
		describeChecks(con, report)
	}
	if !report.OK {
		return errDiffers
	}
	return nil
}

// checkSource reads one file of evidence.
func checkSource(name string, data []byte) checkedSource {
	f := checkedSource{File: document.Text(name), Faults: []evidenceFault{}, Warnings: []evidenceFault{}}
	d, err := evidence.Read(data)
	faults, isFaults := err.(evidence.Faults)
	if err != nil && !isFaults {
		faults = evidence.Faults{{What: err.Error()}}
	}
	f.Faults = append(f.Faults, faultsOf(faults)...)
	if d != nil {
		f.Rows, f.Setups, f.Sources, f.FilledIn = len(d.Rows), len(d.Setups), len(d.Sources), !d.Blank()
		f.Warnings = append(f.Warnings, faultsOf(d.Warnings)...)
	}
	return f
}

func faultsOf(list evidence.Faults) []evidenceFault {
	var out []evidenceFault
	for _, f := range list {
		fault := evidenceFault{What: f.What}
		if f.Line > 0 {
			fault.Line = &f.Line
		}
		out = append(out, fault)
	}
	return out
}

func (f evidenceFault) String() string {
	if f.Line == nil {
		return text.Safe(f.What)
	}
	return fmt.Sprintf("line %d: %s", *f.Line, text.Safe(f.What))
}

func describeChecks(con *ui.Console, report evidenceReport) {
	for _, f := range report.Files {
		con.Field("file", "%s", text.Safe(string(f.File)))
		for _, fault := range f.Faults {
			con.StyledField(ui.Red, "wrong", fault.String())
		}
		for _, fault := range f.Warnings {
			con.StyledField(ui.Yellow, "warning", fault.String())
		}
		con.Field("rows", "%s, %s, %s", text.Count(f.Rows, "row"), text.Count(f.Setups, "setup"), text.Count(f.Sources, "source"))
	}
	con.Printf("\n")
	con.Field("result", "%s", map[bool]string{true: "nothing is wrong", false: "something is wrong"}[report.OK])
}

// evidenceShow prints the tables.
func evidenceShow(con *ui.Console, _ *cli.Context, paths []string) error {
	for _, path := range paths {
		d, err := readEvidenceFile(con.In, path)
		if err != nil {
			return err
		}
		for _, f := range d.Warnings {
			con.Warnf("%s: %s", path, f)
		}
		for i, t := range d.Tables() {
			if i > 0 {
				con.Printf("\n")
			}
			con.Paragraph(ui.Bold, text.Safe(t.Title))
			if t.About != "" {
				con.Paragraph(ui.Dim, text.Safe(t.About))
			}
			printEvidence(con, t)
		}
	}
	return nil
}

func printEvidence(con *ui.Console, t evidence.Table) {
	cols := make([]table.Column, len(t.Columns))
	for i, title := range t.Columns {
		cols[i] = table.Left(title)
	}
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		for _, cell := range row {
			rows[i] = append(rows[i], text.Safe(cell))
		}
	}
	con.Table("", cols, slices.Values(rows))
}

// evidenceImport makes a document of what tools wrote.
func evidenceImport(con *ui.Console, c *cli.Context, paths []string) error {
	var list []evidence.File
	for _, path := range paths {
		data, err := files.ReadInput(con.In, path)
		if err != nil {
			return err
		}
		list = append(list, evidence.File{Name: filepath.Base(path), Data: data})
	}
	document, notes, err := evidence.Import(list)
	for _, note := range notes {
		con.Warnf("%s", note)
	}
	if err != nil {
		return err
	}
	return put(con, c, document, paths)
}
