package calibration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap/measure"
)

// work is a campaign while it measures.
type work struct {
	*Campaign
	con    *ui.Console
	run    *measure.Run
	rules  measure.Rules
	basis  map[string]string
	build  string
	facts  measure.Facts // of all parts, where this is one
	early  bool
	agreed measure.Stability
	known  bool
}

// saveEvery is how often the sums are saved: a run that is interrupted saves them too, and
// what a killed one loses is measured again.
const saveEvery = 30 * time.Second

// checks is how often, in a whole run, the two halves are held against each other.
const checks = 50

// resume goes on from the checkpoint, if there is one to go on from.
func (w *work) resume() error {
	if !w.Resume {
		return nil
	}
	data, err := os.ReadFile(w.Checkpoint())
	if errors.Is(err, fs.ErrNotExist) || err == nil && measure.IsDraft(data) {
		return nil
	}
	if err == nil {
		err = w.run.Resume(data, w.basis)
	}
	if w.Parts > 0 && errors.Is(err, measure.ErrOtherRun) {
		w.con.Notef("%s: %v: begins anew", text.Safe(w.Checkpoint()), err)
		return nil
	}
	return w.refused(err)
}

// refused says of a checkpoint why it is not gone on with.
func (c *Campaign) refused(err error) error {
	if err == nil {
		return nil
	}
	return hint.With(fmt.Errorf("%s: %w", text.Safe(c.Checkpoint()), err), "--force without --resume begins anew")
}

// measure measures what is left, and saves the sums whatever ends it.
func (w *work) measure(ctx context.Context, m measure.Meter) error {
	done, all := w.run.Tokens()
	told := &pace{con: w.con, what: "measuring", all: all, before: done, begun: time.Now()}
	saved := time.Now()
	for w.due(); !w.run.Done() && !w.early; w.due() {
		if err := w.run.Step(ctx, m); err != nil {
			return w.stopped(err)
		}
		done, _ = w.run.Tokens()
		told.tell(done, w.standing)
		if !w.streams() && time.Since(saved) > saveEvery {
			if err := w.save(); err != nil {
				return err
			}
			saved = time.Now()
		}
	}
	told.end(done)
	return nil
}

// stopped saves what was measured before something stopped the run.
func (w *work) stopped(err error) error {
	if done, _ := w.run.Tokens(); w.streams() || done == 0 && w.Self == 0 {
		return err
	}
	if saving := w.save(); saving != nil {
		return hint.With(err, "what was measured is not saved: %v", saving)
	}
	return hint.With(err, "what was measured is in %s: the same command with --resume goes on", w.Checkpoint())
}

func (w *work) save() error {
	data, err := w.run.Checkpoint(w.basis)
	if err != nil {
		return err
	}
	_, err = files.Write(w.Checkpoint(), true, w.Model.OnDisk(), files.Bytes(data))
	return err
}

// due holds the halves against each other after certain numbers of chunks, which do not
// depend on how fast they were measured nor on interruptions.
func (w *work) due() {
	done, all := w.run.Chunks()
	if step := max(all/checks, 1); done == all || done/step == w.run.Previous()/step {
		return
	}
	s, known, err := w.run.Stability(w.Keep)
	if err != nil || !known {
		return
	}
	w.agreed, w.known = s, true
	w.early = w.Stable > 0 && s.Overlap >= w.Stable
}

// standing says what is known of the scores so far.
func (w *work) standing() string {
	seen, all := w.run.Seen()
	said := fmt.Sprintf("%.1f %% of the experts seen", 100*float64(seen)/float64(max(all, 1)))
	if w.known {
		said += fmt.Sprintf(", %.1f %% of the keep lists of two halves differ", 100*(1-w.agreed.Overlap))
	}
	return said
}

// finish writes the scores and removes the checkpoint.
func (w *work) finish(r *Result) error {
	r.Early = w.early
	if err := w.count(r); err != nil {
		return err
	}
	if err := w.write(r); err != nil {
		return err
	}
	if err := os.Remove(w.Checkpoint()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// count states what was measured.
func (w *work) count(r *Result) error {
	r.Tokens, r.AllTokens = w.run.Tokens()
	r.Chunks, r.AllChunks = w.run.Chunks()
	r.Seen, r.Experts = w.run.Seen()
	var err error
	if r.Stability, r.Stable, err = w.run.Stability(w.Keep); err != nil {
		return err
	}
	r.Scores, err = w.run.Measurements()
	return err
}

// settings puts on record what is measured and how.
func (w *work) settings() map[string]string {
	rules := w.rules
	bos := "none"
	if rules.BOS >= 0 {
		bos = fmt.Sprintf("token %d begins each chunk", rules.BOS)
	}
	settings := map[string]string{
		"context":        fmt.Sprint(rules.Context),
		"bos":            bos,
		"special tokens": map[bool]string{true: "parsed", false: "text"}[rules.Special],
		"tails":          map[bool]string{true: "left out", false: "measured"}[rules.DropTail],
		"g":              "the weight that the model applies to the expert's output, normalised and scaled as it does",
		"f":              "the expert's output before that weight, with bias and scales",
		"h":              "what enters the expert's down projection",
		"formula":        "gate_sum: sum of g; norm_sum: sum of |f|; norm_max: greatest |f|; reap_sum: sum of g*|f|; activation_energy: sum of |h|^2",
	}
	if scale, ok := w.Model.Metadata().Arch("expert_weights_scale"); ok {
		settings["constant scale in g"] = scale.Describe()
	}
	if rules.Template != "" {
		settings["template"] = rules.Template
	}
	if w.Self > 0 {
		settings["self-written text"] = describeWriting(w.writing(rules.Context))
	}
	return settings
}

func (w *work) write(r *Result) error {
	if w.Parts > 0 {
		return w.writePart()
	}
	m := r.Scores
	m.Source, m.Engine = w.Source, w.build
	m.Settings = measure.SettingsOf(w.settings(), r.Chunks, r.AllChunks, r.Seen, r.Experts)
	if w.streams() {
		return nil
	}
	npz, err := r.Scores.EncodeNPZ(w.Experts, w.blockCount())
	if err != nil {
		return err
	}
	document, err := r.Scores.Encode(w.Experts)
	if err != nil {
		return err
	}
	if _, err := files.Write(w.NPZ(), w.Force, w.Model.OnDisk(), files.Bytes(npz)); err != nil {
		return err
	}
	_, err = files.Write(w.JSON(), w.Force, w.Model.OnDisk(), files.Bytes(document))
	return err
}

// blockCount is the number of blocks that the rows of an npz count: all of the model.
func (w *work) blockCount() int {
	blocks, _ := w.Model.Metadata().ArchUint("block_count")
	last := 0
	for _, l := range w.Experts.Layers {
		last = max(last, l.Block+1)
	}
	if blocks < 1<<12 {
		return max(last, int(blocks))
	}
	return last
}
