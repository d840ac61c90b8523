package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
)

// layoutFlags have llama.cpp judge what is to be written.
func layoutFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "engine", Usage: "ask llama.cpp whether it would load what is to be written, before a byte is copied (where one is found; --engine=off does not)"},
		libraryFlag(),
	}
}

// judgeLayout asks llama.cpp about a release before it is written. A refusal is an error, with
// llama.cpp's words.
func judgeLayout(con *ui.Console, c *cli.Context, r *release.Release) error {
	wanted := c.Bool("engine")
	if c.IsSet("engine") && !wanted {
		return nil
	}
	j, err := engines.JudgeLayout(c.Context, c.String("llama-lib"), r.Stem, r.Layout, 0)
	switch {
	case err != nil && c.Context.Err() != nil:
		return err
	case err != nil && wanted:
		return err
	case errors.Is(err, engines.ErrNone):
		return nil
	case err != nil:
		con.Warnf("llama.cpp was not asked about what is written: %v", hint.Without(err))
		return nil
	case j.Refused != "":
		return hint.With(fmt.Errorf("nothing was written: %s would not load it: %s", j.Build, text.Safe(j.Refused)),
			"--engine=off writes it all the same")
	}
	r.Engine = j.Build
	return nil
}

// artifactFlags have llama.cpp judge a model that is there.
func artifactFlags() []cli.Flag {
	return args.In("llama.cpp's verdict",
		&cli.BoolFlag{Name: "engine", Usage: "ask llama.cpp too whether it would load the model, from its headers, and what it takes"},
		&cli.IntFlag{Name: "ctx", Usage: "`N`: with --engine, what a context of N tokens takes (not asked: to tell, llama.cpp takes memory for the recurrent state that a model may have)"},
		libraryFlag(),
	)
}

// judgeArtifact asks llama.cpp about the model at path.
func judgeArtifact(c *cli.Context, m *gguf.Model) (*engines.Judgement, error) {
	if c.IsSet("ctx") && c.Int("ctx") < 1 {
		return nil, args.Usagef("--ctx is %d, want a number above 0", c.Int("ctx"))
	}
	if err := checkWhole(m); err != nil {
		return nil, err
	}
	if onThisMachine(m) {
		return engines.Judge(c.Context, c.String("llama-lib"), m.Paths()[0], c.Int("ctx"))
	}
	layout, err := m.LayoutWith(m.Metadata())
	if err != nil {
		return nil, err
	}
	return engines.JudgeLayout(c.Context, c.String("llama-lib"), m.Name, layout, c.Int("ctx"))
}

// onThisMachine reports whether llama.cpp can open a model: not one that is read from a server, or
// put together of pieces.
func onThisMachine(m *gguf.Model) bool {
	_, err := os.Stat(m.Paths()[0])
	return err == nil
}

// verdictLines are what a judgement says: each a label and a text.
func verdictLines(c *cli.Context, j *engines.Judgement) [][2]string {
	if j.Refused != "" {
		return [][2]string{{"engine", fmt.Sprintf("%s does not load it: %s", j.Build, text.Safe(j.Refused))}}
	}
	lines := [][2]string{
		{"engine", j.Build + " would load it"},
		{"weights", text.Size(int64(j.Verdict.Weights)) + " on " + text.Safe(strings.Join(j.Verdict.Devices, ", "))},
	}
	for _, m := range j.Verdict.Memory {
		lines = append(lines, [2]string{m.Part, fmt.Sprintf("%s on %s, for %s of context", text.Size(int64(m.Bytes)), text.Safe(m.Device), text.Count(c.Int("ctx"), "token"))})
	}
	return lines
}

// judgeInspected asks llama.cpp about an inspected model, with --engine.
func judgeInspected(c *cli.Context, m *gguf.Model, in *inspect.Inspection) (*engines.Judgement, error) {
	if !c.Bool("engine") {
		return nil, nil
	}
	j, err := judgeArtifact(c, m)
	if err != nil {
		return nil, err
	}
	in.Engine = &inspect.Engine{Build: j.Build, Loads: j.Refused == "", Reason: document.Text(j.Refused)}
	if j.Verdict == nil {
		return j, nil
	}
	in.Engine.WeightBytes, in.Engine.Devices = j.Verdict.Weights, j.Verdict.Devices
	for _, memory := range j.Verdict.Memory {
		in.Engine.Memory = append(in.Engine.Memory, inspect.Memory{Part: memory.Part, Device: memory.Device, Bytes: memory.Bytes})
	}
	return j, nil
}

// showVerdict prints what llama.cpp says of the model.
func showVerdict(con *ui.Console, c *cli.Context, j *engines.Judgement) {
	if j == nil {
		return
	}
	con.Printf("\n")
	for _, line := range verdictLines(c, j) {
		con.Field(line[0], "%s", line[1])
	}
}

// judgeRelease adds llama.cpp's verdict about a model to a report.
func judgeRelease(c *cli.Context, m *gguf.Model, r *verify.Report) error {
	j, err := judgeArtifact(c, m)
	if err != nil {
		return err
	}
	if j.Refused != "" {
		r.Add(verify.Finding{Kind: verify.KindLoading, Expert: manifest.NoExpert, What: fmt.Sprintf("%s does not load it: %s", j.Build, j.Refused)})
		return nil
	}
	said := "engine:"
	for i, line := range verdictLines(c, j) {
		if i > 0 {
			said += "; " + line[0]
		}
		said += " " + line[1]
	}
	r.Checked = append(r.Checked, said)
	return nil
}
