package ui

import (
	"fmt"
	"iter"
	"strings"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// Table prints aligned columns under their titles. The rows are walked twice, once to
// measure. Cells must be safe to print.
func (con *Console) Table(indent string, cols []table.Column, rows iter.Seq[[]string]) {
	most := 0
	if con.Width > 0 {
		most = max(con.Width-1-text.Columns(indent), 1)
	}
	f := table.New(cols, rows, most)
	for _, line := range f.Titles() {
		con.Printf("%s%s\n", indent, con.Paint(Dim, line))
	}
	for row := range rows {
		for _, line := range f.Lines(row) {
			con.Printf("%s%s\n", indent, line)
		}
	}
}

// Paragraph prints the lines of a text, broken to the terminal's width.
func (con *Console) Paragraph(style, what string) {
	for part := range strings.SplitSeq(what, "\n") {
		for _, line := range text.Wrap(part, max(con.Width-1, 0)) {
			con.Printf("%s\n", con.Paint(style, line))
		}
	}
}

// labelWidth is the width of the left column of a summary.
const labelWidth = 16

// Field prints one line of a summary: a label and what it says, broken to the
// terminal's width, the middle of an endless one left out. An empty label continues the
// line before.
func (con *Console) Field(label, format string, args ...any) {
	con.StyledField(Dim, label, fmt.Sprintf(format, args...))
}

// StyledField is Field with a style of its own for the label.
func (con *Console) StyledField(style, label, what string) {
	width := 0
	if con.Width > 0 {
		width = max(con.Width-labelWidth-1, 20)
	}
	for _, line := range text.Wrap(text.Abridge(what), width) {
		indent := labelWidth
		if width > 0 && text.Columns(line) > width { // a long word, such as a digest, stays whole to be copied
			indent = max(con.Width-1-text.Columns(line), 2)
		}
		if label != "" && indent < labelWidth {
			con.Printf("%s\n", con.Paint(style, label))
			label = ""
		}
		con.Printf("%s%s\n", con.Paint(style, fmt.Sprintf("%-*s", indent, label)), line)
		label = ""
	}
}

// DigestField prints a field that ends in a digest. A digest is never broken: where it
// does not fit behind its words, it stands on a line of its own, as far right as it can.
func (con *Console) DigestField(label, what, digest string) {
	if con.Width == 0 || labelWidth+text.Columns(what)+1+text.Columns(digest) < con.Width {
		con.Field(label, "%s %s", what, digest)
		return
	}
	con.Field(label, "%s", what)
	con.Printf("%*s\n", con.Width-1, digest)
}

// JSON writes a document, the fields of a struct, to stdout.
func (con *Console) JSON(doc any) error { return document.Write(con.Out, doc) }

// More says how many lines of a list are left out, if any are.
func (con *Console) More(more int, noun string) {
	if more > 0 {
		con.Printf("and %s more; --json lists them\n", text.Count(more, noun))
	}
}
