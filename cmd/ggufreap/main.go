// Command ggufreap inspects sharded GGUF models, pins their identity, and makes
// derivatives of mixture-of-experts models that keep some of the routed experts.
//
// In this folder stand the commands, a file each, to be read in one sitting: the help text,
// the flags, and one action that reads them, calls a library and prints. A new command is
// such a file, with one function that makes its [cli.Command]; a line in [commands]; and its
// tests. Its help, completion and man page come of that by themselves; a test wants some page to
// name it. It is given the tool kit as one value, the [ui.Console]: fields, tables, documents,
// messages and progress. What is typed it reads by urfave/cli and words errors about by package
// args; files it reads and writes by package files.
//
// Below internal/ lies the tool kit, a package for each noun, which knows no command; and a
// room for each large answer (inspect, diff, verification, release), where the model of the
// answer, its screen and its document stand apart.
//
// Tests that need the built program, to kill it, limit it or give it what is hostile, stand
// below tests/, a package for each noun, and share what internal/programtest has.
//
// main.go turns signals into an end, exitcode.go errors into exit codes, and memory.go says how much
// memory may be used.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// errDiffers is what a command returns when it has printed how the model is not
// what it should be.
var errDiffers = errors.New("the model is not what it should be")

// A difference is an error that says so itself.
type difference struct{ error }

func (d difference) Is(target error) bool { return target == errDiffers }

func main() {
	crashBySignal()
	tuneCollector()
	con := ui.New(os.Stdin, os.Stdout, os.Stderr)
	ctx, again := interrupts(notified())
	code := run(ctx, con, again, os.Args)
	if by, ok := context.Cause(ctx).(interruption); ok && code == exitInterrupted {
		endBy(by.signal)
	}
	os.Exit(code)
}

// run is the whole program: line[0] is its name. It returns the exit code.
func run(ctx context.Context, con *ui.Console, again <-chan struct{}, line []string) int {
	ended := make(chan error, 1)
	go func() { ended <- runCommand(ctx, con, line) }()
	return await(ctx, con, again, ended, patience)
}

// runCommand runs one command line; line[0] is the program's name.
func runCommand(ctx context.Context, con *ui.Console, line []string) error {
	app := newApp(con)
	words, err := args.Order(app, line[1:])
	if err != nil {
		return err
	}
	return app.RunContext(ctx, append(line[:1:1], words...))
}

// patience is how long an interrupted command may take to end.
const patience = 800 * time.Millisecond

// await waits for a command to end, and returns the exit code. An interrupted one that
// waits for a slow disk is left behind, at once when it is interrupted again: from any
// state of a release folder a later run can go on.
func await(ctx context.Context, con *ui.Console, again <-chan struct{}, ended <-chan error, patience time.Duration) int {
	select {
	case err := <-ended:
		return conclude(ctx, con, err)
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return conclude(ctx, con, err)
	case <-again:
	case <-time.After(patience):
	}
	failInterrupted(con, con.AtRest())
	return exitInterrupted
}

// conclude prints the error of a command, if any, and turns it into the exit code.
func conclude(ctx context.Context, con *ui.Console, err error) int {
	if flushErr := con.Flush(); flushErr != nil && (err == nil || errors.Is(err, errDiffers)) {
		err = flushErr
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		failInterrupted(con, hint.Of(err))
		return exitInterrupted
	}
	code := exitCode(err)
	if _, said := errors.AsType[difference](err); said || code == exitFailed || code == exitTryAgain {
		con.Fail(hub.Explain(explainPointer(explainName(err))))
	}
	return code
}

// explainName adds what can be done with a model whose names have no digest.
func explainName(err error) error {
	if _, ok := errors.AsType[*manifest.NameError](err); ok && hint.Of(err) == "" {
		return hint.With(err, "inspect and reshard take a model with such names; it cannot be compared, pinned or pruned")
	}
	return err
}

// explainPointer says how the file comes that a Git LFS pointer stands for.
func explainPointer(err error) error {
	if format, ok := errors.AsType[*gguf.FormatError](err); ok && format.Pointer && hint.Of(err) == "" {
		return hint.With(err, "git lfs pull, in the folder of the file, fetches what it stands for")
	}
	return err
}

func failInterrupted(con *ui.Console, next string) {
	con.Fail(hint.With(errors.New("interrupted"), "%s", next))
}
