package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/loadable"
)

// A source is a model whose experts can be chosen from.
type source struct {
	*gguf.Model
	experts   *reap.Experts
	structure manifest.Digest
	pin       *manifest.Pin  // nil unless one was given
	stated    *reap.Stated   // what the hub says of its files, nil where it is not there
	loading   []gguf.Problem // what llama.cpp would say of it, by its headers
}

// openSource opens the artifact that the arguments name and refuses one that cannot
// be pruned. The caller closes it.
func openSource(con *ui.Console, c *cli.Context) (*source, error) {
	m, err := openArtifact(con, c)
	if err != nil {
		return nil, err
	}
	s := &source{Model: m}
	if err := s.read(c.StringSlice("copy-tensor")...); err != nil {
		m.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) read(copied ...string) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	var err error
	if s.experts, err = reap.ReadExperts(s.Model, copied...); err != nil {
		return s.named(explainUnknown(err, s.Model, copied))
	}
	s.loading = loadable.Check(s.Model)
	if far := hub.Of(s.Model); far != nil {
		if s.stated, err = far.Stated(s.Model); err != nil {
			return err
		}
	}
	s.structure, err = manifest.StructureDigest(s.Model)
	return s.named(err)
}

// explainUnknown adds the flag that takes tensors of unknown roles where they are the only
// fault.
func explainUnknown(err error, m *gguf.Model, copied []string) error {
	var faults reap.Faults
	if !errors.As(err, &faults) {
		return err
	}
	for _, fault := range faults {
		if name, unquoted := strconv.Unquote(strings.TrimPrefix(fault.Where, "tensor ")); unquoted == nil {
			copied = append(copied, name)
		}
	}
	if _, other := reap.ReadExperts(m, copied...); other != nil {
		return err
	}
	return hint.With(err, "--copy-tensor NAME copies such a tensor as it is, once you know that it holds nothing for each expert")
}

// named adds the name of the model to each line of an error that lacks it.
func (s *source) named(err error) error {
	if err == nil || strings.Contains(err.Error(), text.Safe(s.Name)) {
		return err
	}
	return sourceError{text.Safe(s.Name), err}
}

// A sourceError is about one model.
type sourceError struct {
	name string
	err  error
}

func (e sourceError) Error() string {
	prefix := e.name + ": "
	return prefix + strings.ReplaceAll(e.err.Error(), "\n", "\n"+prefix)
}

func (e sourceError) Unwrap() error { return e.err }

// standing is what is known of the pruning of the source's architecture.
func (s *source) standing() reap.Standing { return reap.StandingOf(s.experts.Architecture) }

// unloadable returns why llama.cpp does not load the source.
func (s *source) unloadable() []gguf.Problem {
	return slices.DeleteFunc(slices.Clone(s.loading), func(p gguf.Problem) bool { return p.Severity != gguf.Error })
}

// checkLoadable refuses a source that llama.cpp does not load: its derivative would not be
// loaded either.
func (s *source) checkLoadable(c *cli.Context) error {
	const most = 12
	reasons := s.unloadable()
	if len(reasons) == 0 || c.Bool("allow-incomplete") {
		return nil
	}
	lines := []string{"llama.cpp does not load the model, and would not load what is made of it:"}
	for _, p := range reasons[:min(len(reasons), most)] {
		lines = append(lines, text.Safe(p.String()))
	}
	if more := len(reasons) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more; inspect lists them", text.Grouped(more)))
	}
	return hint.With(errors.New(strings.Join(lines, "\n")), "complete the model, or go on with --allow-incomplete, which the plan will name")
}

// warnOfSource says what is odd about the source and its experts and stops nothing.
func warnOfSource(con *ui.Console, s *source) {
	inspect.Warn(con, s.Model)
	for _, note := range s.experts.Notes {
		con.Warnf("%s: %s", text.Safe(s.Name), note)
	}
	inspect.WarnOf(con, s.loading)
}

// bindPin reads the pin of the source, which lets plan and release name the weights.
func (s *source) bindPin(c *cli.Context, path, scratch string) error {
	if path == "" {
		return nil
	}
	var err error
	s.pin, err = pinOf(c, path, s.Model, scratch)
	return err
}

// pinOf reads the pin of a model, and refuses that of another one. From then on the model is
// read through a look at each part, if it is far away; large ones wait in the folder scratch.
func pinOf(c *cli.Context, path string, m *gguf.Model, scratch string) (*manifest.Pin, error) {
	pin, err := readSourcePin(c, path)
	if err != nil {
		return nil, err
	}
	if err := pin.CheckHeaders(m); err != nil {
		return nil, fmt.Errorf("%s: the pin of another model, %q: %w", text.Safe(path), pin.Artifact.Name, err)
	}
	pin.Guard(m, scratch)
	return pin, nil
}

// weights returns the weights digest of a pinned source, or "".
func (s *source) weights() string {
	if s.pin == nil {
		return ""
	}
	return s.pin.WeightsDigest.String()
}

// pinned returns the pin digest of a pinned source, or "".
func (s *source) pinned() string {
	if s.pin == nil {
		return ""
	}
	return s.pin.PinDigest.String()
}

// claim names the model as the plan's source.
func (s *source) claim(plan *reap.Plan) {
	plan.Source = reap.Source{
		StructureDigest: s.structure.String(),
		WeightsDigest:   s.weights(),
		Architecture:    s.experts.Architecture,
		Name:            s.Name,
		StatedByHub:     s.stated,
	}
}

// restate has a plan that was read say what the hub states of this source, and warns where it
// was made for files of which the hub stated something else.
func (s *source) restate(con *ui.Console, path string, plan *reap.Plan) {
	was := plan.Source.StatedByHub
	if s.stated == nil {
		return
	}
	if was != nil {
		if other := was.Differs(s.stated); len(other) > 0 {
			con.Warnf("%s: made for %s@%s, of which the hub stated another content of %s than of %s@%s now: these may be other weights",
				text.Safe(path), text.Safe(was.Repo), text.Safe(was.Commit), text.Files(len(other)), s.stated.Repo, s.stated.Commit)
		}
	}
	plan.Source.StatedByHub = s.stated
}
