package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/page"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
	"ggufreap/reap/scorefile"
)

// A subject is what a report is about: any of a plan, scores, a pin and a release, with what
// flags bring beside it.
type subject struct {
	path  string // of a copy, where it came from standard input
	name  string // as it is shown
	input *files.Input
	title string
	lead  string
	facts []page.Fact

	plan      *reap.Plan
	source    *source       // of --model, or nil
	experts   *reap.Experts // of the model, or as far as plan or scores tell
	scores    *reap.Scores
	measured  *scorefile.Measurements
	pin       *manifest.Pin
	sourcePin *manifest.Pin
	release   *gguf.Model
}

func (s *subject) close() {
	if s.input != nil {
		s.input.Close()
	}
	if s.source != nil {
		s.source.Close()
	}
	if s.release != nil {
		s.release.Close()
	}
}

// paths are the files that must not be written to.
func (s *subject) paths(c *cli.Context) []string {
	list := []string{s.path}
	for _, name := range []string{"scores", "compare", "source-pin"} {
		if path := c.String(name); path != "" {
			list = append(list, path)
		}
	}
	if s.source != nil {
		list = append(list, s.source.OnDisk()...)
	}
	if s.release != nil {
		list = append(list, s.release.OnDisk()...)
	}
	return list
}

func (s *subject) fact(name, format string, args ...any) {
	s.facts = append(s.facts, page.Fact{Name: name, Value: text.Safe(fmt.Sprintf(format, args...))})
}

