package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// CheckOptions change how an artifact is compared with evidence.
type CheckOptions struct {
	// Quick reads headers only: sizes, names, types, shapes, metadata.
	Quick bool
	// Repo and Revision are whose listing the caller was told a tree listing is: the
	// listing itself does not say.
	Repo, Revision string
	// Folder is that of a list in which the model's files are, "" where their names tell.
	Folder string
	// Workers is how many files are read at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes are read.
	Progress manifest.Progress
}

// ErrNotQuick says that the evidence cannot be compared without reading the data.
var ErrNotQuick = errors.New("it says nothing that could be checked without reading the files")

// Evidence is what somebody says of an artifact: a [*Pin], a [Tree], [Sums] or
// [GGUFHashes]. ReadEvidence tells them apart.
type Evidence any

// Check compares a model with evidence. All differences are in the report; the error
// only means that the comparison could not be carried out.
func Check(ctx context.Context, m *gguf.Model, e Evidence, o CheckOptions) (*Report, error) {
	c := &checker{model: m, options: o, report: newReport(m.Name), renamed: map[string]string{}}
	c.report.Artifact = describeModel(m)
	c.report.problems(m, filepath.Base)
	if m.Err() != nil {
		c.report.gap("the model is not sound, so it was compared with nothing", "everything the evidence says of it")
		return c.report, nil
	}
	if err := c.compare(ctx, e); err != nil {
		return nil, err
	}
	return c.report, m.Unchanged()
}

// A checker compares one model with one piece of evidence.
type checker struct {
	model   *gguf.Model
	options CheckOptions
	report  *Report

	looked  bool              // for renamed files
	renamed map[string]string // names in a list of files that it has under others
}

func describeModel(m *gguf.Model) *manifest.Artifact {
	return &manifest.Artifact{Name: m.Name, Architecture: m.Metadata().Architecture(), Version: m.Files[0].Version, ByteOrder: m.Files[0].ByteOrder(), Shards: m.Shards, FileBytes: m.FileBytes(), TensorBytes: m.TensorBytes()}
}

// compare adds to the report how the model differs from what the evidence says.
func (c *checker) compare(ctx context.Context, e Evidence) error {
	switch e := e.(type) {
	case *manifest.Pin:
		return c.pin(ctx, e)
	case lists.Sums:
		return c.sums(ctx, e, len(e))
	case sumsFile:
		return c.sumsFile(ctx, string(e))
	case lists.Tree:
		return c.tree(ctx, e)
	case lists.GGUFHashes:
		return c.hashes(ctx, e)
	}
	return fmt.Errorf("%T is no evidence", e)
}

// pin compares every part of the model with its pin.
func (c *checker) pin(ctx context.Context, p *manifest.Pin) error {
	o := manifest.BuildOptions{Workers: c.options.Workers, Progress: c.options.Progress}
	o.Follow(c.model, p)
	measure := func() (*manifest.Pin, error) { return manifest.BuildPin(ctx, c.model, o) }
	if c.options.Quick {
		measure = func() (*manifest.Pin, error) { return manifest.PinHeaders(c.model, o) }
	}
	got, err := measure()
	if err != nil {
		return err
	}
	comparison := &comparison{report: c.report, got: got, want: p, quick: c.options.Quick, at: placerOf(c.model, filepath.Base)}
	same := comparison.run()
	c.placeSums(p)
	switch {
	case c.options.Quick:
		c.report.gap("only headers were read", "whether any weight is the one pinned")
	case same:
		c.report.PinDigest = p.PinDigest
		c.report.checked(fmt.Sprintf("the same model: pin digest %s", p.PinDigest))
	}
	return nil
}

// placerOf tells where the tensors of a model are; name is how the report names a file.
func placerOf(m *gguf.Model, name func(path string) string) placer {
	return placer{
		file: func(tensor string) string {
			if t := m.Tensor(tensor); t != nil {
				return name(t.File().Name)
			}
			return ""
		},
		offset: func(tensor string) int64 { return m.Tensor(tensor).DataOffset() },
	}
}
