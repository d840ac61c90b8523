package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/picture"
)

// pictures draws what is known.
func (s *subject) pictures(con *ui.Console, c *cli.Context) ([]*picture.Picture, error) {
	var list []*picture.Picture
	scored, err := s.scorePictures(c)
	if err != nil {
		return nil, err
	}
	list = append(list, scored...)
	if s.plan != nil {
		scores := s.scores
		if scores != nil && (c.IsSet("scores") || s.source != nil) && len(scores.Layers) != len(s.plan.Layers) {
			scores = nil
		}
		list = append(list, picture.KeptMap(s.plan, scores))
	}
	agreed, err := s.agreement(c)
	if err != nil {
		return nil, err
	}
	list = append(list, agreed...)
	sizes, err := s.sizes(c)
	if err != nil {
		return nil, err
	}
	list = append(list, sizes...)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: nothing to draw", text.Safe(s.path))
	}
	return list, nil
}

// scorePictures draws scores, with the cut where there is one.
func (s *subject) scorePictures(c *cli.Context) ([]*picture.Picture, error) {
	if s.scores == nil {
		return nil, nil
	}
	choice := &picture.Choice{Experts: s.experts, Scores: s.scores, Keep: c.Int("keep")}
	switch {
	case s.plan != nil && c.IsSet("keep"):
		return nil, args.Usagef("--keep is for scores; a plan has its own count, %d", s.plan.KeepCount)
	case s.plan != nil:
		choice.Keep, choice.Kept = s.plan.KeepCount, s.plan.Layers
	case choice.Keep != 0:
		if err := s.experts.CheckKeep(choice.Keep); err != nil {
			return nil, err
		}
	}
	list := []*picture.Picture{picture.HeatMap(choice), picture.Shares(choice), picture.Evenness(choice)}
	if choice.Keep > 0 {
		list = append(list, s.ties(reap.Explain(s.experts, s.scores, choice.Keep, nil))...)
	}
	if s.measured != nil && choice.Keep > 0 && len(s.measured.Sources) > 1 {
		halves, err := s.measured.SplitHalves(s.experts, s.scores.Criterion.Name, choice.Keep)
		if err != nil {
			return nil, err
		}
		var drawn []picture.Half
		for _, h := range halves {
			drawn = append(drawn, picture.Half{Label: h.Label, Same: h.Overlap, Retention: h.Retention})
		}
		list = append(list, picture.Halves(drawn, halves[0].Chance))
	}
	return list, nil
}

// ties draws what the scores could not tell apart, or says that there is nothing of it.
func (s *subject) ties(x *reap.Explanation) []*picture.Picture {
	tied, never, counted := 0, 0, false
	for _, l := range x.Layers {
		tied += l.TiesKept + l.TiesDropped
		never += max(l.NeverRouted, 0)
		counted = counted || l.NeverRouted >= 0
	}
	switch {
	case tied > 0 || never > 0:
		return []*picture.Picture{picture.Ties(x)}
	case counted:
		s.fact("ties", "none at the cut; every expert had tokens")
	default:
		s.fact("ties", "none at the cut; tokens were not counted")
	}
	return nil
}

// agreement holds the plan against that of --compare.
func (s *subject) agreement(c *cli.Context) ([]*picture.Picture, error) {
	path := c.String("compare")
	switch {
	case path == "":
		return nil, nil
	case s.plan == nil || s.scores == nil:
		return nil, args.Usagef("--compare holds a plan against another by its scores: give a plan, and --scores or --model")
	}
	data, err := files.ReadInput(c.App.Reader, path)
	if err != nil {
		return nil, err
	}
	other, err := s.decodePlan(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	compared, err := reap.Compare(s.experts, s.scores, s.plan, other)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return []*picture.Picture{picture.Agreement(compared, filepath.Base(path))}, nil
}

// byteKinds are what bytes are for, in the order of pictures.
var byteKinds = []string{"routed experts", "routers and biases", "shared experts", "embeddings and output", "everything else"}

// byteKind says what the bytes of a tensor are for; routed says whether it has a slab for each
// expert.
func byteKind(name string, routed bool) string {
	switch {
	case routed && strings.Contains(name, "_exps"):
		return byteKinds[0]
	case routed:
		return byteKinds[1]
	case strings.Contains(name, "_shexp"):
		return byteKinds[2]
	case strings.HasPrefix(name, "token_embd") || strings.HasPrefix(name, "output"):
		return byteKinds[3]
	}
	return byteKinds[4]
}

// sizes draws bytes by kind and the shards, as far as they are known.
func (s *subject) sizes(c *cli.Context) ([]*picture.Picture, error) {
	before, after, err := s.byteCounts(c)
	if err != nil {
		return nil, err
	}
	var list []*picture.Picture
	switch {
	case before != nil && after != nil:
		var parts []picture.Part
		for _, kind := range byteKinds {
			if before[kind] > 0 || after[kind] > 0 {
				parts = append(parts, picture.Part{Name: kind, Before: before[kind], After: after[kind]})
			}
		}
		list = append(list, picture.Bytes(parts))
	case after != nil:
		var parts []picture.Share
		for _, kind := range byteKinds {
			if after[kind] > 0 {
				parts = append(parts, picture.Share{Name: kind, Bytes: after[kind]})
			}
		}
		list = append(list, picture.Kinds(parts))
	}
	if shards := s.shards(); shards != nil {
		list = append(list, picture.Shards(shards))
	}
	return list, nil
}

// byteCounts counts bytes by kind: of the source, and of what is made of it.
func (s *subject) byteCounts(c *cli.Context) (before, after map[string]int64, err error) {
	switch {
	case s.release != nil:
		experts, _ := reap.FindExperts(s.release)
		after = modelBytes(s.release, experts)
		if s.sourcePin != nil {
			before = pinBytes(s.sourcePin)
		}
	case s.pin != nil:
		after = pinBytes(s.pin)
	case s.source != nil && s.plan != nil:
		contents, err := derive(c, s.source, s.plan, reap.Provenance{})
		if err != nil {
			return nil, nil, err
		}
		routed := routedTensors(s.source.experts)
		before, after = modelBytes(s.source.Model, s.source.experts), map[string]int64{}
		for _, v := range contents.Views {
			after[byteKind(v.Name, routed[v.Name])] += v.Size()
		}
	}
	return before, after, nil
}

func routedTensors(e *reap.Experts) map[string]bool {
	names := map[string]bool{}
	if e != nil {
		for _, t := range e.Tensors() {
			names[t.Name] = true
		}
	}
	return names
}

func modelBytes(m *gguf.Model, e *reap.Experts) map[string]int64 {
	routed, sums := routedTensors(e), map[string]int64{}
	for _, t := range m.Tensors() {
		sums[byteKind(t.Name, routed[t.Name])] += t.Size
	}
	return sums
}

func pinBytes(p *manifest.Pin) map[string]int64 {
	sums := map[string]int64{}
	for _, t := range p.Tensors {
		sums[byteKind(t.Name, t.Slabs != nil)] += t.Size
	}
	return sums
}

// shards are the files of a release or pin.
func (s *subject) shards() []picture.Share {
	var list []picture.Share
	switch {
	case s.release != nil:
		for _, f := range s.release.Files {
			list = append(list, picture.Share{Name: filepath.Base(f.Name), Bytes: f.Size})
		}
	case s.pin != nil:
		for _, f := range s.pin.Files {
			list = append(list, picture.Share{Name: f.Name, Bytes: f.Size})
		}
	}
	return list
}
