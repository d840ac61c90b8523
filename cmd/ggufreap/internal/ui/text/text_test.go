package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBreakText(t *testing.T) {
	for _, tc := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two three", 7, []string{"one two", "three"}},
		{"blk.12.ffn_down_exps.weight", 16, []string{"blk.12.ffn_down_", "exps.weight"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"see https://example.org/a/b", 16, []string{"see", "https://example.", "org/a/b"}},
		{".模模", 4, []string{".", "模模"}},
		{"模模模", 1, []string{"模", "模", "模"}},
		{"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		{"", 4, []string{""}},
	} {
		got := Break(tc.text, tc.width)
		if !slices.Equal(got, tc.want) {
			t.Errorf("breakText(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

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
		if got := Safe(in); got != want {
			t.Errorf("safe(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := SafeLines("a\n\tb\x1b"), "a\n\tb\\x1b"; got != want {
		t.Errorf("safeLines: %q, want %q", got, want)
	}
}

func TestAbridge(t *testing.T) {
	line := strings.Repeat("é", maxLine/2)
	if got := Abridge(line); got != line {
		t.Errorf("a line of %d bytes became one of %d", len(line), len(got))
	}
	got := Abridge("begin " + strings.Repeat("é", 500_000) + " end")
	if len(got) > maxLine+100 || !utf8.ValidString(got) || !strings.HasPrefix(got, "begin é") || !strings.HasSuffix(got, "é end") || !strings.Contains(got, " ... (998,010 bytes left out) ... ") {
		t.Errorf("a line of %d bytes: %s", len(got), got)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 330160710016: "330,160,710,016"} {
		if got := Grouped(n); got != want {
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
		if got := Wrap(tc.text, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("wrap(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}
