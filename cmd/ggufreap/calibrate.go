package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf/remote"
	"ggufreap/reap"
	"ggufreap/reap/engine"
)

const calibrateHelp = `Measure what the routed experts of a model do, by running it in llama.cpp.

Usage:
  ggufreap calibrate --self-text N [flags] -o scores.npz MODEL
  ggufreap calibrate --text FILE [flags] -o scores.npz MODEL

For each layer and expert: tokens routed, and sums of the router's weight g, of
the size |f| of the expert's output, of g*|f| (REAP), and of the energy of what
enters its down projection. "plan --from scores.npz" ranks by them. The sums are
exact: threads, batches and the order of texts change no bit of them.

Two files are written: scores.npz, which numpy and the community's tools read,
and scores.json, which says too what was measured, on what, how and by which
llama.cpp.

A model larger than memory: every pass over the layers reads the file once and
serves --ubatch tokens. 1,000,000 tokens of a 330 GB file at --ubatch 4096 are
about 250 passes; at 2 GB/s each takes three minutes. Give --ctx 2048 --batch
4096 --ubatch 4096, so that two chunks are computed in one pass. Each token
takes 4 bytes for each word of the vocabulary: 2.7 GB in that example.

On many machines "--only I/N" measures a part of the text and writes its exact
sums, scores.part-I-of-N.sums; added up they are the scores of one run, bit for
bit, where the machines are alike.

Flags:

Examples:
  ggufreap calibrate --self-text 65536 -o scores.npz Model.gguf
  ggufreap calibrate --text code=a.jsonl --text prose=b.txt -o scores.npz M.gguf
  ggufreap plan --from scores.npz --keep 96 -o plan.json Model.gguf
`

func calibrateCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "calibrate",
		Usage:       "measure the routed experts by running the model in llama.cpp",
		Description: calibrateHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the scores to `FILE`, .npz, and beside it .json; - prints the latter"},
			&cli.BoolFlag{Name: "force", Usage: "replace files that exist"},
			&cli.StringFlag{Name: "only", Usage: "`I/N`: measure part I of N of the text, on one of many machines; plan and assemble add the parts up (auto/N: the part whose number a scheduler gives)"},
			&cli.BoolFlag{Name: "resume", Usage: "go on after an interruption, with the same bits"},
			&cli.StringFlag{Name: "pin", Usage: "`FILE`: the model's pin: the scores then name its weights too"},
			&cli.BoolFlag{Name: "json", Usage: "print what was measured as JSON"},
		}, progressFlags(con), textFlags(), args.In("How far",
			&cli.IntFlag{Name: "keep", Usage: "`N`: how many experts you mean to keep; for that number the agreement of two halves of the text is reported (568 of 896, half of any other number)"},
			&cli.Float64Flag{Name: "until-stable", Usage: "`X`: stop when they agree by X, such as 0.98"},
		), runFlags()),
		Action: func(c *cli.Context) error { return calibrateAction(con, c) },
	}
}

// textFlags say what is measured on.
func textFlags() []cli.Flag {
	return args.In("What to measure on",
		&cli.StringSliceFlag{Name: "text", Usage: "`FILE`: a text, or LABEL=FILE to keep kinds of text apart, or LABEL=FILE:WEIGHT to have it count for more or less (repeatable). " +
			"Plain text, or lines of JSON (.jsonl): {\"text\": ...}, {\"messages\": [...]}, {\"tokens\": [...]}"},
		&cli.IntFlag{Name: "self-text", Usage: "`N`: let the model write N tokens itself and measure on them: no text of yours is needed; what you use the model for can be different"},
		&cli.Uint64Flag{Name: "seed", Usage: "`N`: seed of what the model writes (0)"},
		&cli.IntFlag{Name: "ctx", Usage: "`N`: tokens of a chunk, which sees nothing of the others (2048, or what the model was trained on if less)"},
		args.OneOf(&cli.StringFlag{Name: "bos", Value: "auto", Usage: "`MODE`: auto, on or off: begin each chunk with BOS (auto: as the model does)"}, "auto", "on", "off"),
		&cli.BoolFlag{Name: "special", Usage: "text that spells a special token becomes that token"},
		args.OneOf(&cli.StringFlag{Name: "tail", Value: "keep", Usage: "`MODE`: keep or drop what is left of a text after whole chunks (keep)"}, "keep", "drop"),
		&cli.StringFlag{Name: "template", Usage: "`NAME`: chat template for messages, of those that llama.cpp knows by name, such as chatml (the model's own)"},
	)
}

