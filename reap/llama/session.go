package llama

import (
	"errors"
	"fmt"
	"slices"
	"time"

	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// SessionOptions say how a [Session] computes.
type SessionOptions struct {
	Context   int // tokens of a sequence, at most
	Sequences int // sequences that are computed side by side, 1 when zero
	// Ubatch is how many tokens are computed at a time, over all sequences: each weight is
	// read once for them. 512 when zero, 3 at least, and never more than all sequences hold.
	Ubatch int
	// LastOnly asks for the logits of each sequence's last token alone. A model's last layer
	// is then computed for those tokens alone.
	LastOnly bool
}

// A Session computes sequences one after another in memory that is taken once. Close it.
//
// A sequence has the same results, bit for bit, whatever the number of threads, of tokens
// computed at a time and of sequences side by side, as long as more than one token is
// computed at a time: llama.cpp has other kernels for one.
type Session struct {
	model    *Model
	ctx      yzma.Context
	memory   yzma.Memory
	batch    yzma.Batch
	ubatch   int
	pace     *pace // nil where the number of threads is fixed
	o        SessionOptions
	sequence []position // where the next token of each sequence goes
}

type position = yzma.Pos

// NewSession takes the memory that computing needs. observer may be nil.
func (m *Model) NewSession(o SessionOptions, observer *Observer) (*Session, error) {
	o.Sequences = max(o.Sequences, 1)
	if o.Ubatch <= 0 {
		o.Ubatch = 512
	}
	o.Ubatch = max(min(o.Ubatch, o.Context*o.Sequences), o.Sequences, 3) // with 3 no piece is a token alone
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == 0 {
		return nil, errors.New(m.path + ": model is closed")
	}
	params := m.params(o.Context*o.Sequences, o.Ubatch, o.Sequences)
	params.TypeK, params.TypeV = yzma.GGMLTypeF16, yzma.GGMLTypeF16 // llama.cpp's own choice
	if observer != nil {
		if err := bindGGML(); err != nil {
			return nil, err
		}
		params.CbEval = ggml.observe
	}
	lastLog.reset()
	ctx, err := yzma.InitFromModel(m.handle, params)
	if err != nil {
		return nil, lastLog.annotate("%s: llama.cpp cannot run the model", m.path)
	}
	memory, err := yzma.GetMemory(ctx)
	if err != nil {
		memory = 0 // a model that remembers nothing, such as a diffusion model
	}
	s := &Session{
		model: m, ctx: ctx, memory: memory, batch: yzma.BatchInit(int32(o.Ubatch), 0, 1),
		ubatch: o.Ubatch, pace: m.newPace(), o: o, sequence: make([]position, o.Sequences),
	}
	if s.pace != nil {
		yzma.SetNThreads(ctx, int32(s.pace.threads), int32(s.pace.threads))
	}
	return s, nil
}

// Close frees the session's memory.
func (s *Session) Close() error {
	if s.pace != nil {
		s.model.fastest = s.pace.usual
	}
	return errors.Join(yzma.BatchFree(s.batch), yzma.Free(s.ctx))
}

// Clear forgets all sequences.
func (s *Session) Clear() error {
	clear(s.sequence)
	if s.memory == 0 {
		return nil
	}
	return yzma.MemoryClear(s.memory, true)
}

// Pieces returns how many tokens of each of so many sequences of one length are computed at
// a time: as many as fit, in pieces that differ by one token at most.
func (s *Session) Pieces(sequences, length int) []int {
	most := max(s.ubatch/sequences, 1)
	n := (length + most - 1) / most
	pieces := make([]int, n)
	for i := range pieces {
		pieces[i] = length*(i+1)/n - length*i/n
	}
	return pieces
}

// Append computes further tokens of each sequence, the i-th list those of sequence i. All
// lists have one length. After each piece, which is one computation, done is called with the
// tokens computed in it; an error of done ends the work.
func (s *Session) Append(lists [][]int, observer *Observer, done func(tokens int) error) error {
	if err := s.check(lists); err != nil {
		return err
	}
	at := 0
	for _, size := range s.Pieces(len(lists), len(lists[0])) {
		if err := s.fill(lists, at, size); err != nil {
			return err
		}
		if err := s.decode(observer); err != nil {
			return err
		}
		at += size
		if done == nil {
			continue
		}
		if err := done(size * len(lists)); err != nil {
			return err
		}
	}
	for i := range lists {
		s.sequence[i] += position(len(lists[i]))
	}
	return nil
}

func (s *Session) check(lists [][]int) error {
	if len(lists) == 0 || len(lists) > s.o.Sequences {
		return fmt.Errorf("%s: %d sequences for %d", s.model.path, len(lists), s.o.Sequences)
	}
	for i, list := range lists {
		if len(list) != len(lists[0]) || len(list) == 0 || int(s.sequence[i])+len(list) > s.o.Context {
			return fmt.Errorf("%s: sequence %d gets %d tokens after %d, it has room for %d and sequence 0 gets %d",
				s.model.path, i, len(list), s.sequence[i], s.o.Context, len(lists[0]))
		}
		if j := slices.IndexFunc(list, func(id int) bool { return id < 0 || id >= s.model.vocab }); j >= 0 {
			return fmt.Errorf("%s: token %d of sequence %d is %d, the vocabulary has %d", s.model.path, j, i, list[j], s.model.vocab)
		}
	}
	return nil
}

// fill puts the tokens at..at+size of each list into the batch.
func (s *Session) fill(lists [][]int, at, size int) error {
	if err := s.batch.Clear(); err != nil {
		return err
	}
	for i, list := range lists {
		for j := at; j < at+size; j++ {
			wanted := !s.o.LastOnly || j == len(list)-1
			if err := s.batch.Add(yzma.Token(list[j]), s.sequence[i]+position(j), []yzma.SeqId{yzma.SeqId(i)}, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) decode(observer *Observer) error {
	compute := func() error {
		begun := time.Now()
		if status, err := yzma.Decode(s.ctx, s.batch); err != nil || status != 0 {
			return lastLog.annotate("%s: llama.cpp cannot compute %d tokens (status %d)", s.model.path, s.batch.NTokens, status)
		}
		yzma.Synchronize(s.ctx)
		if s.pace.computed(int(s.batch.NTokens), time.Since(begun)) {
			yzma.SetNThreads(s.ctx, int32(s.pace.threads), int32(s.pace.threads))
		}
		return nil
	}
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	if observer == nil {
		return compute()
	}
	return observed(*observer, compute)
}

// Logits returns the logits of the i-th token of the piece that was computed last. They are
// good until the next one.
func (s *Session) Logits(i int) ([]float32, error) {
	row, err := yzma.GetLogitsIth(s.ctx, int32(i), s.model.vocab)
	if err != nil || len(row) != s.model.vocab {
		return nil, fmt.Errorf("%s: no logits of token %d", s.model.path, i)
	}
	return row, nil
}
