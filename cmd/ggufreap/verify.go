package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/cmd/ggufreap/internal/verification"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

const verifyHelp = `Check a release folder, or any model.

Usage:
  ggufreap verify [flags] MODEL

In a folder with a MANIFEST.sha256 every listed file must be there with the
listed bytes, and every model file, known by its first bytes, must be listed.
The shards must be complete and agree, offsets and sizes must lie inside the
files, padding must be zero, and every routed tensor, router and bias must have
as many experts as the metadata says. A pin.json.zst tells which tensor and
which expert is not what it should be, and plan.json must fit the model and its
reap.* keys. SHA256SUMS, *.sha256 and names of blobs that are digests are used
where they lie beside the model. Everything found is listed at once, and so is
what was not checked and what is therefore not shown.

A folder is what lies right in it, and what MANIFEST.sha256 lists below it. With
a list it may hold several models, all of which are checked; expectations, pin
and plan are about the largest. Without one it must hold exactly one; what goes
beside a model, such as a projector, is set aside. Of a repository in a hub's
cache the snapshot of refs/main is checked.

Only noted, unless --strict makes findings of them, are files that are no models
and that MANIFEST.sha256 does not list, files that can run code, archives and
compressed files, links that lead out of the folder, other folders, keys that no
digest counts, keys that the release states as edited, what inspect calls a
warning, such as a tensor that llama.cpp would not ask for, and a plan.json that
is not there though the metadata names a plan.

With --source-pin the release is proven to be made of its source's bytes; the
source itself is not needed. Every tensor is the source's, or consists of the
same experts of it, in the same order, as all tensors of its layer do; nothing
is missing or added; and only such metadata differs as pruning may change. It
works for releases that anyone made.

With --only the files of one part are read: their sums, and their tensors and
experts against pin.json.zst. Headers, names and metadata are looked at by all.

Flags:

Exit codes:
  0  nothing was found
  1  something is not as it should be
  2  the check could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap verify K3-REAP568
  ggufreap verify --expect experts=568,shards=14 K3-REAP568
  ggufreap verify --against hf://org/K3@9f62e4e K3
  ggufreap verify --fast K3-00001-of-00009.gguf
  ggufreap verify --source-pin K3.pin.json.zst K3-REAP568
  ggufreap verify --only 3/14 -o checked K3-REAP568
`

func verifyCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "verify",
		Usage:       "check a release folder, or any model",
		Description: verifyHelp,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: prove the release against the pin of its source (one in the folder, if it has the digest that the release states)"},
			&cli.StringFlag{Name: "source", Usage: "`MODEL`: read the source too, and prove the release against it"},
			&cli.StringFlag{Name: "source-digest", Usage: "`D`: the pin digest that the source must have"},
			&cli.StringFlag{Name: "plan", Usage: "`FILE`: the plan that it must follow (plan.json, if it has one)"},
			args.Suggest(&cli.StringSliceFlag{Name: "expect", Usage: "`KEY=VALUE[,KEY=VALUE...]`: facts the model must have: " + strings.Join(expectKeys, ", ")},
				expectWords()...),
			&cli.StringFlag{Name: "against", Usage: "`ADDRESS`: the files must be those that the hub lists there: hf://OWNER/REPO[@REVISION][/PATH]"},
			&cli.BoolFlag{Name: "fast", Usage: "read headers only: no sums, no weights digest"},
			&cli.BoolFlag{Name: "strict", Usage: "what is otherwise only noted is a finding"},
			&cli.BoolFlag{Name: "complete", Usage: "what was not checked is a finding, so that 0 means that nothing is left unchecked"},
			onlyFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "with --only: leave the record of the part in the folder `DIR`"},
			readersFlag(),
			jsonFlag(),
		}, slices.Concat(trustFlags(), artifactFlags(), progressFlags(con))...),
		Action: func(c *cli.Context) error { return verifyAction(con, c) },
	}
}

// expectKeys are the facts that --expect takes.
var expectKeys = []string{"architecture", "experts", "experts_used", "shards", "tensors", "file_bytes", "tensor_bytes",
	"structure_digest", "metadata_digest", "pin_digest", "weights_digest"}

func expectWords() []string {
	words := make([]string, len(expectKeys))
	for i, key := range expectKeys {
		words[i] = key + "="
	}
	return words
}

