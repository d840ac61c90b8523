package engine

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

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
