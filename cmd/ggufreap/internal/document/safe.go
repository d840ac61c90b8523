package document

import (
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// A safeWriter passes JSON on and escapes what a terminal would act on, or what hides or
// piles up text. None of it is ASCII but DEL, so it can only stand in strings. It gets
// whole runes at a time.
type safeWriter struct {
	w     io.Writer
	out   []byte
	marks int // combining marks in a row

	failed bool // w did not take all
}

func (s *safeWriter) Write(p []byte) (int, error) {
	s.out = s.out[:0]
	for i := 0; i < len(p); {
		plain := i
		for i < len(p) && p[i] < 0x7f {
			i++
		}
		if plain < i {
			s.out, s.marks = append(s.out, p[plain:i]...), 0
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if s.marks = text.CountMarks(s.marks, r); s.marks > text.MaxMarks || text.Hidden(r) {
			s.escape(r)
		} else {
			s.out = append(s.out, p[i:i+size]...)
		}
		i += size
	}
	if _, err := s.w.Write(s.out); err != nil {
		s.failed = true
		return 0, err
	}
	return len(p), nil
}

func (s *safeWriter) escape(r rune) {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		s.escape(high)
		r = low
	}
	const digits = "0123456789abcdef"
	s.out = append(s.out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// Escaped returns a JSON document that another library wrote with what a terminal would act
// on escaped, as [Write] does. It reads the same.
func Escaped(text []byte) []byte {
	s := &safeWriter{w: io.Discard}
	s.Write(text)
	return s.out
}
