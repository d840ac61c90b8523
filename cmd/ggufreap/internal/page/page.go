// Package page writes one HTML file that needs nothing else: no script, no font, no address.
// It knows HTML and how a page reads on a phone, in the dark and on paper. What is on the page
// is for its callers to say; every text is escaped.
package page

import (
	_ "embed"
	"html/template"
	"io"
	"sync"
)

// A Page is what people read of a plan, a pin, scores or a release.
type Page struct {
	Title    string
	Lead     string // a sentence under the title
	Facts    []Fact
	Sections []Section
	Foot     string
}

// A Fact is a line of the list on top.
type Fact struct{ Name, Value string }

// A Section is a picture with its words and its table; it may lack the picture.
type Section struct {
	ID      string // lower-case letters and hyphens
	Title   string
	About   string
	Picture string // an SVG element, made by this program and not by anybody else; "" for none
	Columns []string
	Rows    [][]string
}

// SVG returns the picture as it stands in the page.
func (s Section) SVG() template.HTML { return template.HTML(s.Picture) }

//go:embed page.html
var source string

var parsed = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(source)) })

// Write writes the page. The same page gives the same bytes.
func (p *Page) Write(w io.Writer) error { return parsed().Execute(w, p) }
