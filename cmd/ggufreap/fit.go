package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// A budget is room for the files of a model on machines. What counts is the size of the
// shard files, to the byte, as prune would write them; what a program needs to run them
// comes on top. Shards are placed in order: the first machine takes the first shards, as
// many as go in, and so on, since shards hold layers in order.
type budget struct {
	nodes int
	bytes int64 // of each
}

func (b budget) String() string {
	if b.nodes > 1 {
		return fmt.Sprintf("%d machines of %s", b.nodes, text.Size(b.bytes))
	}
	return text.Size(b.bytes)
}

// readBudget reads --fit or --fit-per-node.
func readBudget(c *cli.Context) (budget, error) {
	if c.IsSet("fit") {
		size, err := text.ParseSize(c.String("fit"))
		if err != nil {
			return budget{}, args.Usagef("--fit: %w", err)
		}
		return budget{1, size}, nil
	}
	value := c.String("fit-per-node")
	nodes, each, ok := strings.Cut(value, "x")
	n, err := strconv.ParseUint(nodes, 10, 16)
	if !ok || err != nil || n == 0 {
		return budget{}, hint.With(args.Usagef("--fit-per-node is %q, want NxSIZE", value), "four machines with 119 GB each: --fit-per-node 4x119GB")
	}
	size, err := text.ParseSize(each)
	if err != nil {
		return budget{}, args.Usagef("--fit-per-node: %w", err)
	}
	return budget{int(n), size}, nil
}

// place returns the bytes on each machine, and whether all shards have room.
func (b budget) place(shards []*gguf.ShardLayout) ([]int64, bool) {
	used := []int64{0}
	for _, s := range shards {
		if s.Size > b.bytes {
			return nil, false
		}
		if used[len(used)-1]+s.Size > b.bytes {
			used = append(used, 0)
		}
		used[len(used)-1] += s.Size
	}
	return used, len(used) <= b.nodes
}

// fitKeep returns the greatest keep count whose files fit.
func fitKeep(c *cli.Context, s *source, criterion reap.Criterion) (int, error) {
	b, err := readBudget(c)
	if err != nil {
		return 0, err
	}
	least, fewest, err := fewestLayout(c, s, criterion)
	if err != nil {
		return 0, err
	}
	multiple := max(c.Int("multiple-of"), 1)
	keep, err := s.experts.LargestKeep(func(keep int) (bool, error) {
		if keep%multiple != 0 {
			return false, nil
		}
		if need := least.Bytes() + s.growth(least, keep-fewest); (need-1)/int64(b.nodes) >= b.bytes {
			return false, nil // more than all machines hold, whatever the layout
		}
		layout, err := outline(c, s, keep, criterion)
		if err != nil {
			return false, err
		}
		_, ok := b.place(layout.Shards)
		return ok, nil
	})
	if err == nil && keep == 0 {
		err = fmt.Errorf("nothing fits in %s: with the fewest experts that can be kept, %d, the files have %s", b, fewest, text.Size(least.Bytes()))
		if n := fittingShards(c, s, b, fewest, criterion); n > 0 {
			err = hint.With(err, "that much has room in smaller pieces: --shards %d", n)
		}
	}
	return keep, err
}

// mostShards bounds the pieces that are tried.
const mostShards = 1024

// fittingShards returns into how many shards so few experts must be cut to have room on the
// machines, 0 when that does not help or a flag says how many there are.
func fittingShards(c *cli.Context, s *source, b budget, keep int, criterion reap.Criterion) int {
	if c.IsSet("shards") || c.IsSet("max-shard-size") || c.IsSet("max-shard-tensors") {
		return 0
	}
	for n := 2; n <= mostShards; n++ {
		layout, err := outlineIn(c, s, keep, criterion, gguf.Split{Shards: n})
		if err != nil {
			return 0 // there are no more tensors
		}
		if _, ok := b.place(layout.Shards); ok {
			return n
		}
	}
	return 0
}

// fewestLayout lays out the files with as few experts as can be kept, and returns how many
// those are.
func fewestLayout(c *cli.Context, s *source, criterion reap.Criterion) (*gguf.Layout, int, error) {
	for keep := 1; keep <= s.experts.Count; keep++ {
		if s.experts.CheckKeep(keep) == nil {
			layout, err := outline(c, s, keep, criterion)
			return layout, keep, err
		}
	}
	return &gguf.Layout{}, 0, nil
}

// growth returns how many bytes more files have at least that keep so many experts more
// than a layout: those of the experts, less all padding that may go.
func (s *source) growth(l *gguf.Layout, more int) int64 {
	places, bytes := int64(len(l.Shards)), int64(0)
	for _, t := range s.experts.Tensors() {
		places++
		bytes += t.SlabBytes * int64(more)
	}
	return bytes - places*s.Files[0].Alignment
}

// outline lays out the files of any plan that keeps so many experts, as prune with the same
// flags writes them.
func outline(c *cli.Context, s *source, keep int, criterion reap.Criterion) (*gguf.Layout, error) {
	split, err := pruneSplit(c, s, 0)
	if err != nil {
		return nil, err
	}
	return outlineIn(c, s, keep, criterion, split)
}

func outlineIn(c *cli.Context, s *source, keep int, criterion reap.Criterion, split gguf.Split) (*gguf.Layout, error) {
	plan := &reap.Plan{NumExperts: s.experts.Count, KeepCount: keep, Criterion: criterion}
	s.claim(plan)
	md, err := derivedMetadata(c, s, plan, provenanceOf(c, s, plan, manifest.DigestBytes(nil)))
	if err != nil {
		return nil, err
	}
	return gguf.NewLayout(gguf.Contents{Version: s.Files[0].Version, Metadata: md, Views: reap.Outline(s.Model, s.experts, keep)}, split)
}
