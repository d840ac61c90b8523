package jsondoc

import (
	"io"
	"unicode/utf8"
)

// A layout breaks JSON that comes on one line, a whole token at a time, into lines: each
// member and each element has its own, two spaces deeper than what it stands in. A list
// that begins with a number stands on one line, unless it is a member of the document.
type layout struct {
	w      io.Writer
	out    []byte // what w gets next
	depth  int    // brackets that are open
	row    int    // depth of the list that stands on one line, 0 outside one
	opened byte   // the bracket that came last, 0 after anything else
	quoted bool   // within a string
	escape bool   // behind a backslash
}

// memberDepth is the depth of what stands in a list that is a member of the document.
const memberDepth = 2

// NewLayout returns a writer that breaks compact JSON into the lines of a document, as it
// passes by to w. It wants whole tokens at a time, and gives whole runes.
func NewLayout(w io.Writer) io.Writer { return &layout{w: w} }

// maxChunk bounds what is laid out before it is written: a text can be very long.
const maxChunk = 32 << 10

// Write writes all of p, or returns the error of what it writes to.
func (l *layout) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		chunk := p[n:min(n+maxChunk, len(p))]
		for end := n + len(chunk); end < len(p) && !utf8.RuneStart(p[end]) && len(chunk) > 1; end-- {
			chunk = chunk[:len(chunk)-1]
		}
		if err := l.pass(chunk); err != nil {
			return n, err
		}
		n += len(chunk)
	}
	return len(p), nil
}

func (l *layout) pass(chunk []byte) error {
	l.out = l.out[:0]
	for len(chunk) > 0 {
		if l.quoted {
			chunk = l.text(chunk)
		} else {
			l.mark(chunk[0])
			chunk = chunk[1:]
		}
	}
	_, err := l.w.Write(l.out)
	return err
}

// text passes on a string up to the next byte that could end it, and returns what follows.
func (l *layout) text(chunk []byte) []byte {
	n := 1
	if !l.escape {
		for n = 0; n < len(chunk) && chunk[n] != '"' && chunk[n] != '\\'; n++ {
		}
		if n < len(chunk) {
			l.quoted = chunk[n] != '"'
			l.escape = chunk[n] == '\\'
			n++
		}
	} else {
		l.escape = false
	}
	l.out = append(l.out, chunk[:n]...)
	return chunk[n:]
}

// mark passes on a byte outside strings with what stands around it.
func (l *layout) mark(c byte) {
	if c == '}' || c == ']' {
		l.close(c)
		return
	}
	if l.opened != 0 {
		l.first(c)
	}
	l.out = append(l.out, c)
	switch c {
	case '{', '[':
		l.depth++
		l.opened = c
	case '"':
		l.quoted = true
	case ':':
		l.out = append(l.out, ' ')
	case ',':
		l.separate()
	}
}

// first begins what stands in a bracket: c is its first byte.
func (l *layout) first(c byte) {
	number := c == '-' || c >= '0' && c <= '9'
	if l.row == 0 && l.opened == '[' && number && l.depth > memberDepth {
		l.row = l.depth
	}
	l.opened = 0
	l.line()
}

func (l *layout) separate() {
	if l.row > 0 {
		l.out = append(l.out, ' ')
	}
	l.line()
}

func (l *layout) close(c byte) {
	l.depth--
	if l.opened == 0 {
		l.line()
	}
	l.opened = 0
	l.out = append(l.out, c)
	if l.depth < l.row {
		l.row = 0
	}
}

// line begins a line, unless a list is to stay on one.
func (l *layout) line() {
	if l.row > 0 {
		return
	}
	l.out = append(l.out, '\n')
	for range l.depth {
		l.out = append(l.out, "  "...)
	}
}
