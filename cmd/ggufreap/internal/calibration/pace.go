package calibration

import (
	"fmt"
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

// tellEvery is how often.
const tellEvery = 5 * time.Second

func (p *pace) tell(done int, more func() string) {
	now := time.Now()
	if !p.con.ShowsProgress() || now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	line := fmt.Sprintf("%s: %s of %s tokens", p.what, text.Grouped(done), text.Grouped(p.all))
	if took := now.Sub(p.begun).Seconds(); took > 0 && done > p.before {
		rate := float64(done-p.before) / took
		left := time.Duration(float64(max(p.all-done, 0)) / rate * float64(time.Second))
		line += fmt.Sprintf(", %.0f a second, %s left", rate, left.Round(time.Second))
	}
	if more != nil {
		line += "; " + more()
	}
	p.con.Notef("%s", line)
}
