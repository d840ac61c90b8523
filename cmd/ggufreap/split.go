package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// splitFlags say how a model is cut into files.
func splitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "shards", Usage: "exactly `N` files, balanced by bytes"},
		&cli.StringFlag{Name: "max-shard-size", Usage: "`S`: greatest file, header included: 45GB, 40GiB, or bytes"},
		&cli.IntFlag{Name: "max-shard-tensors", Usage: "`N`: greatest number of tensors in a file"},
		&cli.BoolFlag{Name: "empty-first", Usage: "metadata alone in a first shard without tensors"},
	}
}

// readSplit returns the split that the flags ask for, and whether they ask for any.
func readSplit(c *cli.Context) (split gguf.Split, given bool, err error) {
	for _, name := range []string{"shards", "max-shard-tensors"} {
		if c.IsSet(name) && c.Int(name) < 1 {
			return split, false, args.Usagef("--%s is %d, want at least 1", name, c.Int(name))
		}
	}
	split = gguf.Split{Shards: c.Int("shards"), MaxTensors: c.Int("max-shard-tensors"), EmptyFirst: c.Bool("empty-first")}
	if s := c.String("max-shard-size"); s != "" {
		if split.MaxBytes, err = text.ParseSize(s); err != nil {
			return split, false, args.Usagef("--max-shard-size: %w", err)
		}
		if split.MaxBytes == 0 {
			return split, false, args.Usagef("--max-shard-size is 0")
		}
	}
	if split.Shards > 0 && (split.MaxBytes > 0 || split.MaxTensors > 0) {
		return split, false, args.Usagef("--shards contradicts --max-shard-size and --max-shard-tensors: give the number of shards, or their limit")
	}
	return split, split != gguf.Split{}, nil
}
