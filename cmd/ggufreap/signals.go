package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// notified returns the signals that ask the program to end: Ctrl-C, kill, and a terminal that
// was closed. One that is ignored, as by nohup or in a script's background, stays so.
func notified() chan os.Signal {
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// An interruption is why a command was canceled.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return i.signal.String() }

// interrupts returns a context that the first signal to end cancels, and a channel that
// a second one closes. A third ends the process whatever it does.
func interrupts(signals chan os.Signal) (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(context.Background())
	again := make(chan struct{})
	go func() {
		cancel(interruption{<-signals})
		for first := time.Now(); time.Since(first) < echo; {
			<-signals
		}
		signal.Stop(signals)
		close(again)
	}()
	return ctx, again
}

// echo is how long the first signal may come again without being a second one: parents
// pass on what the terminal has sent to the whole group, and timeout(1) sends all twice.
const echo = 100 * time.Millisecond
