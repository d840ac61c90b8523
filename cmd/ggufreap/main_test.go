package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

// TestInterrupts gets the signal as timeout(1) sends it, twice, and then once more.
func TestInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		ctx, again := interrupts(signals)
		closed := func() bool {
			synctest.Wait()
			select {
			case <-again:
				return true
			default:
				return false
			}
		}
		if closed() || ctx.Err() != nil {
			t.Fatal("interrupted by nothing")
		}
		signals <- os.Interrupt
		if closed() || ctx.Err() == nil {
			t.Fatal("the first signal was not taken for the first")
		}
		if by, ok := context.Cause(ctx).(interruption); !ok || by.signal != os.Interrupt {
			t.Fatalf("interrupted by %v", context.Cause(ctx))
		}
		time.Sleep(echo - 1)
		signals <- os.Interrupt
		if closed() {
			t.Fatal("one signal that came twice was taken for two")
		}
		time.Sleep(time.Nanosecond)
		signals <- os.Interrupt
		if !closed() {
			t.Fatal("the second signal was not noticed")
		}
	})
}

// TestInterruptBeforeTheFirstByte leaves nothing.
func TestInterruptBeforeTheFirstByte(t *testing.T) {
	out := filepath.Join(t.TempDir(), "release")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	con := ui.New(nil, &stdout, &stderr)
	code := run(ctx, con, nil, []string{"ggufreap", "prune", "--keep", "16", "-o", out, writeModel(t, smallK3(), 3)[0]})
	if code != exitInterrupted || !strings.Contains(stderr.String(), "error: interrupted\n") {
		t.Errorf("exit %d\n%s", code, stderr.String())
	}
	if exists(out) {
		t.Errorf("left %q", folder(t, out))
	}
}

// TestInterruptDoesNotWaitForTheDisk has a command that does not end.
func TestInterruptDoesNotWaitForTheDisk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stderr bytes.Buffer
	con := ui.New(nil, &bytes.Buffer{}, &stderr)
	con.RestWith(func() string { return "to go on: x" })
	if code := await(ctx, con, nil, make(chan error), time.Millisecond); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
	if want := "ggufreap: error: interrupted\nggufreap: hint: to go on: x\n"; stderr.String() != want {
		t.Errorf("stderr is %q, want %q", stderr.String(), want)
	}
}

// TestSecondInterruptDoesNotWait has a command that does not end, and a bar on the screen.
func TestSecondInterruptDoesNotWait(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	again := make(chan struct{})
	close(again)
	var stderr bytes.Buffer
	con := ui.New(nil, &bytes.Buffer{}, &stderr)
	con.Progress = progress.Bar
	con.StartProgress("prune", 100).Add(50)
	con.RestWith(func() string { return "to go on: x" })
	if code := await(ctx, con, again, make(chan error), time.Hour); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
	if want := "\r\x1b[Kggufreap: error: interrupted\nggufreap: hint: to go on: x\n"; !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("stderr is %q, want its end %q", stderr.String(), want)
	}
}
