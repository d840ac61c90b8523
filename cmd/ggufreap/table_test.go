package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// onTerminal returns what is printed on a terminal of so many columns.
func onTerminal(width int, print func(con *console)) string {
	var out bytes.Buffer
	con := newConsole(nil, &out, nil)
	con.width = width
	print(con)
	con.out.Flush()
	return out.String()
}

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
		got := breakText(tc.text, tc.width)
		if !slices.Equal(got, tc.want) {
			t.Errorf("breakText(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	cols := []column{{"n", true}, {"key", false}, {"value", false}}
	rows := slices.Values([][]string{{"1,234", "general.source.url", "Qwen and others of the same name"}, {"5", "k", "v"}})
	for width, want := range map[int]string{
		0: "    n  key                 value\n1,234  general.source.url  Qwen and others of the same name\n    5  k                   v\n",
		50: "    n  key                 value\n1,234  general.source.url  Qwen and others of the\n" +
			"                           same name\n    5  k                   v\n",
		30: "    n  key\n    value\n1,234  general.source.url\n    Qwen and others of the\n    same name\n    5  k\n    v\n",
		20: "    n  key\n    value\n1,234  general.\n       source.url\n    Qwen and others\n    of the same name\n    5  k\n    v\n",
	} {
		if got := onTerminal(width, func(con *console) { con.table("", cols, rows) }); got != want {
			t.Errorf("%d columns, got:\n%swant:\n%s", width, got, want)
		}
	}
}

// A row without a last cell has no line for it.
func TestTableWithoutLastCells(t *testing.T) {
	cols := []column{{"layer", true}, {"experts kept", false}, {"", false}}
	rows := slices.Values([][]string{{"1", "448 of 896", ""}, {"2", "448 of 896", "by scores of another layer"}})
	got := onTerminal(30, func(con *console) { con.table("", cols, rows) })
	if want := "layer  experts kept\n    1  448 of 896\n    2  448 of 896\n    by scores of another\n    layer\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestFieldKeepsLongWordsWhole has a digest, which would not fit behind its label.
func TestFieldKeepsLongWordsWhole(t *testing.T) {
	digest := "blake3:" + strings.Repeat("0f", 32)
	got := onTerminal(80, func(con *console) {
		con.field("digest", "%s", digest)
		con.field("", "weights %s", digest)
		con.field("note", "short")
	})
	if want := "digest\n        " + digest + "\n                weights\n        " + digest + "\nnote            short\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestScreensFitTheTerminal prints models with long names and values, and those of the
// published size.
func TestScreensFitTheTerminal(t *testing.T) {
	long := with(smallMoE(), func(md *gguf.Metadata) {
		md.Set("general.name", gguf.TextValue(strings.Repeat("a long name ", 20)))
		md.Set("general.source.url", gguf.TextValue("https://example.org/"+strings.Repeat("folder/", 20)))
		md.Set("general.author", gguf.TextValue("one of the many authors, and the other ones"))
		md.Set("general.file_type", gguf.TextValue("F16"))
	})
	for _, s := range []gguftest.Spec{long, gguftest.K3Real(1536, gguf.IQ1_S)} {
		m, err := s.Model(gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		in, err := inspect(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{80, 120} {
			out := onTerminal(width, func(con *console) {
				con.showInspection(in)
				con.listTensors(m)
			})
			for line := range strings.Lines(out) {
				if line = strings.TrimSuffix(line, "\n"); columns(line) >= width {
					t.Errorf("%s: %d columns on a terminal of %d: %q", s.Name, columns(line), width, line)
				}
			}
		}
	}
}
