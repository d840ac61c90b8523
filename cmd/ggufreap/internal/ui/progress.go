package ui

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json"

	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

// StartProgress begins a task, such as "pin", that will pass total bytes, and shows on
// stderr how far it has come.
func (con *Console) StartProgress(task string, total int64) *progress.Task {
	p := progress.Begin(progress.Line{W: con.Err, Columns: func() int { return terminalWidth(con.Err) }, ASCII: !utf8Locale()}, con.progressMode(), task, total)
	con.shown.Store(p)
	return p
}

// progressMode returns what --quiet, --progress and the terminal come to.
func (con *Console) progressMode() string {
	switch {
	case con.Quiet:
		return progress.None
	case con.Progress != progress.Auto:
		return con.Progress
	case con.errTerm && con.dumb:
		return progress.Plain
	case con.errTerm:
		return progress.Bar
	}
	return progress.None
}

// clearProgress empties the line that a bar stands on, for something else to be said.
func (con *Console) clearProgress() {
	if p := con.shown.Load(); p != nil {
		p.Hide()
	}
}

// stopProgress does so for good.
func (con *Console) stopProgress() {
	if p := con.shown.Swap(nil); p != nil {
		p.Stop()
	}
}

// ShowsProgress reports whether lines about how far a task has come are wanted.
func (con *Console) ShowsProgress() bool { return con.progressMode() != progress.None }

// ReportsProgress reports whether a program wants to be told how far a task has come, and tells
// it with a line of JSON.
func (con *Console) ReportsProgress() bool { return con.progressMode() == progress.JSON }

// Report writes a line of JSON about how far a task has come.
func (con *Console) Report(state any) {
	if line, err := json.Marshal(state); err == nil {
		fmt.Fprintf(con.Err, "%s\n", line)
	}
}

// ShowsUTF8 reports whether stdout is a terminal that shows more than ASCII.
func (con *Console) ShowsUTF8() bool { return con.Width > 0 && utf8Locale() }

// utf8Locale reports whether the terminal shows more than ASCII, as the locale says.
func utf8Locale() bool {
	if runtime.GOOS == "windows" {
		return true // it has no such variables, and shows it
	}
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	name := strings.ToLower(strings.ReplaceAll(locale, "-", ""))
	return strings.Contains(name, "utf8")
}
