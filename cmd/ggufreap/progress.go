package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
)

// The values of --progress.
const (
	progressAuto  = "auto" // a bar on a terminal, lines on one without a cursor, nothing elsewhere
	progressBar   = "bar"
	progressPlain = "plain" // a line every few seconds
	progressNone  = "none"
)

const plainInterval = 5 * time.Second

// progressHelp describes the flags of progressFlags.
const progressHelp = `  -q, --quiet            show no progress
      --progress MODE    auto, bar, plain or none (auto: a bar on a terminal,
                         lines where TERM is dumb, nothing elsewhere)
`

// progressFlags are the flags of every command that reads tensor data.
func (con *console) progressFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &con.quiet},
		&cli.StringFlag{Name: "progress", Value: progressAuto, Destination: &con.progress,
			Action: func(_ *cli.Context, mode string) error {
				switch mode {
				case progressAuto, progressBar, progressPlain, progressNone:
					return nil
				}
				return usagef("--progress is %q, want auto, bar, plain or none", mode)
			}},
	}
}

// A progress shows on stderr how far a task over a known number of bytes has come.
// Any number of goroutines may add to it.
type progress struct {
	con   *console
	task  string
	total int64
	now   func() time.Time

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil unless a bar is drawn
	plain   bool
	done    int64
	started time.Time
	spoken  time.Time // when the last plain line was written
}

// startProgress begins a task, such as "pin", that will pass total bytes.
func (con *console) startProgress(task string, total int64) *progress {
	p := &progress{con: con, task: task, total: total, now: time.Now}
	switch con.progressMode() {
	case progressBar:
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(barWriter{p}),
			progressbar.OptionSetDescription(task),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
		)
	case progressPlain:
		p.plain = true
	}
	p.started = p.now()
	p.spoken = p.started
	con.shown.Store(p)
	return p
}

// progressMode returns what --quiet, --progress and the terminal come to.
func (con *console) progressMode() string {
	switch {
	case con.quiet:
		return progressNone
	case con.progress != progressAuto:
		return con.progress
	case con.errTerm && con.dumb:
		return progressPlain
	case con.errTerm:
		return progressBar
	}
	return progressNone
}

// clearProgress empties the line that a bar stands on, for something else to be said.
func (con *console) clearProgress() {
	if p := con.shown.Load(); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clear()
	}
}

// stopProgress does so for good.
func (con *console) stopProgress() {
	if p := con.shown.Swap(nil); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clear()
		p.bar, p.plain = nil, false
	}
}

func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// A barWriter takes what the bar draws, and draws as much of it as fits one line of a
// terminal, which may have become narrower. It is called with the progress locked.
type barWriter struct{ *progress }

func (w barWriter) Write(text []byte) (int, error) {
	line := strings.Trim(string(text), "\r ")
	if line == "" {
		_, err := io.WriteString(w.con.err, "\r\x1b[K")
		return len(text), err
	}
	if columns := terminalWidth(w.con.err); columns > 0 {
		line = w.fit(line, columns-1)
	}
	_, err := fmt.Fprintf(w.con.err, "\r%s\x1b[K", line)
	return len(text), err
}

// fit returns the first form of a line that takes at most so many columns.
func (p *progress) fit(line string, most int) string {
	done := fmt.Sprintf("%.0f %%", 100*float64(p.done)/float64(max(p.total, 1)))
	rate, left := p.speed()
	for _, form := range []string{line, fmt.Sprintf("%s: %s, %s, %s left", p.task, done, rate, left), p.task + ": " + done, done} {
		if columns(form) <= most {
			return form
		}
	}
	return ""
}

// speed says how many bytes pass in a second, and when the rest will have.
func (p *progress) speed() (rate string, left time.Duration) {
	speed := float64(p.done) / max(p.now().Sub(p.started).Seconds(), 1e-3)
	left = time.Duration(float64(max(p.total-p.done, 0)) / max(speed, 1) * float64(time.Second))
	return siSize(int64(speed)) + "/s", left.Round(time.Second)
}

// add says that n more bytes have passed.
func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.bar != nil {
		p.bar.Add64(n) // its error is that of writing to stderr: nobody is left to tell
	}
	if now := p.now(); p.plain && now.Sub(p.spoken) >= plainInterval {
		p.spoken = now
		p.line()
	}
}

// set says that done of total bytes have passed, for tasks that learn the total on the
// way. Calls must come one at a time.
func (p *progress) set(done, total int64) {
	p.mu.Lock()
	more := done - p.done
	if total != p.total {
		p.total = total
		if p.bar != nil {
			p.bar.ChangeMax64(total)
		}
	}
	p.mu.Unlock()
	p.add(more)
}

// line writes one plain line.
func (p *progress) line() {
	rate, left := p.speed()
	percent := 100 * float64(p.done) / float64(max(p.total, 1))
	fmt.Fprintf(p.con.err, "ggufreap: %s: %s of %s, %.0f %%, %s, %s left\n", p.task, siSize(p.done), siSize(p.total), percent, rate, left)
}

// finish ends a task whose progress is what it reads, and where progress was shown says
// what it took, unless there was nothing to do.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(p.done, 0)
}

// finishWriting ends a task that has read and written so many bytes.
func (p *progress) finishWriting(read, written int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(read, written)
}

func (p *progress) end(read, written int64) {
	p.clear()
	p.con.shown.CompareAndSwap(p, nil)
	if p.bar == nil && !p.plain || p.done == 0 {
		return
	}
	seconds := p.now().Sub(p.started).Seconds()
	wrote := ""
	if written > 0 {
		wrote = ", wrote " + siSize(written)
	}
	fmt.Fprintf(p.con.err, "ggufreap: %s: read %s%s in %.1f s, %s/s\n", p.task,
		siSize(read), wrote, seconds, siSize(int64(float64(read)/max(seconds, 1e-3))))
}
