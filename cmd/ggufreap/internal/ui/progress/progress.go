// Package progress shows on a line how far a task over a known number of bytes has come: as
// a bar, or as a plain line every few seconds. It is told which and where; it asks no
// terminal and no flag.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/schollz/progressbar/v3"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// The values of --progress.
const (
	Auto  = "auto" // a bar on a terminal, lines on one without a cursor, nothing elsewhere
	Bar   = "bar"
	Plain = "plain" // a line every few seconds
	JSON  = "json"  // a line of JSON every second, for programs
	None  = "none"
)

// How often a line is written.
const (
	plainInterval = 5 * time.Second
	jsonInterval  = time.Second
)

// A Task shows on stderr how far a task over a known number of bytes has come.
// Any number of goroutines may add to it.
type Task struct {
	on    Line
	task  string
	total int64
	now   func() time.Time

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil unless a bar is drawn
	plain   bool
	json    bool
	done    int64
	started time.Time
	spoken  time.Time // when the last plain line was written
}

// A Line is where progress is shown: the last line of a terminal, or of anything else that
// takes lines.
type Line struct {
	W       io.Writer
	Columns func() int // of the terminal that it is now, 0 for anything else
	ASCII   bool       // it shows nothing else
}

// Begin begins a task, such as "pin", that will pass total bytes.
func Begin(on Line, mode, task string, total int64) *Task {
	p := &Task{on: on, task: task, total: total, now: time.Now}
	switch mode {
	case Bar:
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(barWriter{p}),
			progressbar.OptionSetDescription(task),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(false), // it is said in words, below
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetTheme(theme(on.ASCII)),
		)
		p.bar.StartWithoutRender() // else its time begins after the first bytes, and its first rate is far too high
	case Plain:
		p.plain = true
	case JSON:
		p.json = true
	}
	p.started = p.now()
	p.spoken = p.started
	return p
}

// Hide empties the line that a bar stands on, for something else to be said.
func (p *Task) Hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// Stop does so for good.
func (p *Task) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still()
}

func (p *Task) still() {
	p.clear()
	p.bar, p.plain, p.json = nil, false, false
}

func (p *Task) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// A barWriter takes what the bar draws, and draws as much of it as fits one line of a
// terminal, which may have become narrower. It is called with the progress locked.
type barWriter struct{ p *Task }

func (w barWriter) Write(text []byte) (int, error) {
	line := strings.Trim(string(text), "\r ")
	if line == "" {
		_, err := io.WriteString(w.p.on.W, "\r\x1b[K")
		return len(text), err
	}
	_, left := w.p.speed()
	line = fmt.Sprintf("%s %s left", line, left)
	if most := w.p.on.Columns(); most > 0 {
		line = w.p.fit(line, most-1)
	}
	_, err := fmt.Fprintf(w.p.on.W, "\r%s\x1b[K", line)
	return len(text), err
}

// fit returns the first form of a line that takes at most so many columns.
func (p *Task) fit(line string, most int) string {
	done := fmt.Sprintf("%.0f %%", 100*float64(p.done)/float64(max(p.total, 1)))
	rate, left := p.speed()
	for _, form := range []string{line, fmt.Sprintf("%s: %s, %s, %s left", p.task, done, rate, left), p.task + ": " + done, done} {
		if text.Columns(form) <= most {
			return form
		}
	}
	return ""
}

// speed says how many bytes pass in a second, and when the rest will have.
func (p *Task) speed() (rate string, left time.Duration) {
	speed := float64(p.done) / max(p.now().Sub(p.started).Seconds(), 1e-3)
	left = time.Duration(float64(max(p.total-p.done, 0)) / max(speed, 1) * float64(time.Second))
	return text.SISize(int64(speed)) + "/s", left.Round(time.Second)
}

// Add says that n more bytes have passed.
func (p *Task) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.bar != nil {
		p.bar.Add64(n) // its error is that of writing to stderr: nobody is left to tell
	}
	switch now := p.now(); {
	case p.plain && now.Sub(p.spoken) >= plainInterval:
		p.spoken = now
		p.tell()
	case p.json && now.Sub(p.spoken) >= jsonInterval:
		p.spoken = now
		p.report(false)
	}
}

// Set says that done of total bytes have passed, for tasks that learn the total on the
// way. Calls must come one at a time.
func (p *Task) Set(done, total int64) {
	p.mu.Lock()
	more := done - p.done
	if total != p.total {
		p.total = total
		if p.bar != nil {
			p.bar.ChangeMax64(total)
		}
	}
	p.mu.Unlock()
	p.Add(more)
}

// line writes one plain line.
func (p *Task) tell() {
	rate, left := p.speed()
	percent := 100 * float64(p.done) / float64(max(p.total, 1))
	fmt.Fprintf(p.on.W, "ggufreap: %s: %s of %s, %.0f %%, %s, %s left\n", p.task, text.SISize(p.done), text.SISize(p.total), percent, rate, left)
}

// A state is a line of JSON.
type state struct {
	Task     string `json:"task"`
	Done     int64  `json:"done_bytes"`
	Total    int64  `json:"total_bytes"` // 0 when it is not known
	Speed    int64  `json:"bytes_per_second"`
	Left     *int64 `json:"seconds_left"` // null when it is not known
	Finished bool   `json:"finished"`
}

// report writes how far the task is, as JSON.
func (p *Task) report(finished bool) {
	s := state{Task: p.task, Done: p.done, Total: p.total, Finished: finished,
		Speed: int64(float64(p.done) / max(p.now().Sub(p.started).Seconds(), 1e-3))}
	if left := max(p.total-p.done, 0); p.total > 0 && s.Speed > 0 {
		seconds := left / s.Speed
		s.Left = &seconds
	}
	line, err := json.Marshal(s)
	if err == nil { // numbers and the name of a task cannot fail
		fmt.Fprintf(p.on.W, "%s\n", line)
	}
}

// theme is how a bar looks.
func theme(ascii bool) progressbar.Theme {
	if ascii {
		return progressbar.ThemeASCII
	}
	return progressbar.ThemeDefault
}

// Finish ends a task whose progress is what it reads, and where progress was shown says
// what it took, unless there was nothing to do.
func (p *Task) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(p.done, 0)
}

// FinishWriting ends a task that has read and written so many bytes.
func (p *Task) FinishWriting(read, written int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(read, written)
}

func (p *Task) end(read, written int64) {
	if p.json {
		p.report(true)
	}
	shown := p.bar != nil || p.plain
	p.still()
	if !shown || p.done == 0 {
		return
	}
	seconds := p.now().Sub(p.started).Seconds()
	wrote := ""
	if written > 0 {
		wrote = ", wrote " + text.SISize(written)
	}
	fmt.Fprintf(p.on.W, "ggufreap: %s: read %s%s in %.1f s, %s/s\n", p.task,
		text.SISize(read), wrote, seconds, text.SISize(int64(float64(read)/max(seconds, 1e-3))))
}
