// Package help makes the help screens, from one source: the commands and flags of urfave/cli.
//
// A command says in Usage what it does, in a line that begins in lower case, for the list of
// commands. Its Description is the help screen without the flags: a first sentence, "Usage:",
// what there is to know, the line "Flags:" where the flags go, and behind it exit codes and
// examples. A flag says in its Usage what it does, with the name of its value in backquotes,
// as in "write the plan to `FILE`" or "`N`: files read at once"; flags with a Category stand in a section of that title.
package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// The columns of a screen.
const (
	screenWidth = 80
	textColumn  = 25 // where what a flag does begins
)

// The lines of a text in whose place flags go, and behind which commands do.
const flagsMarker, commandsMarker = "\nFlags:\n", "\nCommands:\n"

// Command returns the help screen of a command.
func Command(cmd *cli.Command) string {
	return strings.Replace(cmd.Description, flagsMarker, "\n"+flagSections(cmd.Flags), 1)
}

// App returns the help screen of the program.
func App(app *cli.App) string {
	var b strings.Builder
	column := 0 // where what a command does begins
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			column = max(column, len(cmd.Name)+4)
		}
	}
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			writeItem(&b, "  "+cmd.Name, cmd.Usage, column)
		}
	}
	return strings.Replace(app.Description, commandsMarker, commandsMarker+b.String(), 1)
}

// A Section is the flags of one category.
type Section struct {
	Title string
	Flags []Flag
}

// A Flag is what help says of one.
type Flag struct {
	Name  string // long, without dashes
	Short string // a letter, or ""
	Value string // name of its value, "" when it takes none
	Takes bool   // a value
	Text  string
}

// Head writes a flag with its value, as it is typed.
func (f Flag) Head() string {
	head := "--" + f.Name
	if f.Value != "" {
		head += " " + f.Value
	}
	return head
}

// Sections returns the flags of a command that are shown, in the order of their categories'
// first flags.
func Sections(flags []cli.Flag) []Section {
	var sections []Section
	for _, f := range flags {
		title := "Flags"
		if c, ok := f.(cli.CategorizableFlag); ok {
			if !c.IsVisible() {
				continue
			}
			if c.GetCategory() != "" {
				title = c.GetCategory()
			}
		}
		i := slices.IndexFunc(sections, func(s Section) bool { return s.Title == title })
		if i < 0 {
			i = len(sections)
			sections = append(sections, Section{Title: title})
		}
		sections[i].Flags = append(sections[i].Flags, describe(f))
	}
	return sections
}

// describe reads what a flag says of itself.
func describe(f cli.Flag) Flag {
	var d Flag
	for _, name := range f.Names() {
		switch {
		case len(name) == 1:
			d.Short = name
		case d.Name == "":
			d.Name = name
		}
	}
	if doc, ok := f.(cli.DocGenerationFlag); ok {
		d.Takes = doc.TakesValue()
		d.Value, d.Text = valueName(doc.GetUsage())
	}
	return d
}

// valueName takes the name of a flag's value out of its text, which has it in backquotes.
// Where it stands in front, with a colon, it is not part of the sentence.
func valueName(usage string) (name, rest string) {
	before, after, found := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(after, "`")
	if !found || !closed {
		return "", usage
	}
	if sentence, ok := strings.CutPrefix(after, ": "); ok && before == "" {
		return name, sentence
	}
	return name, before + name + after
}

// flagSections writes the flags as they stand on a screen.
func flagSections(flags []cli.Flag) string {
	var parts []string
	for _, s := range Sections(flags) {
		var b strings.Builder
		fmt.Fprintf(&b, "%s:\n", s.Title)
		for _, f := range s.Flags {
			head := "      " + f.Head()
			if f.Short != "" {
				head = "  -" + f.Short + ", " + f.Head()
			}
			writeItem(&b, head, f.Text, textColumn)
		}
		parts = append(parts, b.String())
	}
	return strings.Join(parts, "\n")
}

// writeItem writes a head and beside it what it means, from a column on.
func writeItem(b *strings.Builder, head, what string, column int) {
	if text.Columns(head) >= column {
		fmt.Fprintf(b, "%s\n", head)
		head = ""
	}
	for part := range strings.SplitSeq(what, "\n") {
		for _, line := range text.Wrap(part, screenWidth-column) {
			fmt.Fprintf(b, "%-*s%s\n", column, head, line)
			head = ""
		}
	}
}

// ValueName returns what help calls the value of a flag.
func ValueName(f cli.Flag) string { return describe(f).Value }

// Arguments returns what the first line of a command's usage calls its arguments, without the
// brackets of those that may be left out, "" when it takes none.
func Arguments(cmd *cli.Command) string {
	_, usage, _ := strings.Cut(cmd.Description, "\nUsage:\n")
	line, _, _ := strings.Cut(usage, "\n")
	words := strings.Fields(line)
	var names []string
	for i := 2; i < len(words); i++ { // behind the program and the command
		switch {
		case words[i] == "[flags]":
		case words[i][0] == '-':
			i++ // its value
		default:
			names = append(names, strings.Trim(words[i], "[]"))
		}
	}
	return strings.Join(names, " ")
}
