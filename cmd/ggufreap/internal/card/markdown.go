package card

import (
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// escapes keep a text from being read as Markdown or HTML.
var escapes = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;",
	"|", "\\|", "~", "\\~", "$", "\\$")

// plain is a text as it reads, whatever is in it.
func plain(s string) string { return escapes.Replace(text.Safe(strings.Join(strings.Fields(s), " "))) }

// code is a name or digest to be copied.
func code(s string) string {
	s = strings.NewReplacer("\n", " ", "|", "\\|").Replace(text.Safe(s))
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// A table of Markdown; cells are Markdown.
type table struct {
	b strings.Builder
}

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.row(strings.Split(strings.Repeat("--- ", len(columns)-1)+"---", " ")...)
	return t
}

func (t *table) row(cells ...string) { t.b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func (t *table) String() string { return t.b.String() }

// block is a fenced block of shell lines.
func block(lines ...string) string { return "```sh\n" + strings.Join(lines, "\n") + "\n```\n" }
