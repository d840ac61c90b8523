package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"
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
