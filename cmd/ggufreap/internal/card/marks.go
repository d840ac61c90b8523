// Package card writes the model card of a release: Markdown with front matter, of which the
// marked sections are made from the release's own documents and evidence, and the rest is for
// people. It knows the form of cards on the Hugging Face hub. What a release is, its documents
// say; what it can do, package evidence.
package card

import (
	"fmt"
	"strings"
)

// A section stands between two marks and is made anew; text outside of marks stays.
type section struct {
	name string // lower-case letters
	text string // Markdown, ends in a newline
}

func begin(name string) string { return "<!-- ggufreap:begin " + name + " -->" }

func end(name string) string { return "<!-- ggufreap:end " + name + " -->" }

func (s section) String() string { return begin(s.name) + "\n" + s.text + end(s.name) + "\n" }

// A span is where a marked section stands in a text.
type span struct{ from, to int }

// spans finds the marked sections, each on lines of its own.
func spans(text string) (map[string]span, error) {
	found := map[string]span{}
	open, from, at := "", 0, 0
	for n, line := range strings.SplitAfter(text, "\n") {
		bare := strings.TrimRight(line, "\r\n \t")
		name, isBegin := mark(bare, "begin")
		other, isEnd := mark(bare, "end")
		switch {
		case isBegin && open != "":
			return nil, fmt.Errorf("line %d: section %q begins inside of %q", n+1, name, open)
		case isBegin && found[name] != (span{}):
			return nil, fmt.Errorf("line %d: section %q stands twice", n+1, name)
		case isBegin:
			open, from = name, at
		case isEnd && other != open:
			return nil, fmt.Errorf("line %d: section %q ends and did not begin", n+1, other)
		case isEnd:
			found[open] = span{from, at + len(line)}
			open = ""
		}
		at += len(line)
	}
	if open != "" {
		return nil, fmt.Errorf("section %q does not end: its line %q is missing", open, end(open))
	}
	return found, nil
}

// mark returns the section that a line begins or ends.
func mark(line, kind string) (string, bool) {
	name, ok := strings.CutPrefix(line, "<!-- ggufreap:"+kind+" ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, " -->")
}

// renew puts the sections into a text: in the place of what was marked so before, and those
// that are new behind the one before them, or at the end.
func renew(text string, sections []section) (string, error) {
	for i, s := range sections {
		places, err := spans(text)
		if err != nil {
			return "", err
		}
		if at, ok := places[s.name]; ok {
			text = text[:at.from] + s.String() + text[at.to:]
			continue
		}
		place := len(text)
		if i > 0 {
			place = places[sections[i-1].name].to
		}
		text = gap(text[:place]) + s.String() + lead(text[place:])
	}
	return text, nil
}

// gap ends a text with an empty line, unless it is empty.
func gap(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimRight(text, "\n") + "\n\n"
}

// lead begins a text with an empty line, unless it is empty.
func lead(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return "\n" + strings.TrimLeft(text, "\n")
}
