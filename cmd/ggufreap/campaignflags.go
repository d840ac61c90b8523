package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap/engine"
)

// readCampaign reads the flags.
func readCampaign(c *cli.Context) (*calibration.Campaign, error) {
	k := &calibration.Campaign{
		Texts: c.StringSlice("text"), Self: c.Int("self-text"), Seed: c.Uint64("seed"),
		Context: c.Int("ctx"), BOS: c.String("bos"), Special: c.Bool("special"), Template: c.String("template"),
		Batch: c.Int("batch"), Ubatch: c.Int("ubatch"), Keep: c.Int("keep"), Stable: c.Float64("until-stable"),
		Resume: c.Bool("resume"), Force: c.Bool("force"), Inputs: typedInputs(c),
		Open: engine.OpenOptions{Threads: c.Int("threads"), GPULayers: c.Int("gpu-layers"), Devices: commaList(c, "devices"), RPC: commaList(c, "rpc")},
	}
	output := c.String("output")
	k.Output = strings.TrimSuffix(strings.TrimSuffix(output, ".npz"), ".json")
	if c.IsSet("only") {
		var err error
		if k.Part, k.Parts, err = args.Part(c.String("only"), os.Getenv); err != nil {
			return nil, err
		}
		k.Resume = !k.Force // a task that is submitted again goes on
	}
	if err := checkCampaign(c, k, output); err != nil {
		return nil, err
	}
	k.DropTail, k.Open.NoMmap = c.String("tail") == "drop", c.String("mmap") == "off"
	for _, share := range commaList(c, "tensor-split") {
		x, err := strconv.ParseFloat(share, 32)
		if err != nil {
			return nil, args.Usagef("--tensor-split has %q, want numbers with commas between them", share)
		}
		k.Open.TensorSplit = append(k.Open.TensorSplit, float32(x))
	}
	return k, nil
}

// checkCampaign refuses flags that say too little, or of which one has no place beside another.
func checkCampaign(c *cli.Context, k *calibration.Campaign, output string) error {
	switch {
	case output == "":
		return hint.With(args.Usagef("nothing says where to write the scores"), "-o scores.npz")
	case output == files.Stdin && k.Parts > 0:
		return args.Usagef("-o - prints the scores of all of the text, and --only measures a part of it")
	case output == files.Stdin && (k.Resume || c.Bool("json")):
		return args.Usagef("-o - prints the score document and writes no file: leave out --resume and --json")
	case output != files.Stdin && (k.Output == output || filepath.Base(k.Output) == "." || strings.HasSuffix(k.Output, "/")):
		return hint.With(args.Usagef("-o is %s, want a name that ends in .npz or .json", text.Safe(output)), "-o scores.npz writes scores.npz and scores.json; -o - prints the latter")
	case len(k.Texts) == 0 && k.Self == 0:
		return hint.With(args.Usagef("nothing to measure on"), "--self-text 65536 lets the model write its own, --text FILE gives it yours")
	case k.Parts > 0 && k.Self > 0:
		return hint.With(args.Usagef("--self-text is not divided by --only: the model writes the whole text on one machine"),
			"--text self=scores.self.jsonl --only %s measures what a run with --self-text has written", c.String("only"))
	case k.Parts > 0 && c.IsSet("until-stable"):
		return args.Usagef("--until-stable and --only exclude each other: no part knows what the others have measured")
	case c.IsSet("seed") && k.Self == 0:
		return args.Usagef("--seed is for --self-text, nothing else is random")
	case c.IsSet("until-stable") && !(k.Stable > 0 && k.Stable <= 1):
		return args.Usagef("--until-stable is %v, want a share such as 0.98", k.Stable)
	}
	for _, f := range calibrateNumbers {
		if n := c.Int(f.name); c.IsSet(f.name) && (n < f.least || n > f.most) {
			return args.Usagef("--%s is %d, want %d to %d", f.name, n, f.least, f.most)
		}
	}
	return nil
}

// calibrateNumbers bound what flags may say. A token is not computed alone: llama.cpp has other
// kernels for it. 512 threads are the most that ggml takes.
var calibrateNumbers = []struct {
	name        string
	least, most int
}{
	{"self-text", 2, 1 << 30}, {"ctx", 2, 1 << 24}, {"keep", 1, 1 << 20}, {"threads", 1, 512},
	{"batch", 1, 1 << 24}, {"ubatch", 3, 1 << 24}, {"gpu-layers", 0, 1 << 20},
}

// commaList returns the parts of a flag that commas divide.
func commaList(c *cli.Context, name string) []string {
	if c.String(name) == "" {
		return nil
	}
	return strings.Split(c.String(name), ",")
}
