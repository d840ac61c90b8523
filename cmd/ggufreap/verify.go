package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"ggufreap/manifest"
	"ggufreap/manifest/verify"
)

const verifyHelp = `Check a release folder, or any shard set.

Usage:
  ggufreap verify [flags] ARTIFACT

In a folder with a MANIFEST.sha256 every listed file must be there with the
listed bytes, and every model file must be listed. The shards must be complete
and agree, offsets and sizes must lie inside the files, and every routed tensor,
router and bias must have as many experts as the metadata says. A pin.json.zst
tells which tensor and which expert is not what it should be, and plan.json
must fit the model. Everything found is listed at once, and so is what was not
checked and what that leaves unproven.

A folder is what lies right in it, and what MANIFEST.sha256 lists below it. With
a list it may hold several models, all of which are checked; expectations, pin
and plan are about the largest. Without one it must hold exactly one.

Only noted, unless --strict makes findings of them, are files that are no models
and that MANIFEST.sha256 does not list, other folders, what inspect calls a
warning, such as a missing tokenizer or what llama.cpp refuses, and a plan.json
that is not there though the metadata names a plan.

With --source-pin the release is proven to be made of its source's bytes, with
the source nowhere near: every tensor is the source's, or consists of the same
experts of it, in the same order, as all tensors of its block do; nothing is
missing or added; and only such metadata differs as pruning may change. It works
for releases that anyone made.

Flags:
      --source-pin FILE  prove the release against the pin of its source
      --plan FILE        the plan that it must follow (plan.json, if it has one)
      --expect KEY=VALUE[,KEY=VALUE...]
                         facts the artifact must have: architecture,
                         experts, experts_used, shards, tensors, file_bytes,
                         tensor_bytes, structure_digest, metadata_digest,
                         weights_digest
      --fast             read headers only: no sums, no weights digest
      --strict           what is otherwise only noted is a finding
      --workers N        files read at once (two for each processor)
      --json             print a JSON document
` + progressHelp + `  -h, --help             show this text

Exit codes:
  0  nothing was found
  1  something is not as it should be
  2  the check could not be carried out

Examples:
  ggufreap verify K3-REAP568
  ggufreap verify --expect experts=568,shards=14 K3-REAP568
  ggufreap verify --fast K3-00001-of-00009.gguf
  ggufreap verify --source-pin K3.pin.json.zst K3-REAP568
`

func verifyCommand(con *console) *cli.Command {
	return &cli.Command{
		Name:               "verify",
		CustomHelpTemplate: verifyHelp,
		Flags: append(con.progressFlags(),
			&cli.StringSliceFlag{Name: "expect"},
			&cli.StringFlag{Name: "source-pin"},
			&cli.StringFlag{Name: "plan"},
			&cli.BoolFlag{Name: "fast"},
			&cli.BoolFlag{Name: "strict"},
			&cli.IntFlag{Name: "workers"},
			&cli.BoolFlag{Name: "json"},
		),
		Action: func(c *cli.Context) error { return verifyAction(con, c) },
	}
}

func verifyAction(con *console, c *cli.Context) error {
	if c.NArg() != 1 {
		return withHint(usagef("verify takes one folder or file, got %d", c.NArg()), "ggufreap verify DIR")
	}
	var expect []verify.Expectation
	for _, s := range c.StringSlice("expect") {
		list, err := verify.ParseExpectations(s)
		if err != nil {
			return usagef("--expect: %w", err)
		}
		expect = append(expect, list...)
	}
	job, err := newVerification(c)
	if err != nil {
		return err
	}
	p := con.startProgress("verify", 0)
	report, err := verify.Release(c.Context, job.path, verify.Options{
		Fast:     c.Bool("fast"),
		Strict:   c.Bool("strict"),
		Expect:   expect,
		Inspect:  job.inspect,
		Source:   job.source,
		Prove:    job.prove,
		Workers:  c.Int("workers"),
		Progress: p.set,
	})
	p.finish()
	if err == nil {
		err = job.err
	}
	if err != nil {
		return err
	}
	return con.report(c, "ggufreap/verify/v1", report)
}

// report prints what a check saw, and turns findings into the exit code.
func (con *console) report(c *cli.Context, schema string, r *verify.Report) error {
	if c.Bool("json") {
		if err := con.json(newReportDocument(schema, r)); err != nil {
			return err
		}
	} else {
		con.printReport(r)
	}
	if !r.OK() {
		return errDiffers
	}
	return nil
}

// maxFindings bounds the findings that are printed; the JSON document has all.
const maxFindings = 50

// printReport prints what verify saw.
func (con *console) printReport(r *verify.Report) {
	if a := r.Artifact; a != nil {
		con.field("artifact", "%s, %s, %s", safe(a.Name), architectureText(a.Architecture), count(a.Shards, "shard"))
		con.field("files", "%s", sizeText(a.FileBytes))
		con.field("tensor data", "%s", sizeText(a.TensorBytes))
	}
	for _, what := range r.Checked {
		con.field("checked", "%s", safe(what))
	}
	for _, g := range r.Gaps {
		con.field("not checked", "%s", safe(g.What))
		con.field("", "leaves open: %s", safe(g.Leaves))
	}
	for _, n := range r.Notes {
		place := ""
		if n.File != "" {
			place = safe(n.File) + ": "
		}
		con.field("note", "%s%s", place, safe(n.What))
	}
	if r.Proof != nil {
		con.printProof(r.Proof)
	}
	con.printf("\n")
	for _, f := range r.Findings[:min(len(r.Findings), maxFindings)] {
		con.styledField(red, string(f.Kind), findingPlace(f)+safe(f.What))
	}
	if more := len(r.Findings) - maxFindings; more > 0 {
		con.field("", "and %s more; --json lists them all", count(more, "finding"))
	}
	if r.OK() {
		con.field("result", "nothing found")
		return
	}
	con.field("result", "%s", paint(con.color, red, count(len(r.Findings), "finding")))
}

// findingPlace names where a finding is, ready to be followed by what it is.
func findingPlace(f verify.Finding) string {
	place := ""
	if f.File != "" {
		place += safe(f.File) + ": "
	}
	if f.Tensor != "" {
		place += "tensor " + safe(strconv.Quote(f.Tensor)) + ": "
	}
	if f.Expert != manifest.NoExpert {
		place += "expert " + grouped(f.Expert) + ": "
	}
	return place
}

// reportDocument is the document of verify --json and pin --check --json.
type reportDocument struct {
	Schema   string             `json:"schema"`
	OK       bool               `json:"ok"`
	Path     text               `json:"path"`
	Artifact *manifest.Artifact `json:"artifact"` // null when no model could be opened
	Findings []verify.Finding   `json:"findings"`
	Checked  []string           `json:"checked"`
	Gaps     []verify.Gap       `json:"gaps"`
	Notes    []verify.Note      `json:"notes"`
	Proof    *verify.Proof      `json:"proof"` // null without a pin of the source
}

func newReportDocument(schema string, r *verify.Report) reportDocument {
	return reportDocument{
		Schema:   schema,
		OK:       r.OK(),
		Path:     text(r.Path),
		Artifact: r.Artifact,
		Findings: r.Findings,
		Checked:  r.Checked,
		Gaps:     r.Gaps,
		Notes:    r.Notes,
		Proof:    r.Proof,
	}
}
