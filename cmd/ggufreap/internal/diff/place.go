package diff

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// placeText says where a value differs that a line of the screen cannot show whole:
// "2 items differ, the first at [999]: 999 / 7".
func placeText(c manifest.KeyChange) string {
	d := c.Where
	list := c.A.Type() == gguf.Array
	a, b, cut := differingParts(d)
	if c.Change != manifest.Changed || !list && !cut {
		return ""
	}
	said := "differs"
	if list {
		first := ""
		if d.Items > 1 {
			first = "the first "
		}
		said = fmt.Sprintf("%s, %sat %s", text.Differ(d.Items, "item"), first, strings.ReplaceAll(fmt.Sprint(d.Path), " ", "]["))
	}
	if cut {
		said += " from byte " + text.Grouped(d.Byte) + " on"
	}
	return said + ": " + partTexts(a, b)
}

// partTexts writes what stands on both sides, with types where they differ.
func partTexts(a, b gguf.Value) string {
	write := partText
	if a.Size() > 0 && b.Size() > 0 && a.TypeName() != b.TypeName() {
		write = typedText
	}
	return write(a) + " / " + write(b)
}

// partText writes a part of a list or string, "-" where the list has ended.
func partText(v gguf.Value) string {
	switch {
	case v.Size() == 0:
		return "-"
	case v.Type() == gguf.Text && v.Len() == 0:
		return "nothing"
	}
	return metadata.Short(v)
}

// differingParts returns what stands where two values differ. Of strings that are too
// long for a line it is what begins with the first character that differs.
func differingParts(d gguf.Difference) (a, b gguf.Value, cut bool) {
	if d.A.Type() != gguf.Text || d.B.Type() != gguf.Text || fits(d.A) && fits(d.B) {
		return d.A, d.B, false
	}
	return textPart(d.A, d.Byte), textPart(d.B, d.Byte), true
}

// fits reports whether a line shows a string whole.
func fits(v gguf.Value) bool {
	s, ok := "", v.Len() <= text.LineColumns
	if ok {
		s, ok = v.Text()
	}
	return ok && text.Shorten(s) == text.Safe(s)
}

// textPart returns what fits a line of a string, from the character on that byte at
// belongs to. What cannot be read is left out.
func textPart(v gguf.Value, at int64) gguf.Value {
	const head = 8 // bytes before those of the string
	from := max(at-utf8.UTFMax+1, 0)
	part := make([]byte, min(v.Len()-from, text.LineColumns))
	n, _ := v.ReadAt(part, head+from)
	part = part[:n]
	start := int(min(at-from, int64(n)))
	for start > 0 && start < n && !utf8.RuneStart(part[start]) {
		start--
	}
	return gguf.TextValue(string(wholeRunes(part[start:])))
}

// wholeRunes leaves out the beginning of a character at the end of b.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
