package engine

import (
	"context"
	"fmt"

	"ggufreap/reap/tally"
)

// Accept asks llama.cpp whether it would load the model at path, a split model's first shard.
// With context above 0 the verdict says what a context of so many tokens takes. The error is a
// [Failure] with Refused set, or a [Gone] with a Reason, when it would not.
func (e *Engine) Accept(ctx context.Context, path string, context int) (*Verdict, error) {
	reply, _, err := e.call(ctx, &Request{Op: OpAccept, Path: path, Context: context}, nil, e.o.Patience)
	if err != nil {
		return nil, err
	}
	if reply.Verdict == nil {
		return nil, e.end("gave no verdict")
	}
	return reply.Verdict, nil
}

// Open loads the model at path, a split model's first shard, in place of the one that was open. The
// error is a [Failure], or a [Gone], when llama.cpp does not load it.
func (e *Engine) Open(ctx context.Context, path string, o OpenOptions) (*Opened, error) {
	reply, _, err := e.call(ctx, &Request{Op: OpOpen, Path: path, Open: &o}, nil, e.o.Patience)
	if err != nil {
		return nil, err
	}
	if reply.Opened == nil {
		return nil, e.end("says nothing of the model that it opened")
	}
	return reply.Opened, nil
}

// Tokenize returns the tokens of a text in UTF-8, without BOS and EOS; special has the names of
// control tokens read as those. Another text is a [Failure].
func (e *Engine) Tokenize(ctx context.Context, text []byte, special bool) ([]int, error) {
	_, data, err := e.call(ctx, &Request{Op: OpTokenize, Special: special}, text, e.o.Patience)
	if err != nil {
		return nil, err
	}
	return DecodeTokens(data)
}

// Template writes a conversation as the text that the model's chat template makes of it.
func (e *Engine) Template(ctx context.Context, template string, messages []Message) ([]byte, error) {
	_, data, err := e.call(ctx, &Request{Op: OpTemplate, Template: template, Messages: messages}, nil, e.o.Patience)
	return data, err
}

// Text returns the bytes that tokens stand for.
func (e *Engine) Text(ctx context.Context, tokens []int) ([]byte, error) {
	data, lengths := EncodeTokens([][]int{tokens})
	_, text, err := e.call(ctx, &Request{Op: OpText, Lengths: lengths}, data, e.o.Patience)
	return text, err
}

// Measure computes sequences of one length and returns the sums of what the experts did.
func (e *Engine) Measure(ctx context.Context, m Measure, sequences [][]int) (*tally.Tally, error) {
	data, lengths := EncodeTokens(sequences)
	_, sums, err := e.call(ctx, &Request{Op: OpMeasure, Measure: &m, Lengths: lengths}, data, e.o.Patience)
	if err != nil {
		return nil, err
	}
	t, err := tally.Decode(sums)
	if err != nil {
		return nil, e.end(fmt.Sprintf("sent a %v: %v", errGarbled, err))
	}
	return t, nil
}

// Write lets the model write on for about as long as w.Seconds, adds what it wrote to the draft, and
// reports whether the text is complete. The first time, with w.Begin, it goes on from what is in
// the draft.
func (e *Engine) Write(ctx context.Context, w Write, draft *Draft) (done bool, err error) {
	request := &Request{Op: OpWrite, Write: &w}
	var known []byte
	if w.Begin {
		known, request.Lengths = EncodeTokens(draft.Documents)
	}
	reply, data, err := e.call(ctx, request, known, e.o.Patience)
	if err != nil {
		return false, err
	}
	lists, err := SplitTokens(data, reply.Lengths)
	if err == nil {
		err = draft.Add(reply.First, lists)
	}
	if err != nil {
		return false, e.end(fmt.Sprintf("sent a %v", err))
	}
	return reply.Done, nil
}
