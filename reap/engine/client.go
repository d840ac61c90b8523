package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"ggufreap/reap/tally"
)

// Options say how the engine is started.
type Options struct {
	Library string // folder of the llama.cpp libraries; "" to let the engine look
	// Patience is how long llama.cpp may work on one thing without a sign of going on before
	// it is taken to hang; 10 minutes when zero.
	Patience time.Duration
	// Environment is added to that of this process.
	Environment []string
}

// Engine is a running engine. Its methods are for one caller at a time. After an error that
// is not a [Failure] of the request alone the engine is gone.
type Engine struct {
	o      Options
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    chan incoming
	quit   chan struct{} // closed when nobody listens any more
	stderr *lastWords
	hello  *Hello
	dead   error

	// Report, unless nil, is told what is being done.
	Report func(Alive)
}

type incoming struct {
	reply Reply
	data  []byte
	err   error
}

// A Failure is an answer to a request that could not be carried out. The engine goes on.
type Failure struct {
	Reason  string
	Refused bool     // llama.cpp refuses the model
	Log     []string // its latest warnings and errors
}

func (f *Failure) Error() string { return f.Reason }

// Gone says that the engine ended, or was ended, in the middle of its work.
type Gone struct {
	Why    string   // "was killed (signal: killed)" and the like
	Reason string   // the line in which llama.cpp gives the cause, "" for none
	Words  []string // the last lines that it wrote
	passes bool     // it was killed, or did nothing for too long
}

// MachineFault tells package gguf whether memory ran out or the machine came to a halt, which
// says nothing of the model.
func (g *Gone) MachineFault() bool { return g.passes || noMemory(g.Words) }

// MachineFault does so for a request.
func (f *Failure) MachineFault() bool { return !f.Refused && noMemory(f.Log) }

// noMemory reports whether C++ or ggml says that memory ran out.
func noMemory(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, "std::bad_alloc") || strings.Contains(line, "failed to allocate") || strings.Contains(line, "unable to allocate")
	})
}

func (g *Gone) Error() string {
	if g.Reason != "" {
		return fmt.Sprintf("the engine %s: %s", g.Why, g.Reason)
	}
	return "the engine " + g.Why
}

// startPatience is how long the engine may take to say who it is: loading libraries from a
// cold disk takes seconds.
const startPatience = 2 * time.Minute

// Start starts the engine program at the given path and asks who it is. Ending ctx kills it.
func Start(ctx context.Context, program string, o Options) (*Engine, error) {
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	args := []string{"serve"}
	if o.Library != "" {
		args = append(args, "--llama-lib", o.Library)
	}
	e := &Engine{o: o, cmd: exec.CommandContext(ctx, program, args...), stderr: newLastWords(), out: make(chan incoming, 1), quit: make(chan struct{})}
	e.cmd.Env = append(os.Environ(), "GGML_NO_BACKTRACE=1")
	e.cmd.Env = append(e.cmd.Env, o.Environment...)
	e.cmd.Stderr = e.stderr
	e.cmd.WaitDelay = time.Second
	var err error
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	go e.read(out)
	reply, _, err := e.call(ctx, &Request{Op: OpHello}, nil, startPatience)
	if err != nil {
		return nil, fmt.Errorf("%s does not start: %w", program, err)
	}
	if reply.Hello == nil {
		return nil, e.end("answers no greeting")
	}
	e.hello = reply.Hello
	return e, nil
}

// read passes on what the engine says.
func (e *Engine) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		var i incoming
		i.data, i.err = readFrame(r, &i.reply)
		select {
		case e.out <- i:
		case <-e.quit:
			return
		}
		if i.err != nil {
			return
		}
	}
}

// Hello returns what the engine said of itself.
func (e *Engine) Hello() *Hello { return e.hello }

// Close ends the engine.
func (e *Engine) Close() error {
	if e.dead == nil {
		e.dead = errors.New("the engine was closed")
		e.wait()
	}
	return nil
}

// call asks for one thing and waits for the reply, as long as the engine's steps move at
// least once in patience.
func (e *Engine) call(ctx context.Context, request *Request, data []byte, patience time.Duration) (*Reply, []byte, error) {
	if e.dead != nil {
		return nil, nil, e.dead
	}
	frame, err := layOut(request, data)
	if err != nil {
		return nil, nil, err
	}
	sent := make(chan error, 1)
	go func() { sent <- writeParts(e.in, frame) }()
	var steps uint64
	hanging := time.NewTimer(patience)
	defer hanging.Stop()
	for {
		select {
		case <-ctx.Done():
			e.cmd.Process.Kill()
			e.dead = ctx.Err()
			go e.wait() // a large process takes long to end
			return nil, nil, ctx.Err()
		case <-hanging.C:
			e.end(fmt.Sprintf("was ended: llama.cpp did nothing for %s", patience)).passes = true
			return nil, nil, e.dead
		case i := <-e.out:
			if i.err != nil {
				return nil, nil, e.ended(ctx, i.err)
			}
			if alive := i.reply.Alive; alive != nil {
				if alive.Steps != steps {
					steps = alive.Steps
					hanging.Reset(patience)
				}
				if e.Report != nil {
					e.Report(*alive)
				}
				continue
			}
			if err := <-sent; err != nil {
				return nil, nil, e.ended(ctx, err)
			}
			if i.reply.Error != "" {
				return nil, nil, &Failure{i.reply.Error, i.reply.Refused, i.reply.Log}
			}
			return &i.reply, i.data, nil
		}
	}
}

// end kills the engine and says why.
func (e *Engine) end(why string) *Gone {
	e.cmd.Process.Kill()
	e.wait()
	gone := &Gone{Why: why, Words: e.stderr.lines()}
	e.dead = gone
	return gone
}

// ended explains why the stream ended or is garbled.
func (e *Engine) ended(ctx context.Context, err error) error {
	if errors.Is(err, errGarbled) && !errors.Is(err, io.EOF) {
		e.cmd.Process.Kill()
	}
	state := e.wait()
	if ctx.Err() != nil {
		e.dead = ctx.Err()
		return e.dead
	}
	g := &Gone{Words: e.stderr.lines(), Reason: e.stderr.cause()}
	switch {
	case g.Reason != "":
		g.Why = "ended"
	case errors.Is(err, errGarbled):
		g.Why = "sent a " + err.Error()
	default:
		g.Why, g.passes = explainEnd(state), wasKilled(state)
	}
	e.dead = g
	return g
}

// wait waits for the process, which ends when its stdin does, and returns how it ended.
func (e *Engine) wait() error {
	close(e.quit)
	e.in.Close()
	kill := time.AfterFunc(endPatience, func() { e.cmd.Process.Kill() })
	defer kill.Stop()
	return e.cmd.Wait()
}

// endPatience is how long the engine may take to end.
const endPatience = 5 * time.Second

// explainEnd puts into words how a process ended that gave no reason.
func explainEnd(err error) string {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "ended by itself without an answer"
	case !ok:
		return "ended: " + err.Error()
	case wasKilled(err):
		return "was killed (signal 9), which is what a system does when memory runs out"
	}
	return "ended (" + exit.String() + ")"
}

// wasKilled reports whether a process was ended by the signal that no process handles.
func wasKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.String() == "signal: killed"
}

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

// Open loads a model.
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

// Tokenize returns the tokens of a text, without BOS and EOS.
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

// Text returns what tokens stand for.
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

// PID returns the number of the engine's process.
func (e *Engine) PID() int { return e.cmd.Process.Pid }
