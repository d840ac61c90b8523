package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	p := Begin(Line{W: &out, Columns: noTerminal}, Plain, "pin", 10_000_000_000)
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
	p := Begin(Line{Columns: noTerminal}, None, "prune", 10_000_000_000)
	clock := p.started.Add(10 * time.Second)
	p.now = func() time.Time { return clock }
	p.Add(4_000_000_000)
	bar := "prune  40% |████████            | (4.0/10 GB, 400 MB/s) 15s left"
	for most, want := range map[int]string{
		79: bar, 65: bar, 64: bar, 63: "prune: 40 %, 400.00 MB/s, 15s left", 34: "prune: 40 %, 400.00 MB/s, 15s left",
		33: "prune: 40 %", 11: "prune: 40 %", 10: "40 %", 4: "40 %", 3: "", 0: "",
	} {
		if got := p.fit(bar, most); got != want {
			t.Errorf("%d columns: got %q, want %q", most, got, want)
		}
	}
}

func noTerminal() int { return 0 }

func TestJSONProgress(t *testing.T) {
	var out bytes.Buffer
	p := Begin(Line{W: &out, Columns: noTerminal}, JSON, "pin", 100_000)
	clock := p.started
	p.now = func() time.Time { return clock }
	for range 6 {
		clock = clock.Add(500 * time.Millisecond)
		p.Add(10_000)
	}
	p.Finish()
	want := `{"task":"pin","done_bytes":20000,"total_bytes":100000,"bytes_per_second":20000,"seconds_left":4,"finished":false}
{"task":"pin","done_bytes":40000,"total_bytes":100000,"bytes_per_second":20000,"seconds_left":3,"finished":false}
{"task":"pin","done_bytes":60000,"total_bytes":100000,"bytes_per_second":20000,"seconds_left":2,"finished":false}
{"task":"pin","done_bytes":60000,"total_bytes":100000,"bytes_per_second":20000,"seconds_left":2,"finished":true}
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

// TestASCIIBar draws for a terminal that shows nothing else.
func TestASCIIBar(t *testing.T) {
	for ascii, want := range map[bool]string{true: "[=", false: "|█"} {
		var out bytes.Buffer
		p := Begin(Line{W: &out, Columns: noTerminal, ASCII: ascii}, Bar, "pin", 100)
		p.Add(50)
		p.Finish()
		if !strings.Contains(out.String(), want) {
			t.Errorf("ASCII %v: %q is missing in %q", ascii, want, out.String())
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r > 126 }); ascii && i >= 0 {
			t.Errorf("byte %d is not ASCII: %q", i, out.String())
		}
	}
}

// TestTimeBeginsWithTheTask wants the first bytes to have taken the time since the task began:
// a bar that begins with them has a first rate that no disk has.
func TestTimeBeginsWithTheTask(t *testing.T) {
	p := Begin(Line{W: &bytes.Buffer{}, Columns: noTerminal}, Bar, "pin", 100)
	if !p.bar.IsStarted() {
		t.Error("the bar's time has not begun")
	}
}
