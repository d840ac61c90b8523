package ui

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

func TestColorOnlyWhenAllowed(t *testing.T) {
	var out bytes.Buffer
	con := New(nil, &out, &out)
	if con.color || con.errColor || con.Width != 0 {
		t.Errorf("a buffer counts as a terminal: %+v", con)
	}
	if got := paint(true, Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("paint: %q", got)
	}
	if got := paint(false, Red, "x"); got != "x" {
		t.Errorf("paint without color: %q", got)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var out bytes.Buffer
	con := New(nil, &out, &out)
	con.Fail(hint.With(args.Usagef("%s", strings.TrimSuffix(strings.Repeat("fault\n", 100), "\n")), "one\ntwo"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if n := len(lines); n != maxErrorLines+3 || lines[maxErrorLines] != "ggufreap: error: and 60 lines more" || lines[n-1] != "ggufreap: hint: two" {
		t.Errorf("%d lines, the last are %q", n, lines[max(0, n-3):])
	}
}

// TestErrorsNameNoSystemCall has the error of a path, also one that was joined with others.
func TestErrorsNameNoSystemCall(t *testing.T) {
	_, err := os.Stat("none")
	for _, err := range []error{err, errors.Join(err, nil), hint.With(err, "a hint")} {
		var out bytes.Buffer
		New(nil, &out, &out).Fail(err)
		if !strings.HasPrefix(out.String(), "ggufreap: error: none: ") {
			t.Errorf("%#v is printed as %q", err, out.String())
		}
	}
}

// TestErrorsBeginOnAFreshLine says something while a bar is shown.
func TestErrorsBeginOnAFreshLine(t *testing.T) {
	var out bytes.Buffer
	con := New(nil, nil, &out)
	con.Progress = progress.Bar
	p := con.StartProgress("pin", 100)
	p.Add(50)
	con.Warnf("odd")
	con.Fail(errors.New("broken"))
	said := out.Len()
	p.Add(50)
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
