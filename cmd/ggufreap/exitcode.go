package main

import (
	"context"
	"errors"
	"os"

	"ggufreap/gguf"
	"ggufreap/manifest/repair"
	"ggufreap/manifest/stage"
)

// The exit codes.
const (
	exitOK      = 0
	exitDiffers = 1 // the artifact is not what it should be
	exitFailed  = 2 // the request could not be carried out, and cannot be as it is

	// The request could not be carried out now: the same one may succeed later, or on another
	// machine. It is the EX_TEMPFAIL of sysexits.h, which schedulers' manuals use for it.
	exitTryAgain = 75

	// The command was ended by a signal. The process then ends by that signal itself, which
	// shells show as 130, 143 or 129; only where there are no signals it is the exit code.
	exitInterrupted = 130
)

// exitCode returns the exit code of what ended a command. No other place decides which errors
// are worth another try.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDiffers):
		return exitDiffers
	case mayPass(err):
		return exitTryAgain
	}
	return exitFailed
}

// mayPass reports whether what failed may succeed when nothing is changed by hand: a disk or
// a network failed, memory or descriptors ran out, or another run is at work there. A full
// disk, a quota and missing permissions wait for a person.
func mayPass(err error) bool {
	for _, passing := range []error{stage.ErrInUse, repair.ErrInUse, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return gguf.MachineFault(err)
}
