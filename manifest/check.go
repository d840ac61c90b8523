package manifest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ggufreap/gguf"
)

// CheckOptions change how an artifact is compared with evidence.
type CheckOptions struct {
	// Quick reads headers only: sizes, names, types, shapes, metadata.
	Quick bool
	// Repo and Revision are whose listing the caller was told a tree listing is: the
	// listing itself does not say.
	Repo, Revision string
	// Workers is how many files are read at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes are read.
	Progress Progress
}

// ErrNotQuick says that the evidence cannot be compared without reading the data.
var ErrNotQuick = errors.New("it says nothing that could be checked without reading the files")

// Evidence is what somebody says of an artifact: a [*Pin], a [Tree], [Sums] or
// [GGUFHashes]. ReadEvidence tells them apart.
type Evidence interface {
	// check adds to the report how the model differs from what the evidence says.
	check(ctx context.Context, c *checker) error
}

// Check compares a model with evidence. All differences are in the report; the error
// only means that the comparison could not be carried out.
func Check(ctx context.Context, m *gguf.Model, e Evidence, o CheckOptions) (*Report, error) {
	c := &checker{model: m, options: o, report: newReport(m.Name)}
	c.report.Artifact = describeModel(m)
	c.report.problems(m, filepath.Base)
	if m.Err() != nil {
		c.report.gap("the artifact is not sound, so it was compared with nothing", "everything the evidence says of it")
		return c.report, nil
	}
	if err := e.check(ctx, c); err != nil {
		return nil, err
	}
	return c.report, m.Unchanged()
}

// A checker compares one model with one piece of evidence.
type checker struct {
	model   *gguf.Model
	options CheckOptions
	report  *Report
}

func describeModel(m *gguf.Model) *Artifact {
	return &Artifact{Name: m.Name, Architecture: m.Metadata().Architecture(), Shards: m.Shards, FileBytes: m.FileBytes(), TensorBytes: m.TensorBytes()}
}

// check compares every part of the model with the pin.
func (p *Pin) check(ctx context.Context, c *checker) error {
	o := BuildOptions{Workers: c.options.Workers, Progress: c.options.Progress}
	o.follow(c.model, p)
	measure := func() (*Pin, error) { return BuildPin(ctx, c.model, o) }
	if c.options.Quick {
		measure = func() (*Pin, error) { return pinOfModel(c.model, o) }
	}
	got, err := measure()
	if err != nil {
		return err
	}
	comparison := &comparison{report: c.report, got: got, want: p, quick: c.options.Quick, file: fileOfTensor(c.model, filepath.Base)}
	same := comparison.run()
	switch {
	case c.options.Quick:
		c.report.gap("only headers were read", "whether any weight is the one pinned")
	case same:
		c.report.checked(fmt.Sprintf("the same artifact: weights digest %s", p.WeightsDigest))
	}
	return nil
}

// fileOfTensor returns a function that names the file of a tensor.
func fileOfTensor(m *gguf.Model, name func(path string) string) func(tensor string) string {
	return func(tensor string) string {
		if t := m.Tensor(tensor); t != nil {
			return name(t.File().Name)
		}
		return ""
	}
}

// follow makes the options measure m as the pins were made: a tensor has slabs where one
// of them has some, as many as the tensor's own last dim says, and the size of data that
// only whoever wrote it knew.
func (o *BuildOptions) follow(m *gguf.Model, pins ...*Pin) {
	slabbed := map[string]bool{}
	sizes := map[string]int64{}
	for _, p := range pins {
		for _, t := range p.Tensors {
			slabbed[t.Name] = slabbed[t.Name] || t.Slabs != nil
			if _, ok := sizes[t.Name]; !ok {
				sizes[t.Name] = t.Size
			}
		}
	}
	o.DataSize = func(t *gguf.Tensor) int64 {
		if size, ok := sizes[t.Name]; ok && size <= t.Size && t.Size-size < t.File().Alignment {
			return size
		}
		return t.Size
	}
	o.Slabs = func(name string) int {
		t := m.Tensor(name)
		if !slabbed[name] || len(t.Shape) == 0 {
			return 0
		}
		count, size := t.Shape[len(t.Shape)-1], uint64(o.dataSize(t))
		if count == 0 || size == 0 || size%count != 0 {
			return 0
		}
		return int(count)
	}
}
