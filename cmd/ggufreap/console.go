package main

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
)

// The rules of speech: results go to stdout, everything else to stderr under the
// tool's name, in lower case and without a period. An error says what is wrong, a
// hint what to type next.

// A console is where the program reads and writes, and what it may do there.
type console struct {
	in  io.Reader
	out *bufio.Writer // flushed when the command returns
	err io.Writer

	color    bool // on out
	errColor bool // on err
	width    int  // columns of the terminal that out is; 0 when it is none
	errTerm  bool // err is a terminal
	dumb     bool // the terminal can neither move its cursor nor show colors

	// set by the flags of progressFlags
	quiet    bool
	progress string

	shown atomic.Pointer[progress]      // what is drawn on err, or nil
	rest  atomic.Pointer[func() string] // makes what atRest returns
}

func newConsole(stdin io.Reader, stdout, stderr io.Writer) *console {
	con := &console{in: stdin, out: bufio.NewWriterSize(stdout, 64<<10), err: stderr, progress: progressAuto}
	con.width = terminalWidth(stdout)
	con.errTerm = terminalWidth(stderr) > 0
	con.dumb = os.Getenv("TERM") == "dumb"
	colors := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "" && !con.dumb
	con.color = colors && con.width > 0
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

// printf writes to stdout. Errors stick to the writer and are seen when it is flushed.
func (con *console) printf(format string, args ...any) { fmt.Fprintf(con.out, format, args...) }

// notef writes a line about what is being done to stderr, unless it is to be quiet.
func (con *console) notef(format string, args ...any) {
	if !con.quiet {
		con.clearProgress()
		for _, line := range con.errLines("ggufreap: " + fmt.Sprintf(format, args...)) {
			fmt.Fprintf(con.err, "%s\n", line)
		}
	}
}

// atRest is the hint for a command that is ended from outside while it waits.
func (con *console) atRest() string {
	if hint := con.rest.Load(); hint != nil {
		return (*hint)()
	}
	return ""
}

// warnf writes a warning line to stderr.
func (con *console) warnf(format string, args ...any) {
	con.clearProgress()
	con.say(yellow, "warning", fmt.Sprintf(format, args...))
}

// maxErrorLines bounds what one error prints: some list every fault they found.
const maxErrorLines = 40

// fail writes an error, a line for each of its lines, and its hint.
func (con *console) fail(err error) {
	con.stopProgress()
	lines := strings.Split(errorText(err), "\n")
	for _, line := range lines[:min(len(lines), maxErrorLines)] {
		con.say(red, "error", line)
	}
	if more := len(lines) - maxErrorLines; more > 0 {
		con.say(red, "error", fmt.Sprintf("and %s more", count(more, "line")))
	}
	if hint := hintOf(err); hint != "" {
		for line := range strings.Lines(hint) {
			fmt.Fprintf(con.err, "ggufreap: hint: %s\n", safe(strings.TrimSuffix(line, "\n"))) // whole, to be copied
		}
	}
}

// say writes a line to stderr, broken to the terminal's width, the middle of an endless one
// left out.
func (con *console) say(style, kind, text string) {
	const name = "ggufreap: "
	lines := con.errLines(name + kind + ": " + abridge(safe(text)))
	fmt.Fprintf(con.err, "%s%s%s\n", name, paint(con.errColor, style, kind), lines[0][len(name+kind):])
	for _, line := range lines[1:] {
		fmt.Fprintf(con.err, "%s\n", line)
	}
}

// errLines breaks a text to the width of the terminal that err is, if it is one.
func (con *console) errLines(text string) []string {
	if !con.errTerm {
		return []string{text}
	}
	const indent = "  "
	lines := wrap(text, max(terminalWidth(con.err)-len(indent)-1, 20))
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return lines
}

// errorText leaves out the name of the system call that stands before a path.
func errorText(err error) string {
	var hint hinted
	if errors.As(err, &hint) && err == error(hint) {
		err = hint.err
	}
	if e, ok := err.(*fs.PathError); ok {
		return fmt.Sprintf("%s: %v", safe(e.Path), e.Err)
	}
	return err.Error()
}

// A hinted error comes with what the user can do about it.
type hinted struct {
	err  error
	hint string
}

func (e hinted) Error() string { return e.err.Error() }
func (e hinted) Unwrap() error { return e.err }

// withHint adds a hint to an error; nil stays nil.
func withHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

func hintOf(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}
