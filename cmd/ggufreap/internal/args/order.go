package args

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/hint"
)

// Order puts the words behind the program's name into the order that urfave/cli reads them
// in: the command, its flags, its arguments, these behind "--" if one looks like a flag.
// People write flags anywhere; what stands behind "--" is no flag. Package flag takes the
// last value of a flag that is given twice and says nothing, so that is refused here, unless
// the flag collects values or has none.
func Order(app *cli.App, words []string) ([]string, error) {
	words = splitShort(AllFlags(app), words)
	at := CommandAt(app, words)
	if at < 0 {
		return words, nil
	}
	name := words[at]
	rest := slices.Concat(words[:at], words[at+1:])
	cmd := app.Command(name)
	if cmd == nil {
		return append([]string{name}, rest...), nil
	}
	line := sortWords(cmd.Flags, rest)
	line.hush(cmd.Flags)
	line.nameStreams(cmd.Flags)
	if err := line.once(cmd.Flags); err != nil {
		return nil, hint.With(err, "see: ggufreap help %s", cmd.Name)
	}
	return append([]string{cmd.Name}, line.words()...), nil
}

// CommandAt returns the place of the command: that of the first word that is neither a flag
// nor the value of one. It is -1 when there is none.
func CommandAt(app *cli.App, words []string) int {
	flags := AllFlags(app)
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--":
			return -1
		case !IsFlag(words[i]):
			return i
		case WantsNext(flags, words[i]):
			i++
		}
	}
	return -1
}

// AllFlags returns the flags of all commands, which may stand before the command.
func AllFlags(app *cli.App) []cli.Flag {
	var flags []cli.Flag
	for _, cmd := range app.Commands {
		flags = append(flags, cmd.Flags...)
	}
	return flags
}

// A line is the words of a command, sorted.
type line struct {
	flags     [][]string // each with its value, if that is a word of its own
	arguments []string
}

func sortWords(flags []cli.Flag, words []string) line {
	var l line
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			l.arguments = append(l.arguments, words[i+1:]...)
			return l
		case !IsFlag(word):
			l.arguments = append(l.arguments, word)
		case !WantsNext(flags, word):
			l.flags = append(l.flags, []string{switched(flags, word)})
		case i+1 < len(words):
			i++
			l.flags = append(l.flags, []string{word, words[i]})
		default: // its value is missing, which package flag sees if nothing follows
			l.flags = append(l.flags, []string{word})
			l.arguments = nil
		}
	}
	return l
}

// hush leaves out what asks for no progress where a command shows none anyway: people who put
// -q before every command need not know which those are.
func (l *line) hush(flags []cli.Flag) {
	if FlagOf(flags, "--quiet") == nil {
		l.flags = slices.DeleteFunc(l.flags, func(words []string) bool {
			name, _, _ := strings.Cut(words[0], "=")
			return slices.Contains([]string{"-q", "-quiet", "--quiet"}, name)
		})
	}
}

// nameStreams writes "-" for the paths of standard input where a file is read, and of standard
// output where one is written.
func (l *line) nameStreams(flags []cli.Flag) {
	for _, words := range l.flags {
		f := FlagOf(flags, words[0])
		if f == nil || help.ValueName(f) != "FILE" {
			continue
		}
		paths := stdinPaths
		if isWritten(f) {
			paths = stdoutPaths
		}
		last := len(words) - 1
		if name, value, joined := strings.Cut(words[last], "="); joined && last == 0 && slices.Contains(paths, value) {
			words[0] = name + "=-"
		} else if last > 0 && slices.Contains(paths, words[last]) {
			words[last] = "-"
		}
	}
	for i, argument := range l.arguments {
		if slices.Contains(stdinPaths, argument) {
			l.arguments[i] = "-"
		}
	}
}

// isWritten reports whether a flag names a file that is written.
func isWritten(f cli.Flag) bool {
	return slices.Contains([]string{"output", "pin-source", "bom"}, f.Names()[0])
}

// switched writes "--flag=off" and "=on" of a flag that only says yes or no as package flag reads
// them.
func switched(flags []cli.Flag, word string) string {
	name, value, _ := strings.Cut(word, "=")
	if _, yesOrNo := FlagOf(flags, word).(*cli.BoolFlag); yesOrNo && (value == "on" || value == "off") {
		return name + "=" + strconv.FormatBool(value == "on")
	}
	return word
}

func (l line) words() []string {
	words := slices.Concat(l.flags...)
	if slices.ContainsFunc(l.arguments, IsFlag) {
		words = append(words, "--")
	}
	return append(words, l.arguments...)
}

// once refuses a flag that has one value and is given two, and keeps one of those that only
// say yes.
func (l *line) once(flags []cli.Flag) error {
	given := map[cli.Flag]string{}
	kept := l.flags[:0]
	for _, words := range l.flags {
		f := FlagOf(flags, words[0])
		before, again := given[f]
		switch value := valueIn(words); {
		case f == nil || Collects(f) || !again || WantsNext(flags, words[0]) && len(words) == 1:
			given[f] = value
			kept = append(kept, words)
		case len(words) > 1 || value != yes || before != yes:
			return Usagef("%s takes one value and is given two, %q and %q", dashed(f.Names()[0]), before, value)
		}
	}
	l.flags = kept
	return nil
}

// yes is the value of a flag that has none.
const yes = "true"

func valueIn(words []string) string {
	if _, joined, ok := strings.Cut(words[0], "="); ok {
		return joined
	}
	if len(words) > 1 {
		return words[1]
	}
	return yes
}

// Collects reports whether a flag adds up the values that it is given.
func Collects(f cli.Flag) bool {
	s, ok := f.(cli.DocGenerationSliceFlag)
	return ok && s.IsSliceFlag()
}

// IsFlag reports whether a word looks like a flag; "-" stands for a stream.
func IsFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// WantsNext reports whether the word behind a flag is its value.
func WantsNext(flags []cli.Flag, word string) bool {
	f, ok := FlagOf(flags, word).(cli.DocGenerationFlag)
	return ok && f.TakesValue() && !strings.Contains(word, "=")
}

// FlagOf returns the flag that a word is, nil if there is none.
func FlagOf(flags []cli.Flag, word string) cli.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, f := range flags {
		for _, n := range f.Names() {
			if name == "-"+n || name == "--"+n { // package flag takes both
				return f
			}
		}
	}
	return nil
}
