// Package table lays out rows of cells in aligned columns that fit a width. It knows the
// widths of texts, not where they are printed or how they are colored.
package table

import (
	"iter"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// A Column of a table. Numbers stand right, text left.
type Column struct {
	title string
	right bool
}

// Left is a column of text.
func Left(title string) Column { return Column{title, false} }

// Right is a column of numbers.
func Right(title string) Column { return Column{title, true} }

// A Table is how a table is laid out: aligned columns, two spaces apart, under their
// titles.
type Table struct {
	cols   []Column
	titles []string
	widths []int
	below  int // columns that the last one has on lines of its own, 0 if it stands beside the others
	listed int // columns of a terminal too narrow for any table: each cell stands on a line of its own, behind its title
}

const (
	columnGap   = 2
	belowIndent = 4

	// Text is not broken into less, while there is another way, and then at all.
	narrowText, narrowestText = 16, 6
)

// New lays a table out. The rows are walked once, to measure, so that a long table needs
// no memory. At most most columns are taken, if that can be, unless it is 0: text is broken
// within its column; a last column for which there is no room at all goes below the others; and
// where there is none for those, each row is a list of its cells.
func New(cols []Column, rows iter.Seq[[]string], most int) *Table {
	f := &Table{cols: cols, titles: make([]string, len(cols)), widths: make([]int, len(cols))}
	for i, c := range cols {
		f.titles[i] = c.title
	}
	f.measure(f.titles)
	for row := range rows {
		f.measure(row)
	}
	if most > 0 {
		f.fit(most)
	}
	return f
}

// Titles writes the titles, unless each cell has its own.
func (f *Table) Titles() []string {
	if f.listed > 0 {
		return nil
	}
	return f.Lines(f.titles)
}

func (f *Table) measure(row []string) {
	for i, cell := range row {
		f.widths[i] = max(f.widths[i], text.Columns(cell))
	}
}

// fit makes the table at most most columns wide, if that can be.
func (f *Table) fit(most int) {
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
	beside := len(f.cols)
	if f.below > 0 {
		beside = last
	}
	if !narrow(f.cols[:beside], f.widths[:beside], most, narrowestText) {
		f.listed, f.below = most, 0
	}
}

// narrow takes from the widest columns of text until all fit, but leaves each at least
// columns. It reports whether they fit.
func narrow(cols []Column, widths []int, most, least int) bool {
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

// Lines writes a row, on one line if its cells fit their columns.
func (f *Table) Lines(row []string) []string {
	if f.listed > 0 {
		return f.list(row)
	}
	cells := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if text.Columns(cell) > f.widths[i] {
			cells[i] = text.Break(cell, f.widths[i])
			height = max(height, len(cells[i]))
		}
	}
	var below []string
	if last := len(row) - 1; f.below > 0 {
		if row[last] != "" {
			below = text.Break(row[last], f.below)
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

// list writes a row as its cells, each behind its title, and an empty line.
func (f *Table) list(row []string) []string {
	var lines []string
	indent := 0
	for _, title := range f.titles {
		indent = max(indent, text.Columns(title)+columnGap)
	}
	for i, cell := range row {
		title := f.titles[i]
		if cell == "" {
			continue
		}
		for _, part := range text.Break(cell, max(f.listed-indent, narrowestText)) {
			lines = append(lines, title+strings.Repeat(" ", indent-text.Columns(title))+part)
			title = ""
		}
	}
	return append(lines, "")
}

// line joins the nth lines of cells.
func (f *Table) line(cells [][]string, n int) string {
	var b strings.Builder
	for i, cell := range cells {
		part := ""
		if n < len(cell) {
			part = cell[n]
		}
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		pad := max(f.widths[i]-text.Columns(part), 0)
		if f.cols[i].right {
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteString(part)
		if !f.cols[i].right && i < len(cells)-1 { // one long name would widen every line
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	return strings.TrimRight(b.String(), " ")
}