// runFlags are llama.cpp's.
func runFlags() []cli.Flag {
	return args.In("How llama.cpp runs",
		&cli.IntFlag{Name: "threads", Usage: "`N` (as many as are fastest, which is tried out while it runs)"},
		&cli.IntFlag{Name: "batch", Value: 512, Usage: "`N`: tokens of chunks that are computed side by side (512)"},
		&cli.IntFlag{Name: "ubatch", Usage: "`N`: tokens that are computed at a time (512, less where the vocabulary is large)"},
		&cli.IntFlag{Name: "gpu-layers", Usage: "`N`: layers on devices other than the processor (0)"},
		&cli.StringFlag{Name: "devices", Usage: "`A,B`: which of them, as \"ggufreap engine\" names them"},
		&cli.StringFlag{Name: "tensor-split", Usage: "`X,Y`: shares of each"},
		&cli.StringFlag{Name: "rpc", Usage: "`HOST:PORT,...`: llama.cpp's workers on other machines; this and the three above were written from headers and have not been tried"},
		args.OneOf(&cli.StringFlag{Name: "mmap", Value: "on", Usage: "`MODE`: on or off: map the files, or read them into memory (on)"}, "on", "off"),
		libraryFlag(),
	)
}

func calibrateAction(con *ui.Console, c *cli.Context) error {
	campaign, err := readCampaign(c)
	if err != nil {
		return err
	}
	s, err := openSource(con, c)
	if err != nil {
		return err
	}
	defer s.Close()
	warnOfSource(con, s)
	if err := s.bindPin(c, c.String("pin"), ""); err != nil {
		return err
	}
	if err := cmp.Or(checkWhole(s.Model), checkMeasurable(s, campaign)); err != nil {
		return err
	}
	e, err := engines.Usable(c.Context, c.String("llama-lib"))
	if err != nil {
		return err
	}
	defer e.Close()
	warnOfContext(con, s, campaign)
	campaign.Remembered = func(ctx context.Context, tokens int) uint64 {
		return rememberedBytes(ctx, c.String("llama-lib"), s.Paths()[0], tokens)
	}
	result, err := campaign.Run(c.Context, con, e)
	switch {
	case errors.As(err, new(*engine.Gone)):
		return s.named(err)
	case err != nil:
		return err
	case campaign.Output == files.Stdin:
		return printScores(con, campaign, result)
	case c.Bool("json"):
		return con.JSON(*calibration.NewDocument(campaign, result))
	}
	calibration.Describe(con, campaign, result)
	return nil
}

// rememberedBytes asks llama.cpp, in a process of its own, what a sequence of so many tokens takes.
func rememberedBytes(ctx context.Context, library, path string, tokens int) (sum uint64) {
	j, err := engines.Judge(ctx, library, path, tokens)
	if err != nil || j.Verdict == nil {
		return 0
	}
	for _, part := range j.Verdict.Memory {
		if part.Part != "compute" {
			sum += part.Bytes
		}
	}
	return sum
}

// printScores prints the score document.
func printScores(con *ui.Console, campaign *calibration.Campaign, r *calibration.Result) error {
	document, err := r.Scores.Encode(campaign.Experts)
	if err == nil {
		con.Printf("%s", document)
	}
	return err
}

// warnOfContext warns of chunks that are longer than any text that the model was trained on.
func warnOfContext(con *ui.Console, s *source, campaign *calibration.Campaign) {
	trained, ok := s.Metadata().ArchUint("context_length")
	if ok && uint64(campaign.Context) > trained {
		con.Warnf("--ctx %d is more than the %d tokens that the model was trained on: what is measured behind them says little", campaign.Context, trained)
	}
}

// checkMeasurable refuses a model that cannot be measured, and completes what depends on it.
func checkMeasurable(s *source, campaign *calibration.Campaign) error {
	if !onThisMachine(s.Model) {
		return hint.With(fmt.Errorf("calibrate runs the model in llama.cpp, which wants its files on this machine"),
			"ggufreap reshard --shards %d -o DIR %s brings it here", len(s.Paths()), args.ShellQuote(remote.Redacted(s.Paths()[0])))
	}
	if s.experts.Architecture == "llama4" {
		return hint.With(s.named(fmt.Errorf("its router's weights scale the input of the experts, not their output: g*|f| has no meaning in it")),
			"plan ranks it by its router: ggufreap plan --keep N")
	}
	if campaign.Keep == 0 {
		campaign.Keep = max(s.experts.Count/2, s.experts.Used)
		for _, preset := range reap.Presets {
			if preset.Experts == s.experts.Count {
				campaign.Keep = preset.Keep
			}
		}
	}
	if err := s.experts.CheckKeep(campaign.Keep); err != nil {
		return s.named(err)
	}
	campaign.Model, campaign.Experts = s.Model, s.experts
	var named reap.Plan
	s.claim(&named)
	campaign.Source = named.Source
	return nil
}