func verifyAction(con *ui.Console, c *cli.Context) error {
	if err := checkVerifyFlags(c); err != nil {
		return err
	}
	job := &verification.Job{Path: c.Args().First(), PlanPath: c.String("plan"), Stdin: con.In, Strict: c.Bool("strict")}
	options, err := verifyOptions(con, c, job)
	if err != nil {
		return err
	}
	part := &verifiedPart{}
	if c.IsSet("only") {
		if err := part.only(c, options); err != nil {
			return err
		}
	}
	p := con.StartProgress("verify", 0)
	options.Progress = p.Set
	seen, err := verify.Release(c.Context, job.Path, *options)
	p.Finish()
	if err != nil {
		return cmp.Or(checkSettled(job.Path), err)
	}
	if job.Err != nil {
		return job.Err
	}
	if c.IsSet("output") {
		if err := part.write(con, c.String("output"), seen); err != nil {
			return err
		}
	}
	return report(con, seen, "ggufreap/verify/v1", c.Bool("json"))
}

// checkVerifyFlags refuses what cannot be checked, before anything is read.
func checkVerifyFlags(c *cli.Context) error {
	path := c.Args().First()
	switch {
	case c.NArg() != 1:
		return hint.With(args.Usagef("verify takes one folder or file, got %d", c.NArg()), "ggufreap verify DIR")
	case remote.IsAddress(path):
		return hint.With(args.Usagef("verify checks files of this machine, got an address"), "to hold a folder against it: ggufreap verify --against %s DIR", args.ShellQuote(remote.Redacted(path)))
	}
	if err := cmp.Or(checkModelPath(path), checkDocument(path), checkVerifyPart(c)); err != nil {
		return err
	}
	switch {
	case c.IsSet("plan") && !c.IsSet("source-pin") && !c.IsSet("source") && !c.IsSet("source-digest"):
		return args.Usagef("--plan says what the release keeps of its source, so --source-pin or --source is needed too")
	case c.IsSet("source-pin") && c.IsSet("source"):
		return args.Usagef("--source-pin and --source contradict each other: give the source or its pin")
	}
	return nil
}

// checkDocument refuses a document that was named in place of the model that it is about.
func checkDocument(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() || gguf.IsModelFile(path) {
		return nil
	}
	anything := errors.New("no model")
	if err := filekind.ExplainFile(anything, path, filekind.Model); err != anything {
		return err
	}
	return nil
}

// verifyOptions are what flags ask for, with what they name read.
func verifyOptions(con *ui.Console, c *cli.Context, job *verification.Job) (*verify.Options, error) {
	o := &verify.Options{
		Fast:      c.Bool("fast"),
		Strict:    c.Bool("strict"),
		Complete:  c.Bool("complete"),
		Inspect:   job.Inspect,
		SourceKey: reap.KeySourcePin,
		Measure:   func(m *gguf.Model) manifest.BuildOptions { return pinOptions(c, m) },
		Prove:     job.Prove,
		Workers:   c.Int("workers"),
	}
	var err error
	if o.Expect, err = expectations(c); err != nil {
		return nil, err
	}
	if o.SourceDigest, err = digestFlag(c, "source-digest"); err != nil {
		return nil, err
	}
	if job.Source, err = sourceOfRelease(con, c); err != nil {
		return nil, err
	}
	o.Source = job.Source
	if c.Bool("engine") {
		job.Judge = func(m *gguf.Model, r *verify.Report) error { return judgeRelease(c, m, r) }
	}
	if o.Trust, err = readTrust(c); err != nil {
		return nil, err
	}
	if c.IsSet("against") {
		o.Listing, _, err = askListing(con, c, c.String("against"))
	}
	return o, err
}

// expectations reads --expect.
func expectations(c *cli.Context) ([]verify.Expectation, error) {
	var all []verify.Expectation
	for _, s := range c.StringSlice("expect") {
		list, err := verify.ParseExpectations(s)
		if err != nil {
			return nil, args.Usagef("--expect: %w", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// sourceOfRelease returns the pin of what the release is said to be made of, nil when nothing
// says.
func sourceOfRelease(con *ui.Console, c *cli.Context) (*manifest.Pin, error) {
	if path := c.String("source-pin"); path != "" {
		return readSourcePin(c, path)
	}
	path := c.String("source")
	if path == "" {
		return nil, nil
	}
	if err := checkModelPath(path); err != nil {
		return nil, err
	}
	m, err := openPath(con, path, nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	pin, err := pin(con, c, m)
	if err != nil {
		return nil, err
	}
	want, err := digestFlag(c, "source-digest")
	if err != nil {
		return nil, err
	}
	if err := pin.CheckDigest(want); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return pin, nil
}

// report prints what a check saw, and turns findings into the exit code.
func report(con *ui.Console, r *verify.Report, schema string, asJSON bool) error {
	if asJSON {
		if err := con.JSON(verification.NewDocument(schema, r)); err != nil {
			return err
		}
	} else {
		verification.Show(con, r)
	}
	if !r.OK() {
		return errDiffers
	}
	return nil
}
