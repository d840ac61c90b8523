package ui

// ANSI styles.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Yellow = "33"
)

// paint wraps s in a style when color is on.
func paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}
