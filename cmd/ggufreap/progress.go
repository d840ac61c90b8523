package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
)

// The values of --progress.
const (
	progressAuto  = "auto" // a bar on a terminal, nothing elsewhere
	progressBar   = "bar"
	progressPlain = "plain" // a line every few seconds
	progressNone  = "none"
)

const plainInterval = 5 * time.Second

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
	mode := con.progress
	if con.quiet {
		mode = progressNone
	} else if mode == progressAuto && con.errTerm {
		mode = progressBar
	}
	switch mode {
	case progressBar:
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(con.err),
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
	return p
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
		p.line(now.Sub(p.started))
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
func (p *progress) line(elapsed time.Duration) {
	rate := float64(p.done) / elapsed.Seconds()
	left := time.Duration(float64(max(p.total-p.done, 0)) / rate * float64(time.Second))
	percent := 100 * float64(p.done) / float64(max(p.total, 1))
	fmt.Fprintf(p.con.err, "ggufreap: %s: %s of %s, %.0f %%, %s/s, %s left\n", p.task,
		siSize(p.done), siSize(p.total), percent, siSize(int64(rate)), left.Round(time.Second))
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
	if p.bar != nil {
		p.bar.Clear()
	}
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
