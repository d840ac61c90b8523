package main

import (
	"fmt"
	"iter"
	"strings"
)

// A column of a table. Numbers stand right, text left.
type column struct {
	title string
	right bool
}

// table prints aligned columns, two spaces apart, under their titles. The rows are
// walked twice, once to measure, so that a long table needs no memory. Cells must be
// safe to print.
func (con *console) table(indent string, cols []column, rows iter.Seq[[]string]) {
	widths := make([]int, len(cols))
	titles := make([]string, len(cols))
	for i, c := range cols {
		titles[i] = c.title
		widths[i] = columns(c.title)
	}
	for row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	con.printf("%s%s\n", indent, paint(con.color, dim, tableLine(cols, widths, titles)))
	for row := range rows {
		con.printf("%s%s\n", indent, tableLine(cols, widths, row))
	}
}

func tableLine(cols []column, widths []int, row []string) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[i]-columns(cell))
		if cols[i].right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// paragraph prints a text, broken to the terminal's width.
func (con *console) paragraph(style, text string) {
	for _, line := range wrap(text, max(con.width-1, 0)) {
		con.printf("%s\n", paint(con.color, style, line))
	}
}

// labelWidth is the width of the left column of a summary.
const labelWidth = 16

// field prints one line of a summary: a label and what it says, broken to the
// terminal's width. An empty label continues the line before.
func (con *console) field(label, format string, args ...any) {
	con.styledField(dim, label, fmt.Sprintf(format, args...))
}

func (con *console) styledField(style, label, text string) {
	width := 0
	if con.width > 0 {
		width = max(con.width-labelWidth-1, 20)
	}
	for i, line := range wrap(text, width) {
		if i > 0 {
			label = ""
		}
		con.printf("%s%s\n", paint(con.color, style, fmt.Sprintf("%-*s", labelWidth, label)), line)
	}
}

// digestField prints a field that ends in a digest. A digest is never broken: where it
// does not fit behind its words, it stands on a line of its own, as far right as it can.
func (con *console) digestField(label, words, digest string) {
	if con.width == 0 || labelWidth+columns(words)+1+columns(digest) < con.width {
		con.field(label, "%s %s", words, digest)
		return
	}
	con.field(label, "%s", words)
	con.printf("%*s\n", con.width-1, digest)
}
