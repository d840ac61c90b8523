//go:build !windows

package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"ggufreap/reap/calibrate"
	"ggufreap/reap/engine"
	"ggufreap/reap/llama"
	"ggufreap/reap/tally"
)

// A backend answers requests with llama.cpp. It holds one model at most.
type backend struct {
	named    string // folder of the libraries, "" for none
	loaded   *llama.Engine
	searched []string
	problem  error

	model     *llama.Model
	collector *calibrate.Collector
	session   *llama.Session
	measure   string // the settings of the session
	writer    *writer

	steps atomic.Uint64 // of loading and writing
	calls atomic.Pointer[calibrate.Collector]
	share atomic.Uint64 // of the model that is loaded, bits of a float64
}

func newBackend(library string) *backend { return &backend{named: library} }

// Steps moves while llama.cpp works.
func (b *backend) Steps() uint64 {
	steps := b.steps.Load()
	if c := b.calls.Load(); c != nil {
		steps += c.Calls()
	}
	return steps
}

// Share returns how much of the model is loaded.
func (b *backend) Share() float64 { return math.Float64frombits(b.share.Load()) }

// load loads the libraries once.
func (b *backend) load() error {
	if b.loaded == nil && b.problem == nil {
		b.loaded, b.searched, b.problem = loadLibrary(b.named)
	}
	return b.problem
}

// Answer answers one request.
func (b *backend) Answer(r *engine.Request, data []byte) (*engine.Reply, []byte, error) {
	err := b.load()
	if r.Op == engine.OpHello {
		return &engine.Reply{Hello: b.hello()}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	switch r.Op {
	case engine.OpAccept:
		return b.accept(r)
	case engine.OpOpen:
		return b.open(r)
	case engine.OpClose:
		return nil, nil, b.close()
	}
	if b.model == nil {
		return nil, nil, errors.New("no model is open")
	}
	switch r.Op {
	case engine.OpTokenize:
		tokens, err := b.model.Tokenize(string(data), r.Special)
		text, _ := engine.EncodeTokens([][]int{tokens})
		return nil, text, err
	case engine.OpTemplate:
		return b.template(r)
	case engine.OpText:
		tokens, err := engine.DecodeTokens(data)
		if err != nil {
			return nil, nil, err
		}
		return nil, []byte(b.model.Text(tokens)), nil
	case engine.OpMeasure:
		return b.sums(r, data)
	case engine.OpWrite:
		return b.write(r, data)
	}
	return nil, nil, fmt.Errorf("request %q is not known", r.Op)
}

func (b *backend) hello() *engine.Hello {
	h := &engine.Hello{Known: llama.KnownVersions, Searched: b.searched}
	if b.problem != nil {
		h.Problem, h.Absent = b.problem.Error(), b.problem == llama.ErrNoLibrary
		return h
	}
	build := b.loaded.Build()
	h.Library, h.Version, h.GGML, h.Commit, h.RPC = b.loaded.Dir(), build.Version, build.GGML, build.Commit, b.loaded.RPC()
	for _, d := range b.loaded.Devices() {
		h.Devices = append(h.Devices, engine.Device(d))
	}
	return h
}

// accept asks for llama.cpp's verdict about a model.
func (b *backend) accept(r *engine.Request) (*engine.Reply, []byte, error) {
	fit, err := b.loaded.Fit(r.Path, r.Context)
	if err != nil {
		return nil, nil, refused(err)
	}
	v := &engine.Verdict{Weights: fit.Weights, Devices: fit.Devices}
	for _, m := range fit.Memory {
		v.Memory = append(v.Memory, engine.Memory(m))
	}
	return &engine.Reply{Verdict: v}, nil, nil
}

// A refusal is llama.cpp's verdict as the parent is told of it.
type refusal struct{ verdict *llama.Refusal }

func (r refusal) Error() string               { return r.verdict.Error() }
func (r refusal) Refusal() (string, []string) { return r.verdict.Reason, r.verdict.Log }

func refused(err error) error {
	if r, ok := errors.AsType[*llama.Refusal](err); ok {
		return refusal{verdict: r}
	}
	return err
}

func (b *backend) open(r *engine.Request) (*engine.Reply, []byte, error) {
	if err := b.close(); err != nil {
		return nil, nil, err
	}
	if err := b.loaded.AddRPC(r.Open.RPC); err != nil {
		return nil, nil, err
	}
	threads := r.Open.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0) // what a container may use, where it is in one
	}
	model, err := b.loaded.Open(r.Path, llama.Options{
		Threads: threads, Tune: r.Open.Threads <= 0, Repack: r.Open.Repack, NoMmap: r.Open.NoMmap,
		GPULayers: r.Open.GPULayers, Devices: r.Open.Devices, TensorSplit: r.Open.TensorSplit,
		Progress: func(share float32) {
			b.steps.Add(1)
			b.share.Store(math.Float64bits(float64(share)))
		},
	})
	if err != nil {
		return nil, nil, refused(err)
	}
	b.model = model
	v := model.Vocabulary()
	return &engine.Reply{Opened: &engine.Opened{
		Vocabulary: v.Size, BOS: v.BOS, AddBOS: v.AddBOS, NoText: v.None,
		Context: model.ContextLength(), Template: model.ChatTemplate() != "",
	}}, nil, nil
}

// close frees what is held of a model.
func (b *backend) close() error {
	err := b.closeSession()
	if b.model != nil {
		err = errors.Join(err, b.model.Close())
		b.model = nil
	}
	return err
}

func (b *backend) closeSession() error {
	if b.session == nil {
		return nil
	}
	err := b.session.Close()
	b.session, b.writer = nil, nil
	if b.collector != nil {
		b.calls.Store(nil)
		b.collector.Close()
		b.collector = nil
	}
	return err
}

func (b *backend) template(r *engine.Request) (*engine.Reply, []byte, error) {
	template := r.Template
	if template == "" {
		template = b.model.ChatTemplate()
	}
	if template == "" {
		return nil, nil, errors.New("the model's file has no chat template: name one, or write the text as plain text")
	}
	messages := make([]llama.Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = llama.Message(m)
	}
	text, err := b.model.ApplyTemplate(template, messages)
	return nil, []byte(text), err
}

// sums measures sequences of tokens.
func (b *backend) sums(r *engine.Request, data []byte) (*engine.Reply, []byte, error) {
	sequences, err := engine.SplitTokens(data, r.Lengths)
	if err != nil {
		return nil, nil, err
	}
	if err := b.prepare(r.Measure); err != nil {
		return nil, nil, err
	}
	sums := tally.New(slices.Collect(maps.Keys(r.Measure.Used)), r.Measure.Experts)
	if err := b.collector.Measure(b.session, sequences, sums); err != nil {
		return nil, nil, err
	}
	return nil, sums.Append(nil), nil
}

// prepare makes a session for these settings, or keeps the one that has them.
func (b *backend) prepare(m *engine.Measure) error {
	settings := fmt.Sprintf("%+v", *m)
	if b.session != nil && b.measure == settings {
		return nil
	}
	if err := b.closeSession(); err != nil {
		return err
	}
	b.collector = calibrate.New(m.Experts, m.Used, runtime.GOMAXPROCS(0))
	b.calls.Store(b.collector)
	session, err := b.model.NewSession(llama.SessionOptions{Context: m.Context, Sequences: m.Streams, Ubatch: m.Ubatch}, b.collector.Observer())
	if err != nil {
		b.calls.Store(nil)
		b.collector.Close()
		b.collector = nil
		return err
	}
	b.session, b.measure = session, settings
	return nil
}
