package ui

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

func TestProgressIsSilentInAPipe(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		con := New(nil, nil, &out)
		con.Quiet = quiet
		if quiet {
			con.Progress = progress.Plain
		}
		p := con.StartProgress("pin", 100)
		p.Add(100)
		p.Finish()
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
		{term: "xterm", flag: progress.Auto, tty: true, want: progress.Bar},
		{term: "", flag: progress.Auto, tty: true, want: progress.Bar}, // as on Windows
		{term: "dumb", flag: progress.Auto, tty: true, want: progress.Plain},
		{term: "dumb", flag: progress.Auto, want: progress.None},
		{term: "xterm", flag: progress.Auto, want: progress.None},
		{term: "dumb", flag: progress.Bar, tty: true, want: progress.Bar}, // asked for
		{term: "dumb", flag: progress.None, tty: true, want: progress.None},
		{term: "dumb", flag: progress.Auto, tty: true, quiet: true, want: progress.None},
		{term: "xterm", flag: progress.Plain, tty: true, want: progress.Plain},
	} {
		t.Setenv("TERM", tc.term)
		con := New(nil, nil, &bytes.Buffer{})
		con.errTerm, con.Progress, con.Quiet = tc.tty, tc.flag, tc.quiet
		if got := con.progressMode(); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	con := New(nil, nil, &out)
	con.Progress = progress.Bar
	p := con.StartProgress("pin", 100)
	p.Add(50)
	p.Add(50)
	p.Finish()
	if got := out.String(); !strings.Contains(got, "pin") || !strings.Contains(got, "50%") || !strings.HasSuffix(got, "/s\n") {
		t.Errorf("printed %q", got)
	}
}

func TestUTF8Locale(t *testing.T) {
	for locale, want := range map[[3]string]bool{
		{"", "", "en_US.UTF-8"}: true, {"", "de_DE.utf8", "C"}: true, {"C.UTF-8", "", ""}: true,
		{"", "", ""}: false, {"C", "", "en_US.UTF-8"}: false, {"", "POSIX", "en_US.UTF-8"}: false, {"", "", "de_DE@euro"}: false,
	} {
		t.Setenv("LC_ALL", locale[0])
		t.Setenv("LC_CTYPE", locale[1])
		t.Setenv("LANG", locale[2])
		if got := utf8Locale(); got != want && runtime.GOOS != "windows" {
			t.Errorf("%q: got %v", locale, got)
		}
	}
}
