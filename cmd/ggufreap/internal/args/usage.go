// Package args is between what was typed and what a command reads: it words errors about
// flags and arguments, finds the word that was meant, and writes command lines to be copied.
// It knows urfave/cli and shells. It knows no command's flags, and prints nothing but help.
package args

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/gguf/pattern"
)

// Usagef makes an error about what was typed.
func Usagef(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Prepare gives a command what all commands share. urfave/cli would print its own help and
// errors, and call os.Exit.
func Prepare(cmd *cli.Command) {
	cmd.HideHelp = true
	cmd.HideHelpCommand = true
	cmd.Flags = append(cmd.Flags, helpFlag(cmd))
	cmd.OnUsageError = func(c *cli.Context, err error, _ bool) error {
		return ExplainUsage(err, cmd)
	}
	action := cmd.Action
	cmd.Action = func(c *cli.Context) error {
		if c.Bool("help") {
			fmt.Fprint(c.App.Writer, help.Command(cmd))
			return nil
		}
		if err := cmp.Or(checkEmpty(c, cmd), checkStdin(c, cmd), checkFolders(c, cmd)); err != nil {
			return err
		}
		return action(c)
	}
}

// helpFlag stands behind the flags for progress, or behind the last one.
func helpFlag(cmd *cli.Command) cli.Flag {
	f := &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this text"}
	for _, other := range cmd.Flags {
		if c, ok := other.(cli.CategorizableFlag); ok {
			f.Category = c.GetCategory()
		}
		if other.Names()[0] == "progress" {
			break
		}
	}
	return f
}

// ExplainUsage rewords an error of package flag.
func ExplainUsage(err error, cmd *cli.Command) error {
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "flag provided but not defined: -"); ok {
		err = Usagef("unknown flag %q", dashed(name))
		if file := "-" + name; isFile(file) {
			return hint.With(err, "a file of this name is given as %s", ShellQuote("./"+file))
		}
		if longer := endingIn("-"+strings.TrimLeft(name, "-"), flagNames(cmd)); longer != "" {
			return hint.With(err, "did you mean %s? see: ggufreap help %s", longer, cmd.Name)
		}
		if near := Closest(name, flagNames(cmd)); near != "" {
			return hint.With(err, "did you mean %s?", dashed(near))
		}
		if other := elsewhere(strings.TrimLeft(name, "-"), flagNames(cmd)); other != "" {
			return hint.With(err, "did you mean %s? see: ggufreap help %s", dashed(other), cmd.Name)
		}
		return hint.With(err, "see: ggufreap help %s", cmd.Name)
	}
	if name, ok := strings.CutPrefix(msg, "flag needs an argument: -"); ok {
		return hint.With(Usagef("flag %s needs a value", dashed(strings.TrimPrefix(name, "-"))), "see: ggufreap help %s", cmd.Name)
	}
	if m := badBool().FindStringSubmatch(msg); m != nil {
		err = Usagef("%s takes no value, got %s", dashed(m[2]), m[1])
	}
	if m := badValue().FindStringSubmatch(msg); m != nil {
		err = Usagef("%s is %s, want %s", dashed(m[2]), m[1], numberKind(cmd, m[2]))
	}
	return hint.With(err, "see: ggufreap help %s", cmd.Name)
}

// otherNames are flags that other tools have for what ours do.
var otherNames = map[string][]string{
	"output":            {"out", "outdir", "out-dir", "output-dir", "outfile", "output-file", "dir", "dest"},
	"keep":              {"experts", "num-experts", "n-experts", "keep-experts", "expert-count", "ratio"},
	"workers":           {"threads", "jobs", "j", "parallel", "num-workers"},
	"threads":           {"jobs", "j", "workers"},
	"force":             {"overwrite", "f"},
	"resume":            {"continue", "restart"},
	"shards":            {"split", "splits", "num-shards"},
	"max-shard-size":    {"split-max-size", "max-size"},
	"max-shard-tensors": {"split-max-tensors"},
	"plan":              {"plan-file"},
	"dry-run":           {"n", "simulate"},
	"quiet":             {"silent", "s"},
	"limit-rate":        {"bwlimit", "rate"},
}

