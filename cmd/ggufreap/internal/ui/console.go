// Package ui is what a command has of the person at the terminal: one [Console], through
// which it prints fields, tables and documents, says what it is doing, warns, and shows how
// far it has come. It knows streams, terminals, widths and colors. It knows no command, no
// flags and no models.
package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/term"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// The rules of speech: results go to stdout, everything else to stderr under the
// tool's name, in lower case and without a period. An error says what is wrong, a
// hint what to type next.

// A Console is where the program reads and writes, and what it may do there.
type Console struct {
	In  io.Reader
	Out *bufio.Writer // flushed when the command returns
	Err io.Writer

	color    bool // on out
	errColor bool // on err
	Width    int  // columns of the terminal that out is; 0 when it is none
	errTerm  bool // err is a terminal
	dumb     bool // the terminal can neither move its cursor nor show colors

	Quiet    bool   // show no progress
	Progress string // how to show it

	shown atomic.Pointer[progress.Task] // what is drawn on err, or nil
	rest  atomic.Pointer[func() string] // makes what atRest returns
}

// New makes the console of three streams, and looks what they are.
func New(stdin io.Reader, stdout, stderr io.Writer) *Console {
	con := &Console{In: stdin, Out: bufio.NewWriterSize(stdout, 64<<10), Err: stderr, Progress: progress.Auto}
	con.Width = terminalWidth(stdout)
	con.errTerm = terminalWidth(stderr) > 0
	con.dumb = os.Getenv("TERM") == "dumb"
	colors := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "" && !con.dumb
	con.color = colors && con.Width > 0
	con.errColor = colors && con.errTerm
	return con
}

// terminalWidth returns the columns of a terminal, 0 for anything else.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}

// Printf writes to stdout. Errors stick to the writer and are seen when it is flushed.
func (con *Console) Printf(format string, args ...any) { fmt.Fprintf(con.Out, format, args...) }

// Notef writes a line about what is being done to stderr, unless it is to be quiet.
func (con *Console) Notef(format string, args ...any) {
	if !con.Quiet {
		con.clearProgress()
		for _, line := range con.errLines("ggufreap: " + fmt.Sprintf(format, args...)) {
			fmt.Fprintf(con.Err, "%s\n", line)
		}
	}
}

// Paint wraps s in a style when stdout has colors.
func (con *Console) Paint(style, s string) string { return paint(con.color, style, s) }

// Flush writes out what is left for stdout, and returns the first error of all writing.
func (con *Console) Flush() error { return con.Out.Flush() }

// RestWith says what makes the hint for a command that is ended from outside while it waits.
func (con *Console) RestWith(hint func() string) { con.rest.Store(&hint) }

// AtRest is that hint.
func (con *Console) AtRest() string {
	if hint := con.rest.Load(); hint != nil {
		return (*hint)()
	}
	return ""
}

// Warnf writes a warning line to stderr.
func (con *Console) Warnf(format string, args ...any) {
	con.clearProgress()
	con.say(Yellow, "warning", fmt.Sprintf(format, args...))
}

// maxErrorLines bounds what one error prints: some list every fault they found.
const maxErrorLines = 40

// Fail writes an error, a line for each of its lines, and its hint.
func (con *Console) Fail(err error) {
	con.stopProgress()
	lines := strings.Split(errorText(err), "\n")
	for _, line := range lines[:min(len(lines), maxErrorLines)] {
		con.say(Red, "error", line)
	}
	if more := len(lines) - maxErrorLines; more > 0 {
		con.say(Red, "error", fmt.Sprintf("and %s more", text.Count(more, "line")))
	}
	if hint := hint.Of(err); hint != "" {
		for line := range strings.Lines(hint) {
			fmt.Fprintf(con.Err, "ggufreap: hint: %s\n", text.Safe(strings.TrimSuffix(line, "\n"))) // whole, to be copied
		}
	}
}

// say writes a line to stderr, broken to the terminal's width, the middle of an endless one
// left out.
func (con *Console) say(style, kind, what string) {
	const name = "ggufreap: "
	lines := con.errLines(name + kind + ": " + text.Abridge(text.Safe(what)))
	fmt.Fprintf(con.Err, "%s%s%s\n", name, paint(con.errColor, style, kind), lines[0][len(name+kind):])
	for _, line := range lines[1:] {
		fmt.Fprintf(con.Err, "%s\n", line)
	}
}

// errLines breaks a text to the width of the terminal that err is, if it is one.
func (con *Console) errLines(said string) []string {
	if !con.errTerm {
		return []string{said}
	}
	const indent = "  "
	lines := text.Wrap(said, max(terminalWidth(con.Err)-len(indent)-1, 20))
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return lines
}

// errorText leaves out the name of the system call that stands before a path.
func errorText(err error) string {
	err = hint.Without(err)
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Error() == err.Error() {
		return fmt.Sprintf("%s: %v", text.Safe(e.Path), e.Err)
	}
	return err.Error()
}
