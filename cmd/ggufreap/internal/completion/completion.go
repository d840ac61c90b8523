// Package completion says what may stand at the end of a command line that is being typed,
// and makes the scripts by which shells ask. It knows the commands and flags as urfave/cli has
// them, and from help what their values are called: a FILE is completed by files, a DIR by
// folders, and what args.OneOf allows by its words. What urfave/cli has for this knows no
// values and no files, and its scripts are no part of a program.
package completion

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/help"
)

// An Answer is what may stand where the cursor is.
type Answer struct {
	Words []Word
	Paths string // Files, Folders or None
}

// What a shell completes by itself, besides the words.
const (
	None    = ":none"
	Files   = ":files"
	Folders = ":folders"
)

// A Word is one that fits, and what it means, if that is worth a word.
type Word struct{ Word, Means string }

// String writes the answer as the scripts read it: a line for each word, a tab before what it
// means, and the paths.
func (a Answer) String() string {
	var b strings.Builder
	for _, w := range a.Words {
		b.WriteString(w.Word + "\t" + w.Means + "\n")
	}
	return b.String() + a.Paths + "\n"
}

// Complete returns what may stand in place of the last of the words behind the program's
// name, which may be empty or the beginning of a word. bash makes three words of --flag=value,
// and replaces the last of them only; other shells leave them one.
func Complete(app *cli.App, words []string) Answer {
	if len(words) == 0 {
		return Answer{Paths: None}
	}
	typed, split := join(words)
	before, current := typed[:len(typed)-1], typed[len(typed)-1]
	flag, value, joined := strings.Cut(current, "=")
	if !joined || !args.IsFlag(flag) {
		return fitting(app, before, current)
	}
	answer := valueOf(flagsOf(app, before), flag, value)
	for i := range answer.Words {
		if !split {
			answer.Words[i].Word = flag + "=" + answer.Words[i].Word
		}
	}
	return answer
}

// join puts a flag, "=" and its value together, and reports whether it did so with the last
// words.
func join(words []string) (typed []string, split bool) {
	for i, word := range words {
		last := len(typed) - 1
		switch {
		case word == "=" && last >= 0 && args.IsFlag(typed[last]):
			typed[last] += "="
			split = true
		case split && words[i-1] == "=":
			typed[last] += word
		default:
			typed = append(typed, word)
			split = false
		}
	}
	return typed, split
}

// command returns the command among words, nil when there is none yet.
func command(app *cli.App, words []string) *cli.Command {
	if at := args.CommandAt(app, words); at >= 0 {
		return app.Command(words[at])
	}
	return nil
}

// flagsOf returns the flags that may stand behind words.
func flagsOf(app *cli.App, words []string) []cli.Flag {
	if cmd := command(app, words); cmd != nil {
		return cmd.Flags
	}
	return args.AllFlags(app)
}

func fitting(app *cli.App, before []string, current string) Answer {
	flags := flagsOf(app, before)
	cmd := command(app, before)
	separated := slices.Contains(before, "--")
	if n := len(before); n > 0 && !separated && args.WantsNext(flags, before[n-1]) {
		return valueOf(flags, before[n-1], current)
	}
	switch {
	case separated && cmd != nil:
		return argumentOf(app, cmd, current)
	case args.IsFlag(current) || current == "-":
		if cmd == nil {
			flags = app.Flags
		}
		return Answer{beginning(current, flagWords(flags, before)), None}
	case cmd == nil && args.CommandAt(app, before) < 0:
		return Answer{beginning(current, commandWords(app)), None}
	case cmd == nil:
		return Answer{Paths: Files}
	}
	return argumentOf(app, cmd, current)
}

// flagWords lists flags that may still be given.
func flagWords(flags []cli.Flag, before []string) []Word {
	var words []Word
	for _, s := range help.Sections(flags) {
		for _, f := range s.Flags {
			given := func(word string) bool {
				other := args.FlagOf(flags, word)
				return other != nil && slices.Contains(other.Names(), f.Name) && !args.Collects(other)
			}
			if !slices.ContainsFunc(before, given) {
				words = append(words, Word{"--" + f.Name, f.Text})
			}
		}
	}
	return words
}

func commandWords(app *cli.App) []Word {
	var words []Word
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			words = append(words, Word{cmd.Name, cmd.Usage})
		}
	}
	return words
}

// beginning returns the words that begin as what is typed does, each with the first line of
// what it means.
func beginning(typed string, all []Word) []Word {
	var words []Word
	for _, w := range all {
		if strings.HasPrefix(w.Word, typed) {
			means, _, _ := strings.Cut(w.Means, "\n")
			words = append(words, Word{w.Word, means})
		}
	}
	return words
}

// valueOf completes the value of a flag.
func valueOf(flags []cli.Flag, flag, typed string) Answer {
	f := args.FlagOf(flags, flag)
	if f == nil {
		return Answer{Paths: Files}
	}
	if words := args.Words(f); words != nil {
		return Answer{beginning(typed, plain(words)), None}
	}
	return named(help.ValueName(f))
}

// named says how a value of that name is completed.
func named(value string) Answer {
	switch value {
	case "FILE":
		return Answer{Paths: Files}
	case "DIR":
		return Answer{Paths: Folders}
	}
	return Answer{Paths: None}
}

// argumentOf completes an argument by what the command's first line of usage calls it.
func argumentOf(app *cli.App, cmd *cli.Command, typed string) Answer {
	switch name := help.Arguments(cmd); {
	case name == "":
		return Answer{Paths: None}
	case name == "COMMAND":
		return Answer{beginning(typed, commandWords(app)), None}
	case strings.Contains(name, "|"):
		return Answer{beginning(typed, plain(strings.Split(name, "|"))), None}
	}
	return Answer{Paths: Files}
}

func plain(words []string) []Word {
	list := make([]Word, len(words))
	for i, w := range words {
		list[i].Word = w
	}
	return list
}
