package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain ▁ 模型 é":           "plain ▁ 模型 é",
		"\x1b[31m":               `\x1b[31m`,
		"a\nb\tc\rd\x00":         `a\nb\tc\rd\x00`,
		"\xff\xfe":               `\xff\xfe`,
		"\u202eevil\u200b\u2066": `\u202eevil\u200b\u2066`,
		"\u009b31m":              `\u009b31m`,
		"\U000e0041":             `\U000e0041`,
		"\ufffd":                 "\ufffd",
		"":                       "",
	} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := safeLines("a\n\tb\x1b"), "a\n\tb\\x1b"; got != want {
		t.Errorf("safeLines: %q, want %q", got, want)
	}
}

func TestAbridge(t *testing.T) {
	line := strings.Repeat("é", maxLine/2)
	if got := abridge(line); got != line {
		t.Errorf("a line of %d bytes became one of %d", len(line), len(got))
	}
	got := abridge("begin " + strings.Repeat("é", 500_000) + " end")
	if len(got) > maxLine+100 || !utf8.ValidString(got) || !strings.HasPrefix(got, "begin é") || !strings.HasSuffix(got, "é end") || !strings.Contains(got, " ... (998,010 bytes left out) ... ") {
		t.Errorf("a line of %d bytes: %s", len(got), got)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 330160710016: "330,160,710,016"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 13, []string{"one two three"}},
		{"averyverylongword x", 5, []string{"averyverylongword", "x"}},
		{"模型 模型", 5, []string{"模型", "模型"}},
	} {
		if got := wrap(tc.text, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("wrap(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestTableAlignsWideRunes(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, &out, nil)
	rows := [][]string{{"模型", "7", "x"}, {"ab", "1,234", ""}}
	con.table("", []column{{"name", false}, {"n", true}, {"end", false}}, slices.Values(rows))
	con.out.Flush()
	if want := "name      n  end\n模型      7  x\nab    1,234\n"; out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestColorOnlyWhenAllowed(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, &out, &out)
	if con.color || con.errColor || con.width != 0 {
		t.Errorf("a buffer counts as a terminal: %+v", con)
	}
	if got := paint(true, red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("paint: %q", got)
	}
	if got := paint(false, red, "x"); got != "x" {
		t.Errorf("paint without color: %q", got)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, &out, &out)
	con.fail(withHint(usagef("%s", strings.TrimSuffix(strings.Repeat("fault\n", 100), "\n")), "one\ntwo"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if n := len(lines); n != maxErrorLines+3 || lines[maxErrorLines] != "ggufreap: error: and 60 lines more" || lines[n-1] != "ggufreap: hint: two" {
		t.Errorf("%d lines, the last are %q", n, lines[max(0, n-3):])
	}
}

func TestShellQuote(t *testing.T) {
	got := commandLine([]string{"ggufreap", "--key=a.b", "my model.gguf", "it's", "", "$HOME", "模"})
	if want := `ggufreap --key=a.b 'my model.gguf' 'it'\''s' '' '$HOME' '模'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, nil, &out)
	con.progress = progressPlain
	p := con.startProgress("pin", 10_000_000_000)
	clock := p.started
	p.now = func() time.Time { return clock }
	for range 4 {
		clock = clock.Add(3 * time.Second)
		p.add(1_500_000_000)
	}
	clock = clock.Add(time.Second)
	p.finishWriting(6_000_000_000, 2_000_000)
	want := `ggufreap: pin: 3.00 GB of 10.00 GB, 30 %, 500.00 MB/s, 14s left
ggufreap: pin: 6.00 GB of 10.00 GB, 60 %, 500.00 MB/s, 8s left
ggufreap: pin: read 6.00 GB, wrote 2.00 MB in 13.0 s, 461.54 MB/s
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestProgressIsSilentInAPipe(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		con := newConsole(nil, nil, &out)
		con.quiet = quiet
		if quiet {
			con.progress = progressPlain
		}
		p := con.startProgress("pin", 100)
		p.add(100)
		p.finish()
		if out.Len() > 0 {
			t.Errorf("quiet %v: printed %q", quiet, out.String())
		}
	}
}

// TestProgressModes says what is shown where; a bar needs a cursor.
func TestProgressModes(t *testing.T) {
	for _, tc := range []struct {
		term, flag string
		tty, quiet bool
		want       string
	}{
		{term: "xterm", flag: progressAuto, tty: true, want: progressBar},
		{term: "", flag: progressAuto, tty: true, want: progressBar}, // as on Windows
		{term: "dumb", flag: progressAuto, tty: true, want: progressPlain},
		{term: "dumb", flag: progressAuto, want: progressNone},
		{term: "xterm", flag: progressAuto, want: progressNone},
		{term: "dumb", flag: progressBar, tty: true, want: progressBar}, // asked for
		{term: "dumb", flag: progressNone, tty: true, want: progressNone},
		{term: "dumb", flag: progressAuto, tty: true, quiet: true, want: progressNone},
		{term: "xterm", flag: progressPlain, tty: true, want: progressPlain},
	} {
		t.Setenv("TERM", tc.term)
		con := newConsole(nil, nil, &bytes.Buffer{})
		con.errTerm, con.progress, con.quiet = tc.tty, tc.flag, tc.quiet
		if got := con.progressMode(); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, nil, &out)
	con.progress = progressBar
	p := con.startProgress("pin", 100)
	p.add(50)
	p.add(50)
	p.finish()
	if got := out.String(); !strings.Contains(got, "pin") || !strings.Contains(got, "50%") || !strings.HasSuffix(got, "/s\n") {
		t.Errorf("printed %q", got)
	}
}

// TestProgressFits draws the bar on terminals of several widths.
func TestProgressFits(t *testing.T) {
	p := newConsole(nil, nil, &bytes.Buffer{}).startProgress("prune", 10_000_000_000)
	clock := p.started.Add(10 * time.Second)
	p.now = func() time.Time { return clock }
	p.add(4_000_000_000)
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

// TestErrorsBeginOnAFreshLine says something while a bar is shown.
func TestErrorsBeginOnAFreshLine(t *testing.T) {
	var out bytes.Buffer
	con := newConsole(nil, nil, &out)
	con.progress = progressBar
	p := con.startProgress("pin", 100)
	p.add(50)
	con.warnf("odd")
	con.fail(errors.New("broken"))
	said := out.Len()
	p.add(50)
	const fresh = "\r\x1b[K"
	for _, line := range []string{"ggufreap: warning: odd\n", "ggufreap: error: broken\n"} {
		i := strings.Index(out.String(), line)
		if before := out.String()[:max(i, 0)]; i < 0 || !strings.HasSuffix(before, fresh) && !strings.HasSuffix(before, "\n") {
			t.Errorf("%q stands on the bar's line: %q", line, out.String())
		}
	}
	if out.Len() > said {
		t.Errorf("the bar goes on behind the error: %q", out.String()[said:])
	}
}

// TestHiddenRunes are escaped in text and in JSON, and what people write is not.
func TestHiddenRunes(t *testing.T) {
	for in, want := range map[string]string{
		"a\u3164b": `a\u3164b`, "a\u115fb": `a\u115fb`, "a\uffa0b": `a\uffa0b`, "a\u2800b": `a\u2800b`, "a\u034fb": `a\u034fb`, "a\ufe0fb": `a\ufe0fb`,
		"e" + strings.Repeat("\u0301", 4):      "e" + strings.Repeat("\u0301", 4),
		"e" + strings.Repeat("\u0301", 5):      "e" + strings.Repeat("\u0301", 4) + `\u0301`,
		"\u0e17\u0e35\u0e48 שָּׁ 模型 é x\u0301": "\u0e17\u0e35\u0e48 שָּׁ 模型 é x\u0301",
	} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) is %q, want %q", in, got, want)
		}
		var b strings.Builder
		(&jsonWriter{w: &b}).text(in)
		got := b.String()
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != in || got != `"`+want+`"` {
			t.Errorf("in JSON %q is %s (%v), want %q", in, got, err, want)
		}
	}
}