// readSubject finds out what the argument is, and reads it.
func readSubject(con *ui.Console, c *cli.Context) (*subject, error) {
	s := &subject{path: c.Args().First(), name: filepath.Base(files.Name(c.Args().First()))}
	err := s.read(con, c)
	if err == nil && s.experts != nil && s.scores == nil {
		err = s.readScores(con, c)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *subject) read(con *ui.Console, c *cli.Context) error {
	if remote.IsAddress(s.path) {
		return s.openRelease(con, c, "Model ", "What the model is made of, by its headers.")
	}
	if files.IsStream(s.path) {
		var err error
		if s.input, err = files.OpenInput(con.In, s.path); err != nil {
			return err
		}
		s.path = s.input.Name()
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if model := c.String("model"); model != "" {
		if err := s.openModel(con, c, model); err != nil {
			return err
		}
	}
	if info.IsDir() {
		return s.readRelease(con, c)
	}
	if gguf.IsModelFile(s.path) {
		return s.openRelease(con, c, "Model ", "What the model is made of.")
	}
	if pin, err := manifest.ReadPin(s.path); err == nil {
		s.readPin(pin)
		return nil
	}
	head := make([]byte, 1)
	if f, err := os.Open(s.path); err == nil {
		f.Read(head)
		f.Close()
	}
	if head[0] == '{' {
		data, err := files.Read(s.path)
		if err != nil {
			return err
		}
		if plan, err := s.decodePlan(data); plan != nil || err != nil && isPlan(data) {
			if err != nil {
				return fmt.Errorf("%s: %w", text.Safe(s.name), err)
			}
			s.usePlan(plan, s.name)
			return nil
		}
		if s.experts == nil {
			s.experts = shapeOf(data)
		}
	}
	return s.readScoreFile(con, c, s.path)
}

func isPlan(data []byte) bool { return bytes.Contains(data, []byte(`"ggufreap/plan/`)) }

// decodePlan reads a plan: of any form with a model, else one that says itself what it is of.
func (s *subject) decodePlan(data []byte) (*reap.Plan, error) {
	if s.source != nil {
		plan, err := planfile.Read(data, s.source.experts)
		if err != nil {
			return nil, err
		}
		return plan, plan.Check(s.source.experts).Err()
	}
	return planfile.Decode(data)
}

// shapeOf returns what a saliency document says of its model, nil for any other file.
func shapeOf(data []byte) *reap.Experts {
	var doc struct {
		Schema string `json:"schema"`
		Source struct {
			Architecture string `json:"architecture"`
		} `json:"source"`
		NumExperts int                       `json:"num_experts"`
		TopK       int                       `json:"top_k"`
		Layers     map[string]jsontext.Value `json:"layers"`
	}
	if json.Unmarshal(data, &doc) != nil || doc.Schema != scorefile.SaliencySchema || doc.NumExperts < 1 || doc.NumExperts > 1<<16 {
		return nil
	}
	e := &reap.Experts{Architecture: doc.Source.Architecture, Count: doc.NumExperts, Used: doc.TopK, Groups: 1, GroupsUsed: 1}
	for block := range 1 << 12 {
		if _, ok := doc.Layers[strconv.Itoa(block)]; ok {
			e.Layers = append(e.Layers, &reap.Layer{Block: block})
		}
	}
	return e
}

// widen takes what scores say of the model of a plan, which does not say how many experts are
// used for a token.
func (s *subject) widen(shape *reap.Experts) {
	if shape != nil && shape.Count == s.experts.Count {
		s.experts.Used = shape.Used
	}
}

// shapeOfPlan is what a plan says of its model.
func shapeOfPlan(p *reap.Plan) *reap.Experts {
	e := &reap.Experts{Architecture: p.Source.Architecture, Count: p.NumExperts, Used: 1, Groups: 1, GroupsUsed: 1}
	for _, block := range p.Blocks() {
		e.Layers = append(e.Layers, &reap.Layer{Block: block})
	}
	return e
}

// openModel opens the model of --model.
func (s *subject) openModel(con *ui.Console, c *cli.Context, path string) error {
	m, err := openPaths(con, c, path)
	if err != nil {
		return err
	}
	s.source = &source{Model: m}
	if err := s.source.read(); err != nil {
		return err
	}
	s.experts = s.source.experts
	return nil
}

func (s *subject) usePlan(p *reap.Plan, name string) {
	s.plan = p
	if s.experts == nil {
		s.experts = shapeOfPlan(p)
	}
	if s.title == "" {
		s.title = fmt.Sprintf("Plan %s", text.Safe(name))
		s.lead = fmt.Sprintf("Which %d of %d experts each of %s keeps.", p.KeepCount, p.NumExperts, text.Count(len(p.Layers), "layer"))
	}
	s.fact("keep", "%d of %d experts in each of %s", p.KeepCount, p.NumExperts, text.Count(len(p.Layers), "layer"))
	s.fact("criterion", "%s", criterionText(p.Criterion))
	for _, in := range p.Criterion.Inputs {
		s.fact("made from", "%s, sha256 %s", in.File, in.SHA256)
	}
	s.fact("source", "%s, %s", p.Source.Name, p.Source.Architecture)
	s.fact("its structure", "%s", p.Source.StructureDigest)
	s.fact("its weights", "%s", orNotSpecified(p.Source.WeightsDigest))
}

func orNotSpecified(s string) string {
	if s == "" {
		return "Not specified"
	}
	return s
}

func (s *subject) readPin(pin *manifest.Pin) {
	s.pin = pin
	a := pin.Artifact
	s.title = "Pin of " + text.Safe(a.Name)
	s.lead = "What the model is made of, by the digests of all its parts."
	s.artifactFacts(a, pin)
}

func (s *subject) artifactFacts(a manifest.Artifact, pin *manifest.Pin) {
	s.fact("model", "%s, %s, %s", a.Name, a.Architecture, text.Count(a.Shards, "file"))
	s.fact("files", "%s", text.Size(a.FileBytes))
	s.fact("tensor data", "%s", text.Size(a.TensorBytes))
	s.fact("pin digest", "%s", pin.PinDigest)
	s.fact("weights digest", "%s", pin.WeightsDigest)
	s.fact("metadata digest", "%s", pin.MetadataDigest)
}

// openRelease opens the model of a folder, or one that is named by a file.
func (s *subject) openRelease(con *ui.Console, c *cli.Context, title, lead string) error {
	var err error
	if s.release, err = openPaths(con, c, s.path); err != nil {
		return err
	}
	s.title, s.lead = title+text.Safe(s.release.Name), lead
	return nil
}

// readRelease reads the documents of a folder, and the headers of its model. One without
// documents is just a model.
func (s *subject) readRelease(con *ui.Console, c *cli.Context) error {
	title, lead := "Release ", "What is in the folder, and what it was made from."
	if !isRegular(filepath.Join(s.path, manifest.SumsName)) && !isRegular(filepath.Join(s.path, release.PlanName)) {
		title, lead = "Model ", "What is in the folder."
	}
	if err := s.openRelease(con, c, title, lead); err != nil {
		return err
	}
	pin, err := manifest.ReadPin(filepath.Join(s.path, manifest.PinName))
	switch {
	case err == nil:
		s.pin = pin
		s.artifactFacts(pin.Artifact, pin)
	case errors.Is(err, fs.ErrNotExist):
		s.fact("model", "%s, %s, %s", s.release.Name, s.release.Metadata().Architecture(), text.Count(s.release.Shards, "file"))
		s.fact("pin", "Not specified")
	default:
		return err
	}
	if err := s.readSourcePin(c); err != nil {
		return err
	}
	data, err := files.Read(filepath.Join(s.path, release.PlanName))
	if errors.Is(err, fs.ErrNotExist) {
		s.fact("plan", "Not specified")
		return nil
	}
	if err != nil {
		return err
	}
	plan, err := planfile.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", release.PlanName, err)
	}
	s.usePlan(plan, release.PlanName)
	return nil
}

// sourcePinName is the pin of a release's source in its folder.
const sourcePinName = "source.pin.json.zst"

func (s *subject) readSourcePin(c *cli.Context) error {
	path := c.String("source-pin")
	given := path != ""
	if !given {
		path = filepath.Join(s.path, sourcePinName)
	}
	pin, err := files.ReadPin(c.App.Reader, path)
	if !given && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.sourcePin = pin
	return err
}

// readScores reads the scores of --scores, or computes those of a plan by a proxy.
func (s *subject) readScores(con *ui.Console, c *cli.Context) error {
	path := c.String("scores")
	if path == "" && s.plan != nil {
		path = s.scoresBeside()
	}
	if path != "" {
		if s.source == nil {
			if data, err := files.Read(path); err == nil {
				s.widen(shapeOf(data))
			}
		}
		return s.useScores(con, c, path)
	}
	if s.plan == nil || s.source == nil {
		return nil
	}
	info, known := reap.FindCriterion(s.plan.Criterion.Name)
	if !known || info.Evidence == reap.Measured {
		con.Warnf("the plan's scores, by %s, are in no file that was given: --scores FILE", text.Safe(s.plan.Criterion.Name))
		return nil
	}
	seed, err := strconv.ParseUint(orZero(s.plan.Criterion.Parameters["seed"]), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: seed %q is no number", text.Safe(s.path), s.plan.Criterion.Parameters["seed"])
	}
	scores, err := score(con, c.Context, s.source, s.plan.Criterion.Name, seed)
	if err != nil {
		return err
	}
	s.scores = scores
	return s.sameScores()
}

// scoresBeside finds the file that a measured plan was made of beside the plan, "" where none has
// its sum.
func (s *subject) scoresBeside() string {
	if s.plan.Criterion.Evidence != reap.Measured {
		return ""
	}
	for _, in := range s.plan.Criterion.Inputs {
		path := filepath.Join(filepath.Dir(filepath.Clean(s.path)), filepath.Base(in.File))
		f, _, err := manifest.OpenRegular(path)
		if err != nil {
			continue
		}
		got, err := reap.HashInput(in.File, f)
		f.Close()
		if err == nil && got.SHA256 == in.SHA256 {
			return path
		}
	}
	return ""
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// sameScores says whether the scores are those that the plan was made of.
func (s *subject) sameScores() error {
	if s.plan == nil || s.plan.ScoresDigest == "" {
		return nil
	}
	digest, err := manifest.DigestOf(s.scores)
	if err != nil {
		return err
	}
	said := "those that the plan was made of"
	if digest.String() != s.plan.ScoresDigest {
		said = "not those that the plan was made of"
	}
	s.fact("scores shown", "%s: %s", s.scores.Criterion.Name, said)
	return nil
}

// readScoreFile makes a score file the subject.
func (s *subject) readScoreFile(con *ui.Console, c *cli.Context, path string) error {
	if s.experts == nil {
		return hint.With(args.Usagef("%s: neither a plan, a pin nor scores that say what model they are of", text.Safe(s.name)), "--model MODEL brings the model")
	}
	s.title = "Scores " + text.Safe(s.name)
	if err := s.useScores(con, c, path); err != nil {
		return err
	}
	s.lead = fmt.Sprintf("How %d experts in each of %s rank.", s.experts.Count, text.Count(len(s.scores.Layers), "layer"))
	return nil
}

// useScores reads a score file and ranks by it.
func (s *subject) useScores(con *ui.Console, c *cli.Context, path string) error {
	m, input, err := readMeasurements(c.Context, con, path, s.experts)
	if err != nil {
		return err
	}
	names := m.Criteria()
	criterion := c.String("criterion")
	if criterion == "" && s.plan != nil {
		for _, name := range names {
			if name == s.plan.Criterion.Name {
				criterion = name
			}
		}
	}
	if criterion == "" && len(names) > 0 {
		criterion = names[0]
	}
	if s.scores, err = m.Scores(criterion); err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	s.measured = m
	if err := s.scores.Check(s.experts, true).Err(); err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	if path == s.path {
		input.File = s.name
	}
	s.fact("scores", "%s, sha256 %s", input.File, input.SHA256)
	s.fact("ranked by", "%s", criterionText(s.scores.Criterion))
	s.fact("can be ranked by", "%s", strings.Join(names, ", "))
	s.fact("tokens", "%s", tokensText(m.Tokens))
	return s.sameScores()
}

func tokensText(n int) string {
	if n == 0 {
		return "Not specified"
	}
	return text.Grouped(n)
}
