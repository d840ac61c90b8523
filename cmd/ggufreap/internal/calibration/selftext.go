package calibration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/reap/engine"
	"ggufreap/reap/measure"
)

// SelfLabel is the label of text that the model has written itself.
const SelfLabel = "self"

// What the model writes is many documents, since few would be about few things, and since those
// that are written side by side cost little more than one: each weight is read once for them.
const (
	usualDocument = 512 // tokens of a document, where --ctx does not say
	leastDocument = 128 // fewer only where less is wanted
	mostStreams   = 32
	fewStreams    = 8 // where it is not known what memory a stream takes
	streamShare   = 4 // all take a quarter of the free memory at most
	writeFor      = time.Second
)

// A selfWriting has the model write a text.
type selfWriting struct {
	*Campaign
	con    *ui.Console
	engine *engine.Engine
	write  engine.Write
	basis  map[string]string
	draft  engine.Draft
	reused bool // the text is what an earlier run has finished
}

func newSelfWriting(ctx context.Context, c *Campaign, con *ui.Console, e *engine.Engine, rules measure.Rules) *selfWriting {
	s := &selfWriting{Campaign: c, con: con, engine: e, write: c.writing(rules.Context), basis: c.basis(e.Hello())}
	s.basis["self-written text"] = describeWriting(s.write)
	each := c.Remembered(ctx, c.Self/s.write.Documents+1)
	s.write.Streams = sideBySide(s.write.Documents, each, freeMemory(e.Hello()))
	return s
}

// sideBySide returns how many of so many documents are written side by side, of which llama.cpp
// remembers each in so many bytes, 0 for unknown. The text does not depend on it.
func sideBySide(documents int, each, free uint64) int {
	if each == 0 {
		return min(documents, fewStreams)
	}
	return int(max(1, min(uint64(min(documents, mostStreams)), free/streamShare/each)))
}

// writing settles how the text is written, where a chunk has at most so many tokens.
func (c *Campaign) writing(context int) engine.Write {
	longest := min(usualDocument, context)
	if c.Context > 0 {
		longest = context
	}
	documents := max(1, (c.Self+longest-1)/longest, min(mostStreams, c.Self/leastDocument))
	return engine.Write{Seed: c.Seed, Tokens: c.Self, Documents: documents, Seconds: writeFor.Seconds()}
}

// describeWriting says in words what decides about the text.
func describeWriting(w engine.Write) string {
	return fmt.Sprintf("%d tokens asked for, temperature 1, seed %d, %d documents", w.Tokens, w.Seed, w.Documents)
}

// read returns what the model writes, or has written in the run that is gone on with.
func (s *selfWriting) read(ctx context.Context) (*measure.Text, error) {
	path := s.SelfText()
	if err := s.resume(); err != nil {
		return nil, s.refused(err)
	}
	var lines []byte
	var err error
	if s.reused {
		lines, err = files.Read(path)
	} else if lines, err = s.writeText(ctx); err == nil && !s.streams() {
		_, err = files.Write(path, true, s.Model.OnDisk(), files.Bytes(lines))
	}
	if err != nil {
		return nil, err
	}
	return measure.ReadText(SelfLabel, path, 1, lines)
}

// resume takes over what an earlier run has written.
func (s *selfWriting) resume() error {
	if !s.Resume {
		return nil
	}
	data, err := os.ReadFile(s.Checkpoint())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !measure.IsDraft(data):
		s.reused = true // it was measuring already
		return nil
	}
	draft, err := measure.ResumeDraft(data, s.basis)
	if err != nil {
		return err
	}
	return json.Unmarshal(draft, &s.draft)
}

// writeText has the model write, and returns the text as lines of JSON that are kept beside the
// result: {"tokens": [...], "text": "..."}.
func (s *selfWriting) writeText(ctx context.Context) ([]byte, error) {
	done := s.draft.Written()
	told := &pace{con: s.con, what: "writing", all: s.Self, before: done, begun: time.Now()}
	saved := time.Now()
	w := s.write
	w.Begin = true
	for whole := false; !whole; w.Begin = false {
		told.tell(min(s.draft.Written(), s.Self), nil)
		var err error
		if whole, err = s.engine.Write(ctx, w, &s.draft); err != nil {
			return nil, s.stopped(err)
		}
		if !whole && !s.streams() && time.Since(saved) > saveEvery {
			if err := s.save(); err != nil {
				return nil, err
			}
			saved = time.Now()
		}
	}
	told.end(s.Self)
	lines, err := s.lines(ctx)
	if err != nil {
		return nil, s.stopped(err)
	}
	return lines, nil
}

// stopped saves what was written before something stopped the run.
func (s *selfWriting) stopped(err error) error {
	if s.draft.Written() == 0 || s.streams() {
		return err
	}
	if saving := s.save(); saving != nil {
		return hint.With(err, "what the model wrote is not saved: %v", saving)
	}
	return hint.With(err, "what the model wrote is in %s: the same command with --resume goes on", s.Checkpoint())
}

func (s *selfWriting) save() error {
	draft, err := json.Marshal(s.draft)
	if err != nil {
		return err
	}
	data, err := measure.DraftCheckpoint(draft, s.basis)
	if err != nil {
		return err
	}
	_, err = files.Write(s.Checkpoint(), true, s.Model.OnDisk(), files.Bytes(data))
	return err
}

func (s *selfWriting) lines(ctx context.Context) ([]byte, error) {
	var lines bytes.Buffer
	for _, document := range s.draft.Documents {
		said, err := s.engine.Text(ctx, document)
		if err != nil {
			return nil, err
		}
		line, err := json.Marshal(struct {
			Tokens []int  `json:"tokens"`
			Text   string `json:"text"`
		}{document, string(bytes.ToValidUTF8(said, []byte("\uFFFD")))})
		if err != nil {
			return nil, err
		}
		lines.Write(append(line, '\n'))
	}
	return lines.Bytes(), nil
}