// elsewhere returns the flag of a command that other tools call by a name, or the only one that
// begins with it, or "".
func elsewhere(name string, flags []string) string {
	var begun []string
	for _, flag := range flags {
		if slices.Contains(otherNames[flag], name) {
			return flag
		}
		if len(name) > 2 && strings.HasPrefix(flag, name) {
			begun = append(begun, flag)
		}
	}
	if len(begun) == 1 {
		return begun[0]
	}
	return ""
}

// numberKind says what a number flag takes.
func numberKind(cmd *cli.Command, name string) string {
	for _, f := range cmd.Flags {
		if _, unsigned := f.(*cli.Uint64Flag); unsigned && slices.Contains(f.Names(), name) {
			return "a whole number from 0 to 18446744073709551615"
		}
	}
	return "a whole number"
}

// checkEmpty refuses flags and arguments without a value: nobody types them, but a
// variable that is not set gives one.
func checkEmpty(c *cli.Context, cmd *cli.Command) error {
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		empty := false
		switch f.(type) {
		case *cli.StringFlag, *choice:
			empty = c.IsSet(name) && c.String(name) == ""
		case *cli.StringSliceFlag, *suggestion:
			empty = slices.Contains(c.StringSlice(name), "")
		}
		if empty {
			return hint.With(Usagef("%s has an empty value", dashed(name)), "leave the flag out, or see that the variable it is given is set")
		}
	}
	if i := slices.Index(c.Args().Slice(), ""); i >= 0 {
		return hint.With(Usagef("argument %d is empty", i+1), "see that the variable it is given is set")
	}
	return nil
}

// checkStdin wants no more than one "-" among the files that are read.
func checkStdin(c *cli.Context, cmd *cli.Command) error {
	var given []string
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		if help.ValueName(f) != "FILE" || isWritten(f) || !c.IsSet(name) {
			continue
		}
		for _, value := range typed(c, f) {
			if value == "-" {
				given = append(given, dashed(name))
			}
		}
	}
	for i, arg := range c.Args().Slice() {
		if arg == "-" {
			given = append(given, fmt.Sprintf("argument %d", i+1))
		}
	}
	if len(given) > 1 {
		return Usagef("- stands for standard input, which can be read once, and not by %s", strings.Join(given, " and "))
	}
	return nil
}

// checkFolders refuses "-" where a folder is named.
func checkFolders(c *cli.Context, cmd *cli.Command) error {
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		if help.ValueName(f) != "DIR" || c.String(name) != "-" {
			continue
		}
		if name == "output" {
			name = "o"
		}
		return hint.With(Usagef("%s names a folder, and - stands for standard output", dashed(name)), "a folder of this name is ./-")
	}
	return nil
}

// typed returns the values of a flag that takes text, once or many times.
func typed(c *cli.Context, f cli.Flag) []string {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.StringSliceFlag, *suggestion:
		return c.StringSlice(name)
	}
	return []string{c.String(name)}
}

func isFile(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// badValue is what package flag says of a value that a number flag does not take.
var badValue = pattern.Lazy(`^invalid value (".*") for flag -([a-z-]+): .*$`)

// badBool is what it says of a value that a flag which is there or not has got.
var badBool = pattern.Lazy(`^invalid boolean value (".*") for -([a-z-]+): .*$`)

// None refuses arguments of a command that takes none.
func None(c *cli.Context) error {
	if c.NArg() > 0 {
		return Usagef("%s takes no arguments, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}

// dashed writes a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + strings.TrimLeft(name, "-")
}

// endingIn names the flags that end in a word: "--oms-key or --ssh-key".
func endingIn(end string, names []string) string {
	var found []string
	for _, name := range names {
		if strings.HasSuffix(name, end) {
			found = append(found, dashed(name))
		}
	}
	return alternatives(found)
}

func flagNames(cmd *cli.Command) []string {
	var names []string
	for _, f := range cmd.Flags {
		names = append(names, f.Names()...)
	}
	return names
}

// Typed returns the command line without the program's name, in the order that [Order] puts
// it into.
func Typed(c *cli.Context) []string {
	lineage := c.Lineage()
	root := lineage[len(lineage)-2] // the last one is empty
	return root.Args().Slice()
}
