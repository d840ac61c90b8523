package jsondoc

import "io"

// A layout breaks JSON that comes on one line, a whole token at a time, into lines: each
// member and each element has its own, two spaces deeper than what it stands in. A list
// that begins with a number stands on one line.
type layout struct {
	w      io.Writer
	out    []byte // what w gets next
	depth  int    // brackets that are open
	row    int    // depth of the list that stands on one line, 0 outside one
	opened byte   // the bracket that came last, 0 after anything else
	quoted bool   // within a string
	escape bool   // behind a backslash
}

// Write writes all of p, or returns the error of what is written to.
func (l *layout) Write(p []byte) (int, error) {
	l.out = l.out[:0]
	for _, c := range p {
		if l.quoted {
			l.text(c)
		} else {
			l.mark(c)
		}
	}
	if _, err := l.w.Write(l.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// text passes on a byte of a string.
func (l *layout) text(c byte) {
	l.out = append(l.out, c)
	l.quoted = c != '"' || l.escape
	l.escape = c == '\\' && !l.escape
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
	if l.row == 0 && l.opened == '[' && number {
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
