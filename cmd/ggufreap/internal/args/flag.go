package args

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// A choice is a flag that takes one of a few words.
type choice struct {
	*cli.StringFlag
	words []string
}

// OneOf makes a flag refuse what is none of the words, which completion offers.
func OneOf(f *cli.StringFlag, words ...string) cli.Flag { return &choice{f, words} }

// RunAction checks the value; one that is empty is refused with those of all flags.
func (f *choice) RunAction(c *cli.Context) error {
	value := c.String(f.Name)
	if value == "" {
		return nil
	}
	for _, word := range f.words {
		if value == word {
			return f.StringFlag.RunAction(c)
		}
	}
	return Usagef("%s is %q, want %s", dashed(f.Name), value, alternatives(f.words))
}

// alternatives joins words for a message: "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}

// A suggestion is a flag that takes anything, and some words often.
type suggestion struct {
	*cli.StringSliceFlag
	words []string
}

// Suggest makes completion offer words for a flag.
func Suggest(f *cli.StringSliceFlag, words ...string) cli.Flag { return &suggestion{f, words} }

// Words returns those that completion offers as the value of a flag.
func Words(f cli.Flag) []string {
	switch f := f.(type) {
	case *choice:
		return f.words
	case *suggestion:
		return f.words
	}
	return nil
}

// In puts flags into a section of the help screen.
func In(section string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.Category = section
		case *cli.IntFlag:
			f.Category = section
		case *cli.Float64Flag:
			f.Category = section
		case *cli.Uint64Flag:
			f.Category = section
		case *cli.IntSliceFlag:
			f.Category = section
		case *cli.StringFlag:
			f.Category = section
		case *cli.StringSliceFlag:
			f.Category = section
		case *choice:
			f.Category = section
		case *suggestion:
			f.Category = section
		default:
			panic(fmt.Sprintf("a flag of type %T has no section yet", f))
		}
	}
	return flags
}
