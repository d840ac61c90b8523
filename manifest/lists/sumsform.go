package lists

import (
	"bufio"
	"bytes"
	"io"

	"ggufreap/gguf/pattern"
)

// entryStart is how an untagged entry begins: the digits, and what stands before the name.
var entryStart = pattern.Lazy(`^\\?([0-9A-Fa-f]{64}) ([ *])`)

// taggedStart is how an entry begins that names its algorithm.
var taggedStart = pattern.Lazy(`^\\?SHA(2-)?256 ?\(`)

// hiddenEntry is a comment that would be an entry but for its first byte.
var hiddenEntry = pattern.Lazy(`^#\\?[0-9A-Fa-f]{63} [ *]`)

// OddForms returns what is odd about the form of a list that ReadSums accepts. No
// program writes one list in two forms, so a changed byte is more likely, even where
// what the list says is still the same.
func OddForms(list io.Reader) ([]SumsFault, error) {
	var faults []SumsFault
	var lower, upper, spaces, stars, tagged bool
	n, hidden := 0, SumsFault{What: "a comment looks like an entry whose first digit was changed"}
	lines := bufio.NewReaderSize(list, maxSumsLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		n++
		if hiddenEntry().Match(line) {
			hidden.addLine(n)
		}
		if m := entryStart().FindSubmatch(line); m != nil {
			lower = lower || bytes.ContainsAny(m[1], "abcdef")
			upper = upper || bytes.ContainsAny(m[1], "ABCDEF")
			spaces = spaces || m[2][0] == ' '
			stars = stars || m[2][0] == '*'
		}
		tagged = tagged || taggedStart().Match(line)
	}
	if hidden.Line > 0 {
		faults = append(faults, hidden)
	}
	if lower && upper {
		faults = append(faults, SumsFault{What: "upper-case and lower-case digits are mixed"})
	}
	if spaces && stars {
		faults = append(faults, SumsFault{What: "entries with two spaces and with a space and a star are mixed"})
	}
	if tagged && (spaces || stars) {
		faults = append(faults, SumsFault{What: "entries that name the algorithm are mixed with others"})
	}
	return faults, nil
}
