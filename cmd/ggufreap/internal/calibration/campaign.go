package calibration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/engine"
	"ggufreap/reap/measure"
	"ggufreap/reap/scorefile"
)

// A Campaign is all that a run of calibrate is told.
type Campaign struct {
	Model   *gguf.Model
	Experts *reap.Experts
	Source  reap.Source // what the scores name as their model
	Output  string      // path without the ending; "-" to print the score document alone

	Texts    []string // LABEL=FILE:WEIGHT
	Self     int      // tokens that the model writes itself, 0 for none
	Seed     uint64
	Context  int    // tokens of a chunk, 0 for 2048 or what the model was trained on
	BOS      string // auto, on, off
	Special  bool
	DropTail bool
	Template string
	Batch    int // tokens of chunks side by side
	Ubatch   int // tokens computed at a time, 0 for as many as memory allows
	Open     engine.OpenOptions

	Part, Parts int // which part of the text is measured, of how many; 0 for all of it

	// Remembered says what llama.cpp reckons to remember of a sequence of so many tokens, in
	// bytes; 0 where that is not known.
	Remembered func(ctx context.Context, tokens int) uint64

	Keep   int     // the count that agreement is told for
	Stable float64 // agreement of the halves that ends the run, 0 for none
	Resume bool
	Force  bool
	Inputs []string // files that are read beside model and texts
}

// The files of a campaign. One that measures a part writes its sums only.
func (c *Campaign) NPZ() string  { return c.Output + ".npz" }
func (c *Campaign) JSON() string { return c.Output + ".json" }
func (c *Campaign) Sums() string { return PartName(c.Output, c.Part, c.Parts) }
func (c *Campaign) Checkpoint() string {
	if c.Parts > 0 {
		return strings.TrimSuffix(c.Sums(), sumsEnding) + ".checkpoint"
	}
	return c.Output + ".checkpoint"
}
func (c *Campaign) SelfText() string {
	if c.streams() {
		return "self.jsonl" // not written
	}
	return c.Output + ".self.jsonl"
}

// streams reports whether the scores are printed and nothing is written.
func (c *Campaign) streams() bool { return c.Output == files.Stdin }

// A Result is what a campaign came to.
type Result struct {
	Scores                *scorefile.Measurements
	Build                 string
	Kinds                 []*measure.Kind
	Tokens, AllTokens     int
	Chunks, AllChunks     int
	Seen, Experts         int
	Stability             measure.Stability
	Stable                bool // it is known
	Early                 bool // the run ended before all texts were measured, since the halves agreed
	Context, Ubatch, Side int
	Took                  time.Duration
	Resumed               int  // tokens that an earlier run had measured
	There                 bool // an earlier run has written the part
}

// Run measures and writes the scores.
func (c *Campaign) Run(ctx context.Context, con *ui.Console, e *engine.Engine) (*Result, error) {
	if err := c.checkFiles(); err != nil {
		return nil, err
	}
	opened, err := c.open(ctx, con, e)
	if err != nil {
		return nil, err
	}
	rules := c.rules(opened)
	texts, err := c.read(ctx, con, e, opened, rules)
	if err != nil {
		return nil, err
	}
	kinds, err := measure.Cut(ctx, reader{e}, rules, texts)
	if err != nil {
		return nil, err
	}
	longest := longest(kinds)
	ubatch, side := c.ubatch(opened), max(1, c.Batch/longest)
	w := &work{Campaign: c, con: con, run: measure.NewRun(c.Experts, kinds, side), rules: rules, basis: c.basis(e.Hello()), build: e.Hello().Build()}
	c.bind(w.basis, texts, rules, side)
	r := &Result{Build: w.build, Kinds: kinds, Context: rules.Context, Ubatch: ubatch, Side: side}
	if c.Parts > 0 {
		if r.There, err = w.divide(r); r.There || err != nil {
			return r, err
		}
	}
	if err := w.resume(); err != nil {
		return nil, err
	}
	r.Resumed, _ = w.run.Tokens()
	begin := time.Now()
	if err := w.measure(ctx, newMeter(e, c.Experts, longest, ubatch, side)); err != nil {
		return nil, err
	}
	r.Took = time.Since(begin)
	return r, w.finish(r)
}

// outputs are the files that may not be there yet. A part that is there may be the one that
// is asked for.
func (c *Campaign) outputs() []string {
	if c.Parts > 0 {
		return nil
	}
	if c.Self > 0 && !c.Resume {
		return []string{c.NPZ(), c.JSON(), c.SelfText()}
	}
	return []string{c.NPZ(), c.JSON()}
}

