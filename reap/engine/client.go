package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
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

// startPatience is how long the engine may take to say who it is: loading libraries from a
// cold disk takes seconds.
const startPatience = 2 * time.Minute

// Start starts the engine program at the given path and asks who it is. Ending ctx kills it. The
// caller closes it. One that ends, garbles its answer or is silent for two minutes is an error.
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
		i, err := e.next(ctx, hanging.C, patience)
		if err != nil {
			return nil, nil, err
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

// next returns what the engine says next. When ctx or the patience ends before, so does the
// engine.
func (e *Engine) next(ctx context.Context, hanging <-chan time.Time, patience time.Duration) (*incoming, error) {
	select {
	case <-ctx.Done():
		e.cmd.Process.Kill()
		e.dead = ctx.Err()
		go e.wait() // a large process takes long to end
		return nil, ctx.Err()
	case <-hanging:
		e.end(fmt.Sprintf("was ended: llama.cpp did nothing for %s", patience)).passes = true
		return nil, e.dead
	case i := <-e.out:
		if i.err != nil {
			return nil, e.ended(ctx, i.err)
		}
		return &i, nil
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

// PID returns the number of the engine's process.
func (e *Engine) PID() int { return e.cmd.Process.Pid }
