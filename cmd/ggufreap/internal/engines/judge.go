package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ggufreap/gguf"
	"ggufreap/reap/engine"
)

// A Judgement is llama.cpp's answer about a model, from its headers.
type Judgement struct {
	Build   string // of llama.cpp
	Refused string // its reason, "" when it would load the model
	Verdict *engine.Verdict
}

// Judge asks llama.cpp whether it would load the model whose first shard is at path, and with
// context above 0 what a context of so many tokens takes. An assertion that ends llama.cpp is a
// refusal too; an engine that ends without a reason is an error.
func Judge(ctx context.Context, library, path string, context int) (*Judgement, error) {
	e, err := Usable(ctx, library)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	j := &Judgement{Build: e.Hello().Build()}
	j.Verdict, err = e.Accept(ctx, path, context)
	var failure *engine.Failure
	var gone *engine.Gone
	switch {
	case errors.As(err, &failure) && failure.Refused:
		j.Refused = failure.Reason
	case errors.As(err, &gone) && gone.Reason != "":
		j.Refused = gone.Reason
	case err != nil:
		return nil, err
	}
	return j, nil
}

// JudgeLayout asks as [Judge] does about what a layout describes, before any of it is
// written: the headers are put into a temporary folder, with holes in place of data.
func JudgeLayout(ctx context.Context, library, stem string, layout *gguf.Layout, context int) (*Judgement, error) {
	if _, err := Find(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ggufreap-headers")
	if err != nil {
		return nil, fmt.Errorf("a temporary folder for the headers that llama.cpp judges: %w", err)
	}
	defer os.RemoveAll(dir)
	for i, shard := range layout.Shards {
		if err := writeHeader(filepath.Join(dir, gguf.ShardName(stem, i, len(layout.Shards))), shard); err != nil {
			return nil, fmt.Errorf("headers for llama.cpp to judge: %w", err)
		}
	}
	return Judge(ctx, library, filepath.Join(dir, gguf.ShardName(stem, 0, len(layout.Shards))), context)
}

// writeHeader writes a file with a real header whose data is a hole.
func writeHeader(path string, shard *gguf.ShardLayout) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := gguf.NewWriter(f, shard); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Truncate(shard.Size), f.Close())
}
