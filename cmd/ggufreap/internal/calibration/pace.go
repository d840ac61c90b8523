package calibration

import (
	"fmt"
	"math"
	"time"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// A pace tells now and then how many tokens are done, how fast, and how long it will take.
type pace struct {
	con    *ui.Console
	what   string
	all    int // tokens
	before int // those that an earlier run has done
	begun  time.Time
	told   time.Time
}

// How often: people are told, and programs that want lines of JSON.
const (
	tellEvery   = 5 * time.Second
	reportEvery = time.Second
)

// tell tells how far it is; more says more to people.
func (p *pace) tell(done int, more func() string) {
	now := time.Now()
	every := tellEvery
	if p.con.ReportsProgress() {
		every = reportEvery
	}
	if !p.con.ShowsProgress() || now.Sub(p.told) < every {
		return
	}
	p.told = now
	if p.con.ReportsProgress() {
		p.report(done, false)
		return
	}
	line := fmt.Sprintf("%s: %s of %s tokens", p.what, text.Grouped(done), text.Grouped(p.all))
	if rate, left := p.speed(done); rate > 0 {
		line += fmt.Sprintf(", %.0f a second, %s left", rate, left.Round(time.Second))
	}
	if more != nil {
		line += "; " + more()
	}
	p.con.Notef("%s", line)
}

// end tells programs that the task is over.
func (p *pace) end(done int) {
	if p.con.ReportsProgress() {
		p.report(done, true)
	}
}

// speed returns tokens a second, 0 while that is not known, and how long the rest takes.
func (p *pace) speed(done int) (rate float64, left time.Duration) {
	took := time.Since(p.begun).Seconds()
	if took <= 0 || done <= p.before {
		return 0, 0
	}
	rate = float64(done-p.before) / took
	return rate, time.Duration(float64(max(p.all-done, 0)) / rate * float64(time.Second))
}

// A state is a line of JSON about tokens.
type state struct {
	Task     string  `json:"task"`
	Done     int     `json:"done_tokens"`
	Total    int     `json:"total_tokens"`
	Speed    float64 `json:"tokens_per_second"`
	Left     *int64  `json:"seconds_left"` // null when it is not known
	Finished bool    `json:"finished"`
}

func (p *pace) report(done int, finished bool) {
	rate, left := p.speed(done)
	s := state{Task: p.what, Done: done, Total: p.all, Speed: math.Round(100*rate) / 100, Finished: finished}
	if rate > 0 {
		seconds := int64(left.Seconds())
		s.Left = &seconds
	}
	p.con.Report(s)
}
