package lists

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"

	"ggufreap/manifest"
)

// Bounds on a sums file. A list of the 65535 shards that a split can have, each
// with a long name, stays well below them.
const (
	maxSumsLine   = 64 + 16 + 2*manifest.MaxFileName // every byte of the name escaped
	MaxSumsBytes  = 64 << 20
	maxSumsFaults = 100
)

// SumsFault is one thing wrong with a sums file. Line counts from 1; 0 is the
// whole file.
type SumsFault struct {
	Line int
	What string
	More int // further lines of which the same is wrong
	Last int // the last of them
}

func (f SumsFault) String() string {
	switch {
	case f.Line == 0:
		return f.What
	case f.More == 0:
		return fmt.Sprintf("line %d: %s", f.Line, f.What)
	case f.Last == f.Line+f.More:
		return fmt.Sprintf("lines %d to %d: %s", f.Line, f.Last, f.What)
	}
	return fmt.Sprintf("line %d and %d more, the last of them line %d: %s", f.Line, f.More, f.Last, f.What)
}

// addLine adds a line of which the same is wrong, behind all others.
func (f *SumsFault) addLine(line int) {
	if f.Line == 0 {
		f.Line = line
		return
	}
	f.More++
	f.Last = line
}

// SumsError holds all faults of a sums file, in the order of its lines.
type SumsError struct{ Faults []SumsFault }

