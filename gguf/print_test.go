package gguf

import "testing"

// Text is shown as it is unless it could do something to a terminal, or is not text.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"Kimi-K3 模型 é":     "Kimi-K3 模型 é",
		"\ufffd":           "\ufffd", // a character like any other: a name can hold it
		"a\xffb":           `"a\xffb"`,
		"\xef\xbf":         `"\xef\xbf"`,
		"a\x1b[31mb":       `"a\x1b[31mb"`,
		"a\nb":             `"a\nb"`,
		"gpj.\u202egguf":   `"gpj.\u202egguf"`,
		"no\u00a0break":    `"no\u00a0break"`,
		"zero\u200bwidth":  `"zero\u200bwidth"`,
		"with \"quotes\"":  "with \"quotes\"",
		"emoji \U0001f600": "emoji \U0001f600",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
