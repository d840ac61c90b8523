package ui

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui/table"
)

// onTerminal returns what is printed on a terminal of so many columns.
func onTerminal(width int, print func(con *Console)) string {
	var out bytes.Buffer
	con := New(nil, &out, nil)
	con.Width = width
	print(con)
	con.Out.Flush()
	return out.String()
}

func TestTableFitsTheTerminal(t *testing.T) {
	cols := []table.Column{table.Right("n"), table.Left("key"), table.Left("value")}
	rows := slices.Values([][]string{{"1,234", "general.source.url", "Qwen and others of the same name"}, {"5", "k", "v"}})
	for width, want := range map[int]string{
		0: "    n  key                 value\n1,234  general.source.url  Qwen and others of the same name\n    5  k                   v\n",
		50: "    n  key                 value\n1,234  general.source.url  Qwen and others of the\n" +
			"                           same name\n    5  k                   v\n",
		30: "    n  key\n    value\n1,234  general.source.url\n    Qwen and others of the\n    same name\n    5  k\n    v\n",
		20: "    n  key\n    value\n1,234  general.\n       source.url\n    Qwen and others\n    of the same name\n    5  k\n    v\n",
		12: "n      1,234\nkey    genera\n       l.\n       source\n       .url\nvalue  Qwen\n       and\n       others\n       of the\n       same\n       name\n\nn      5\nkey    k\nvalue  v\n\n",
	} {
		if got := onTerminal(width, func(con *Console) { con.Table("", cols, rows) }); got != want {
			t.Errorf("%d columns, got:\n%swant:\n%s", width, got, want)
		}
	}
}

// A table of numbers alone, which cannot be broken, is a list where it does not fit.
func TestNumbersOnANarrowTerminal(t *testing.T) {
	cols := []table.Column{table.Right("keep"), table.Right("bytes left"), table.Right("saved")}
	rows := slices.Values([][]string{{"568 of 896", "15,778,224", "36.1 %"}})
	for width, want := range map[int]string{
		33: "      keep  bytes left   saved\n568 of 896  15,778,224  36.1 %\n",
		30: "keep        568 of 896\nbytes left  15,778,224\nsaved       36.1 %\n\n",
	} {
		if got := onTerminal(width, func(con *Console) { con.Table("", cols, rows) }); got != want {
			t.Errorf("%d columns, got:\n%swant:\n%s", width, got, want)
		}
	}
}

// A row without a last cell has no line for it.
func TestTableWithoutLastCells(t *testing.T) {
	cols := []table.Column{table.Right("layer"), table.Left("experts kept"), table.Left("")}
	rows := slices.Values([][]string{{"1", "448 of 896", ""}, {"2", "448 of 896", "by scores of another layer"}})
	got := onTerminal(30, func(con *Console) { con.Table("", cols, rows) })
	if want := "layer  experts kept\n    1  448 of 896\n    2  448 of 896\n    by scores of another\n    layer\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestFieldKeepsLongWordsWhole has a digest, which would not fit behind its label.
func TestFieldKeepsLongWordsWhole(t *testing.T) {
	digest := "blake3:" + strings.Repeat("0f", 32)
	got := onTerminal(80, func(con *Console) {
		con.Field("digest", "%s", digest)
		con.Field("", "weights %s", digest)
		con.Field("note", "short")
	})
	if want := "digest\n        " + digest + "\n                weights\n        " + digest + "\nnote            short\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestTableAlignsWideRunes(t *testing.T) {
	var out bytes.Buffer
	con := New(nil, &out, nil)
	rows := [][]string{{"模型", "7", "x"}, {"ab", "1,234", ""}}
	con.Table("", []table.Column{table.Left("name"), table.Right("n"), table.Left("end")}, slices.Values(rows))
	con.Out.Flush()
	if want := "name      n  end\n模型      7  x\nab    1,234\n"; out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}