// sources are the files that are read, which no output may replace.
func (c *Campaign) sources() ([]string, error) {
	paths := slices.Concat(c.Model.OnDisk(), c.Inputs)
	for _, s := range c.Texts {
		_, path, _, err := measure.ParseSource(s)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// checkFiles refuses to write over what is there, and where nothing can be written, before
// anything is measured.
func (c *Campaign) checkFiles() error {
	if c.streams() {
		return nil
	}
	sources, err := c.sources()
	if err != nil {
		return err
	}
	for _, path := range c.outputs() {
		if err := files.CheckOutput(path, c.Force, sources); err != nil {
			return err
		}
	}
	_, err = os.Stat(c.Checkpoint())
	there := err == nil
	switch {
	case there && !c.Resume && !c.Force:
		return hint.With(fmt.Errorf("%s: an earlier run was interrupted", text.Safe(c.Checkpoint())), "--resume goes on with it, --force begins anew")
	case !there && c.Resume && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return files.CheckFolder(c.NPZ())
}

func (c *Campaign) open(ctx context.Context, con *ui.Console, e *engine.Engine) (*engine.Opened, error) {
	p := con.StartProgress("load", c.Model.FileBytes())
	defer p.Finish()
	loaded := int64(0)
	e.Report = func(a engine.Alive) {
		if now := int64(a.Share * float64(c.Model.FileBytes())); now > loaded {
			p.Add(now - loaded)
			loaded = now
		}
	}
	defer func() { e.Report = nil }()
	o := c.Open
	o.Repack = fits(c.Model.FileBytes(), e.Hello())
	return e.Open(ctx, c.Model.Paths()[0], o)
}

// fits reports whether a model can be in memory twice, mapped and laid out anew for the
// processor. The numbers are the same either way.
func fits(size int64, h *engine.Hello) bool { return uint64(size) < freeMemory(h)/2 }

// freeMemory is that of the processor.
func freeMemory(h *engine.Hello) uint64 {
	for _, d := range h.Devices {
		if d.Type == "CPU" {
			return d.Free
		}
	}
	return 0
}

// The defaults.
const (
	usualContext = 2048
	usualUbatch  = 512
	logitMemory  = 192 << 20 // all tokens have logits, which take 4 bytes for each word of the vocabulary
)

// rules settles what was left open of how texts become chunks, by what the model is.
func (c *Campaign) rules(o *engine.Opened) measure.Rules {
	rules := measure.Rules{Context: c.Context, BOS: -1, Special: c.Special, DropTail: c.DropTail, Template: c.Template}
	if rules.Context == 0 {
		rules.Context = usualContext
		if o.Context > 0 {
			rules.Context = min(usualContext, o.Context)
		}
	}
	if c.BOS == "on" || c.BOS == "auto" && o.AddBOS {
		rules.BOS = o.BOS
	}
	return rules
}

// ubatch settles how many tokens are computed at a time.
func (c *Campaign) ubatch(o *engine.Opened) int {
	if c.Ubatch > 0 {
		return c.Ubatch
	}
	return max(min(max(usualUbatch, c.Batch), logitMemory/(4*max(o.Vocabulary, 1))), 32)
}

// longest returns the length of the longest chunk.
func longest(kinds []*measure.Kind) int {
	most := 0
	for _, kind := range kinds {
		for _, chunk := range kind.Chunks {
			most = max(most, len(chunk))
		}
	}
	return most
}

// read reads the texts, and has the model write its own.
func (c *Campaign) read(ctx context.Context, con *ui.Console, e *engine.Engine, o *engine.Opened, rules measure.Rules) ([]*measure.Text, error) {
	var texts []*measure.Text
	if c.Self > 0 {
		t, err := newSelfWriting(ctx, c, con, e, rules).read(ctx)
		if err != nil {
			return nil, err
		}
		texts = append(texts, t)
	}
	for _, s := range c.Texts {
		label, path, weight, err := measure.ParseSource(s)
		if err != nil {
			return nil, err
		}
		data, err := files.Read(path)
		if err != nil {
			return nil, err
		}
		t, err := measure.ReadText(label, path, weight, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
		}
		if o.NoText && hasText(t) {
			return nil, fmt.Errorf("%s: the model has no tokenizer: it takes lines of JSON with \"tokens\" only", text.Safe(path))
		}
		texts = append(texts, t)
	}
	return texts, nil
}

func hasText(t *measure.Text) bool {
	for _, d := range t.Documents {
		if d.Tokens == nil {
			return true
		}
	}
	return false
}

// basis names what computing depends on.
func (c *Campaign) basis(h *engine.Hello) map[string]string {
	var shards, devices []string
	for _, path := range c.Model.Paths() {
		if info, err := os.Stat(path); err == nil {
			shards = append(shards, fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)))
		}
	}
	for _, d := range h.Devices {
		devices = append(devices, d.Name+" "+d.Description)
	}
	return map[string]string{
		"model":         c.Source.StructureDigest,
		"model's files": strings.Join(shards, ", "),
		"engine":        h.Build(),
		"devices":       fmt.Sprintf("%s; %+v", strings.Join(devices, ", "), c.Open.Devices),
	}
}

// bind adds to a basis what the sums depend on beside it.
func (c *Campaign) bind(basis map[string]string, texts []*measure.Text, rules measure.Rules, side int) {
	var from []string
	for _, t := range texts {
		from = append(from, fmt.Sprintf("%s=%s:%v", t.Label, t.SHA256, t.Weight))
	}
	if c.Self > 0 {
		from = append(from, fmt.Sprintf("%d tokens of the model's own by seed %d", c.Self, c.Seed))
	}
	basis["texts"] = strings.Join(from, " ")
	basis["chunks"] = fmt.Sprintf("%+v, %d side by side", rules, side)
	basis["end"] = fmt.Sprintf("keep %d, stable %v", c.Keep, c.Stable)
}
