//go:build !windows

// Command ggufreap-engine holds llama.cpp for ggufreap, which starts it and speaks with it
// over its stdin and stdout (package reap/engine). It is a program of its own because
// llama.cpp can end its process, and because a program that can load it does not start where
// libffi is missing.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"ggufreap/reap/engine"
)

const usage = `ggufreap-engine holds llama.cpp for ggufreap, which starts it: there is nothing to
type here. "ggufreap engine" tells what was found.

Usage:
  ggufreap-engine serve [--llama-lib DIR]
`

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] != "serve" || term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	library := ""
	switch {
	case len(args) == 3 && args[1] == "--llama-lib":
		library = args[2]
	case len(args) != 1:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := serve(library); err != nil {
		fmt.Fprintf(os.Stderr, "ggufreap-engine: %v\n", err)
		os.Exit(2)
	}
}

// serve answers requests until the parent is gone. What llama.cpp prints to stdout goes to
// stderr, so that it does not get between the messages. An interrupt from the terminal is for
// the parent, which ends this process when it wants to.
func serve(library string) error {
	signal.Ignore(os.Interrupt)
	debug.SetGCPercent(50)
	out, err := unix.Dup(1)
	if err != nil {
		return err
	}
	if err := unix.Dup2(2, 1); err != nil {
		return err
	}
	b := newBackend(library)
	return engine.Serve(os.Stdin, os.NewFile(uintptr(out), "replies"), b, func() { os.Exit(0) })
}
