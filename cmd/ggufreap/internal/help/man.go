package help

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"ggufreap/gguf/pattern"
)

// An Edition is what a page says of the program that it is about.
type Edition struct {
	Version string
	Date    string // of the source, as 2006-01-02; "" when it is not known
}

// Page returns the man page of a command, in roff. Its sections are those of the help screen.
func Page(app *cli.App, cmd *cli.Command, e Edition) []byte {
	p := newPage(app.Name+"-"+cmd.Name, cmd.Usage, e)
	p.sections(cmd.Description, func() { p.flags(cmd.Flags) })
	p.section("SEE ALSO")
	p.text("**" + app.Name + "**(1)\n")
	return p.roff()
}

// AppPage returns the man page of the program.
func AppPage(app *cli.App, e Edition) []byte {
	first, _, _ := strings.Cut(app.Description, ".")
	p := newPage(app.Name, strings.Join(strings.Fields(strings.TrimPrefix(first, app.Name+" ")), " "), e)
	p.sections(app.Description, func() {
		p.section("COMMANDS")
		for _, cmd := range Commands(app) {
			p.item("**"+app.Name+"-"+escape(cmd.Name)+"**(1)", cmd.Usage)
		}
	})
	return p.roff()
}

// Commands returns those that people see.
func Commands(app *cli.App) []*cli.Command {
	var shown []*cli.Command
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			shown = append(shown, cmd)
		}
	}
	return shown
}

// A page is written in Markdown, of which go-md2man makes roff.
type page struct{ strings.Builder }

func newPage(name, does string, e Edition) *page {
	p := &page{}
	fmt.Fprintf(p, "%% %s 1 \"%s\" \"ggufreap %s\" \"User Commands\"\n\n", strings.ToUpper(name), e.Date, e.Version)
	p.section("NAME")
	p.text(escape(name) + " - " + escape(does) + "\n")
	return p
}

// headings are the lines of a help screen that begin a section, with its name in a page.
var headings = map[string]string{"Usage": "SYNOPSIS", "Flags": "", "Commands": "", "Exit codes": "EXIT STATUS", "Examples": "EXAMPLES"}

var heading = pattern.Lazy(`(?m)^(Usage|Flags|Commands|Exit codes|Examples):\n`)

// sections writes the sections of a help text, and by list what stands in place of its flags
// or commands. What is said before and behind the usage is the description.
func (p *page) sections(description string, list func()) {
	places := heading().FindAllStringSubmatchIndex(description, -1)
	end := func(i int) int {
		if i+1 < len(places) {
			return places[i+1][0]
		}
		return len(description)
	}
	about := description
	if len(places) > 0 {
		about = description[:places[0][0]]
	}
	for i, at := range places {
		body := description[at[1]:end(i)]
		switch name := description[at[2]:at[3]]; name {
		case "Usage":
			lines, rest, _ := strings.Cut(body, "\n\n")
			p.section(headings[name])
			p.lines(lines)
			p.section("DESCRIPTION")
			p.prose(about + rest)
		case "Flags", "Commands":
			list()
			p.prose(body)
		default:
			p.section(headings[name])
			p.lines(body)
		}
	}
}

func (p *page) section(name string) { fmt.Fprintf(p, "\n## %s\n\n", name) }

func (p *page) text(s string) { p.WriteString(s) }

// flags writes the flags in the sections that they have on the screen.
func (p *page) flags(flags []cli.Flag) {
	p.section("OPTIONS")
	for _, s := range Sections(flags) {
		if s.Title != "Flags" {
			fmt.Fprintf(p, "\n### %s\n\n", escape(s.Title))
		}
		for _, f := range s.Flags {
			head := "**" + escape("--"+f.Name) + "**"
			if f.Short != "" {
				head = "**" + escape("-"+f.Short) + "**, " + head
			}
			if f.Value != "" {
				head += " *" + escape(f.Value) + "*"
			}
			p.item(head, f.Text)
		}
	}
}

// item writes a head and what it means.
func (p *page) item(head, means string) {
	fmt.Fprintf(p, "%s\n:   %s\n\n", head, escape(strings.ReplaceAll(means, "\n", " ")))
}

// prose writes paragraphs; lines that are indented stay as they are.
func (p *page) prose(s string) {
	var block []string
	flush := func() {
		p.lines(strings.Join(block, "\n"))
		block = nil
	}
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			block = append(block, line)
			continue
		}
		flush()
		p.text(escape(line) + "\n")
	}
	flush()
}

// lines writes lines as they are.
func (p *page) lines(s string) {
	if s = strings.Trim(s, "\n"); s == "" {
		return
	}
	p.text("\n```\n")
	for line := range strings.SplitSeq(s, "\n") {
		p.text(strings.TrimPrefix(line, "  ") + "\n")
	}
	p.text("```\n\n")
}

// escape keeps Markdown from seeing anything in a text.
func escape(s string) string { return markup().ReplaceAllString(s, `\$0`) }

var markup = pattern.Lazy("[\\\\`*_{}\\[\\]()#+\\-.!<>|~:]")

func (p *page) roff() []byte { return md2man.Render([]byte(p.String())) }