// Error returns one line for each fault.
func (e *SumsError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// ReadSums reads a sums file in any form in circulation:
//
//   - GNU: digits, space, space or "*", name; a line that begins with a backslash
//     escapes \\, \n and \r in its name
//   - digits, one space, name
//   - tagged, as BSD and openssl write: "SHA256 (name) = digits",
//     "SHA2-256(name)= digits", escaped as above
//   - upper-case digits, CRLF line ends, a UTF-8 byte order mark, empty lines and
//     lines that begin with "#"
//   - names with a leading "./", and unescaped names with backslashes as separators
//
// It is strict about all else. A name that is absolute or leaves the folder, a name
// that comes twice, a line cut short, one with no line end, a list that mixes
// line ends or mixes one space with two, and a list with no entry are faults. The
// error is a *SumsError with all faults, or what r returned.
func ReadSums(r io.Reader) ([]FileSum, error) {
	var sums []FileSum
	err := EachSum(r, func(s FileSum) error {
		sums = append(sums, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sums, nil
}

// EachSum reads a sums file as ReadSums does, and calls each with one entry after the other,
// holding none of them. What is wrong with the list is known at its end only. The first error
// of each ends it.
func EachSum(r io.Reader, each func(FileSum) error) error {
	limited := &io.LimitedReader{R: r, N: MaxSumsBytes + 1}
	p := sumsParser{lines: bufio.NewReaderSize(limited, maxSumsLine), each: each, seed: maphash.MakeSeed(), seen: map[uint64]uint32{}}
	for {
		more, err := p.next()
		if err = errors.Join(err, p.failed); err != nil {
			return err
		}
		if limited.N == 0 {
			p.line = 0
			p.fault("the list is longer than %d bytes", MaxSumsBytes)
			break
		}
		if !more || len(p.faults) >= maxSumsFaults {
			break
		}
	}
	if len(p.faults) == 0 && p.entries == 0 {
		p.line = 0
		p.fault("the list has no entries")
	}
	if len(p.faults) > 0 {
		return &SumsError{p.faults}
	}
	return nil
}

// sumsParser holds what must be the same on all lines of a list.
type sumsParser struct {
	lines   *bufio.Reader
	line    int
	each    func(FileSum) error
	failed  error // of each
	entries int
	seed    maphash.Seed
	seen    map[uint64]uint32 // line of each name, by its hash: there can be a million
	faults  []SumsFault
	ends    string // "\n" or "\r\n", "" before the first line
	spaces  spacing
}

// spacing is what stands between digits and name in lines that are not tagged.
type spacing int

const (
	spacingUnknown spacing = iota
	spacingOne             // the name follows
	spacingTwo             // a space or star more
)

// fault adds a fault of this line, which other lines may have too.
func (p *sumsParser) fault(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	for i := range p.faults {
		if f := &p.faults[i]; f.What == what && f.Line > 0 {
			f.addLine(p.line)
			return
		}
	}
	p.faults = append(p.faults, SumsFault{Line: p.line, What: what})
}

// next reads one line and reports whether another may follow.
func (p *sumsParser) next() (bool, error) {
	raw, err := p.lines.ReadSlice('\n')
	p.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		p.fault("line is longer than %d bytes", maxSumsLine)
		return p.skipLine()
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	case err != nil && len(raw) == 0:
		return false, nil
	}
	if p.line == 1 {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
			p.fault("the list is UTF-16 text, want UTF-8")
			return false, nil
		}
	}
	if err != nil {
		p.fault("line has no line end, so the list may be cut short")
		return false, nil
	}
	text := p.trimEnd(string(raw))
	if text == "" || text[0] == '#' {
		return true, nil
	}
	if err := p.entry(text); err != nil {
		p.fault("%v", err)
	}
	return true, nil
}

// skipLine passes over the rest of a line that is too long.
func (p *sumsParser) skipLine() (bool, error) {
	for {
		_, err := p.lines.ReadSlice('\n')
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, io.EOF):
			return false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}

// trimEnd cuts off the line end. A CR that only some lines carry could belong to
// the name, so it must be on all lines or on none.
func (p *sumsParser) trimEnd(line string) string {
	text, end := line[:len(line)-1], "\n"
	if strings.HasSuffix(text, "\r") {
		text, end = text[:len(text)-1], "\r\n"
	}
	if p.ends == "" {
		p.ends = end
	}
	if p.ends != end {
		p.fault("line ends in %q where the first ends in %q", end, p.ends)
	}
	return text
}

// entry reads the line of one file.
func (p *sumsParser) entry(text string) error {
	body, escaped := strings.CutPrefix(text, `\`)
	name, digits, tagged, err := splitTagged(body)
	if err == nil && !tagged {
		name, digits, err = p.splitPlain(body)
	}
	if err != nil {
		return err
	}
	sum, err := manifest.ParseSum(strings.ToLower(digits))
	if err != nil {
		return err
	}
	if name, err = cleanSumsName(name, escaped); err != nil {
		return err
	}
	hash := maphash.String(p.seed, name)
	if first, twice := p.seen[hash]; twice {
		return fmt.Errorf("name %q is on line %d already", name, first)
	}
	p.seen[hash] = uint32(p.line)
	p.entries++
	p.failed = p.each(FileSum{name, sum})
	return nil
}

// splitPlain cuts "digits, one or two separators, name".
func (p *sumsParser) splitPlain(body string) (name, digits string, err error) {
	digits, name, found := strings.Cut(body, " ")
	if !found {
		return "", "", errors.New("line is not a digest, a space and a file name")
	}
	spaces := spacingOne
	if strings.HasPrefix(name, " ") || strings.HasPrefix(name, "*") {
		name, spaces = name[1:], spacingTwo
	}
	if _, err := manifest.ParseSum(strings.ToLower(digits)); err != nil {
		return "", "", err // such a line says nothing of the others
	}
	if p.spaces == spacingUnknown {
		p.spaces = spaces
	}
	if p.spaces != spaces {
		return "", "", errors.New("lines with one space and with two in one list: where names begin is unclear")
	}
	return name, digits, nil
}

// splitTagged cuts "SHA256 (name) = digits" and openssl's closer forms. The last
// ")=" or ") = " counts, because a name may hold one and digits cannot.
func splitTagged(body string) (name, digits string, tagged bool, err error) {
	open := strings.IndexByte(body, '(')
	if open <= 0 {
		return "", "", false, nil
	}
	algorithm := strings.TrimSuffix(body[:open], " ")
	if strings.ContainsRune(algorithm, ' ') {
		return "", "", false, nil // digits and a name with a bracket in it
	}
	end := strings.LastIndexByte(body, ')')
	digits, found := cutAnyPrefix(body[end+1:], " = ", "= ")
	switch {
	case end < open || !found:
		return "", "", true, errors.New(`line begins like "SHA256 (name) = digest" and does not end so`)
	case algorithm != "SHA256" && algorithm != "SHA2-256":
		return "", "", true, fmt.Errorf("algorithm is %q, want SHA256", algorithm)
	}
	return body[open+1 : end], digits, true, nil
}

func cutAnyPrefix(s string, prefixes ...string) (after string, found bool) {
	for _, p := range prefixes {
		if after, found = strings.CutPrefix(s, p); found {
			return after, true
		}
	}
	return s, false
}

// cleanSumsName undoes escapes, or else turns separators of Windows into slashes,
// drops a leading "./" and refuses what is still not a clean path.
func cleanSumsName(name string, escaped bool) (string, error) {
	if escaped {
		var err error
		if name, err = unescapeName(name); err != nil {
			return "", err
		}
	} else {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	for strings.HasPrefix(name, "./") {
		name = name[2:]
	}
	return name, manifest.CheckFileName(name)
}

func unescapeName(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '\\' {
			i++
			if i == len(name) {
				return "", fmt.Errorf("file name %q ends inside an escape", name)
			}
			switch name[i] {
			case '\\':
				c = '\\'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			default:
				return "", fmt.Errorf(`file name %q has the escape %q, want \\, \n or \r`, name, name[i-1:i+1])
			}
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}
