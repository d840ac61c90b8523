package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A column of a table. Numbers stand right, text left.
type column struct {
	title string
	right bool
}

// table prints aligned columns, two spaces apart, under their titles. The rows are
// walked twice, once to measure, so that a long table needs no memory. Cells must be
// safe to print. On a terminal that is too narrow, text is broken within its column; a last
// column for which there is no room at all goes below the others.
func (con *console) table(indent string, cols []column, rows iter.Seq[[]string]) {
	f := &tableForm{cols: cols, widths: make([]int, len(cols))}
	titles := make([]string, len(cols))
	for i, c := range cols {
		titles[i] = c.title
	}
	f.measure(titles)
	for row := range rows {
		f.measure(row)
	}
	if con.width > 0 {
		f.fit(con.width - 1 - columns(indent))
	}
	for _, line := range f.lines(titles) {
		con.printf("%s%s\n", indent, paint(con.color, dim, line))
	}
	for row := range rows {
		for _, line := range f.lines(row) {
			con.printf("%s%s\n", indent, line)
		}
	}
}

// A tableForm is how a table is laid out.
type tableForm struct {
	cols   []column
	widths []int
	below  int // columns that the last one has on lines of its own, 0 if it stands beside the others
}

const (
	columnGap   = 2
	belowIndent = 4

	// Text is not broken into less, while there is another way, and then at all.
	narrowText, narrowestText = 16, 6
)

func (f *tableForm) measure(row []string) {
	for i, cell := range row {
		f.widths[i] = max(f.widths[i], columns(cell))
	}
}

// fit makes the table at most most columns wide, if that can be.
func (f *tableForm) fit(most int) {
	last := len(f.cols) - 1
	natural := slices.Clone(f.widths)
	if narrow(f.cols, f.widths, most, narrowText) {
		return
	}
	if !f.cols[last].right && last > 0 {
		f.below = max(most-belowIndent, narrowText)
		copy(f.widths, natural)
		f.widths[last] = 0
	}
	narrow(f.cols[:last], f.widths[:last], most, narrowestText)
}

// narrow takes from the widest columns of text until all fit, but leaves each at least
// columns. It reports whether they fit.
func narrow(cols []column, widths []int, most, least int) bool {
	excess := columnGap*(len(cols)-1) - most
	for _, w := range widths {
		excess += w
	}
	for ; excess > 0; excess-- {
		widest := -1
		for i, c := range cols {
			if !c.right && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// lines writes a row, on one line if its cells fit their columns.
func (f *tableForm) lines(row []string) []string {
	cells := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if columns(cell) > f.widths[i] {
			cells[i] = breakText(cell, f.widths[i])
			height = max(height, len(cells[i]))
		}
	}
	var below []string
	if last := len(row) - 1; f.below > 0 {
		if row[last] != "" {
			below = breakText(row[last], f.below)
		}
		cells = cells[:last]
		height = 1
		for _, cell := range cells {
			height = max(height, len(cell))
		}
	}
	lines := make([]string, 0, height+len(below))
	for n := range height {
		lines = append(lines, f.line(cells, n))
	}
	for _, line := range below {
		lines = append(lines, strings.Repeat(" ", belowIndent)+line)
	}
	return lines
}

// line joins the nth lines of cells.
func (f *tableForm) line(cells [][]string, n int) string {
	var b strings.Builder
	for i, cell := range cells {
		text := ""
		if n < len(cell) {
			text = cell[n]
		}
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		pad := max(f.widths[i]-columns(text), 0)
		if f.cols[i].right {
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteString(text)
		if !f.cols[i].right && i < len(cells)-1 { // one long name would widen every line
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// paragraph prints the lines of a text, broken to the terminal's width.
func (con *console) paragraph(style, text string) {
	for part := range strings.SplitSeq(text, "\n") {
		for _, line := range wrap(part, max(con.width-1, 0)) {
			con.printf("%s\n", paint(con.color, style, line))
		}
	}
}

// labelWidth is the width of the left column of a summary.
const labelWidth = 16

// field prints one line of a summary: a label and what it says, broken to the
// terminal's width, the middle of an endless one left out. An empty label continues the
// line before.
func (con *console) field(label, format string, args ...any) {
	con.styledField(dim, label, fmt.Sprintf(format, args...))
}

func (con *console) styledField(style, label, text string) {
	width := 0
	if con.width > 0 {
		width = max(con.width-labelWidth-1, 20)
	}
	for _, line := range wrap(abridge(text), width) {
		indent := labelWidth
		if width > 0 && columns(line) > width { // a long word, such as a digest, stays whole to be copied
			indent = max(con.width-1-columns(line), 2)
		}
		if label != "" && indent < labelWidth {
			con.printf("%s\n", paint(con.color, style, label))
			label = ""
		}
		con.printf("%s%s\n", paint(con.color, style, fmt.Sprintf("%-*s", indent, label)), line)
		label = ""
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
