//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// endBy ends the process as a signal does that nobody takes: a shell whose command ends so
// ends its loop too, and one whose command only says that it failed goes on with the next.
func endBy(s os.Signal) {
	signal.Reset(s)
	if number, ok := s.(syscall.Signal); ok {
		syscall.Kill(os.Getpid(), number) // if it fails, the exit code tells
		time.Sleep(time.Second)           // until it arrives
	}
}
