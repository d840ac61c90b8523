package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	p := Begin(Line{&out, noTerminal}, Plain, "pin", 10_000_000_000)
	clock := p.started
	p.now = func() time.Time { return clock }
	for range 4 {
		clock = clock.Add(3 * time.Second)
		p.Add(1_500_000_000)
	}
	clock = clock.Add(time.Second)
	p.FinishWriting(6_000_000_000, 2_000_000)
	want := `ggufreap: pin: 3.00 GB of 10.00 GB, 30 %, 500.00 MB/s, 14s left
ggufreap: pin: 6.00 GB of 10.00 GB, 60 %, 500.00 MB/s, 8s left
ggufreap: pin: read 6.00 GB, wrote 2.00 MB in 13.0 s, 461.54 MB/s
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

// TestProgressFits draws the bar on terminals of several widths.
func TestProgressFits(t *testing.T) {
	p := Begin(Line{nil, noTerminal}, None, "prune", 10_000_000_000)
	clock := p.started.Add(10 * time.Second)
	p.now = func() time.Time { return clock }
	p.Add(4_000_000_000)
	bar := "prune  40% |████████            | (4.0/10 GB, 400 MB/s) [10s:15s]"
	for most, want := range map[int]string{
		79: bar, 67: bar, 66: bar, 65: bar, 64: "prune: 40 %, 400.00 MB/s, 15s left", 34: "prune: 40 %, 400.00 MB/s, 15s left",
		33: "prune: 40 %", 11: "prune: 40 %", 10: "40 %", 4: "40 %", 3: "", 0: "",
	} {
		if got := p.fit(bar, most); got != want {
			t.Errorf("%d columns: got %q, want %q", most, got, want)
		}
	}
}

func noTerminal() int { return 0 }
