package args

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// anApp has flags of all kinds.
func anApp() *cli.App {
	return &cli.App{Commands: []*cli.Command{
		{Name: "take", Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"},
			&cli.StringFlag{Name: "list", Usage: "read `FILE`"},
			&cli.StringFlag{Name: "keep"},
			&cli.StringSliceFlag{Name: "type"},
			OneOf(&cli.StringFlag{Name: "mode"}, "a", "b"),
		}},
		{Name: "other", Flags: []cli.Flag{&cli.StringFlag{Name: "key"}}},
	}}
}

func TestOrder(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "",
		"--help":                            "--help",
		"take":                              "take",
		"take m":                            "take m",
		"take m --json":                     "take --json m",
		"-q take m":                         "take -q m",
		"-q other m":                        "other m",
		"other --quiet m --key -q":          "other --key -q m",
		"other -- -q":                       "other -- -q",
		"-o dir --json take m n -q":         "take -o dir --json -q m n",
		"-o take take m":                    "take -o take m",
		"take m -output dir n":              "take -output dir m n",
		"take --output=a m":                 "take --output=a m",
		"take m --json -- -x --json":        "take --json -- m -x --json",
		"take -- m":                         "take m",
		"take -- --":                        "take -- --",
		"take - -o -":                       "take -o - -",
		"take m -o":                         "take -o", // so that the value is missed
		"take m -o --json":                  "take -o --json m",
		"take m --jsn x":                    "take --jsn m x",
		"--key k other m":                   "other --key k m",
		"take -qo f m":                      "take -q -o f m",
		"take -of m":                        "take -o f m",
		"take -qo=f m":                      "take -q -o f m",
		"-qof take m":                       "take -q -o f m",
		"-qo f take m":                      "take -q -o f m",
		"take -keep 4 -ouput f m":           "take -keep 4 -ouput f m", // a slip, not "-o uput"
		"take -qx m":                        "take -qx m",
		"take -o -qo m":                     "take -o -qo m",
		"take m -- -qo":                     "take -- m -qo",
		"other --quiet=true -q=no m":        "other m",
		"take -o /dev/stdout m":             "take -o - m",
		"take --output=/dev/fd/1 m":         "take --output=- m",
		"take -o /dev/stdin /dev/stdin":     "take -o /dev/stdin -",
		"take --list /dev/stdin m":          "take --list - m",
		"take --list=/proc/self/fd/0 m":     "take --list=- m",
		"take --list /dev/stdout m":         "take --list /dev/stdout m",
		"take --keep /dev/stdin m":          "take --keep /dev/stdin m",
		"-- take m":                         "-- take m",
		"frob m --json":                     "frob m --json",
		"-q frob m":                         "frob -q m",
		"take --type a m --type b --type a": "take --type a --type b --type a m",
		"take --json m --json -q -q":        "take --json -q m",
		"take --mode a m --keep 4 -q n":     "take --mode a --keep 4 -q m n",
		"take m --json=off -q=on":           "take --json=false -q=true m",
		"take m --json=of --keep=off":       "take --json=of --keep=off m",
	} {
		got, err := Order(anApp(), strings.Fields(line))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, %v, want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"take --keep 4 m --keep 4":      `--keep takes one value and is given two, "4" and "4"`,
		"-o a take m --output=b":        `--output takes one value and is given two, "a" and "b"`,
		"take --mode a --mode b":        `--mode takes one value and is given two`,
		"take --json=true --json=false": `--json takes one value and is given two`,
	} {
		if got, err := Order(anApp(), strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", line, got, err, want)
		}
	}
}

// FuzzOrder reads what was put in order by package flag, and wants all arguments, and each
// flag's last value, as a second reader of the line as it was typed finds them.
func FuzzOrder(f *testing.F) {
	for _, line := range []string{"take m --json -o x", "-o a take - -- --json", "take --type a -q --type=b m -- -o", "take -o", "-x take m=1 --", "take --keep=4 --mode a  m", "-\x9a", "take -q\xffo x", "take m -oj", "take -qoFILE m", "take -qo x -q=0"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		words := strings.Split(typed, " ")
		app := anApp()
		got, err := Order(app, words)
		if err != nil || len(got) == 0 || got[0] != "take" {
			return
		}
		set := flag.NewFlagSet("take", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		for _, fl := range app.Command("take").Flags {
			if err := fl.Apply(set); err != nil {
				t.Fatal(err)
			}
		}
		if set.Parse(got[1:]) != nil {
			return // said to the user
		}
		values, arguments := readTyped(words)
		if !slices.Equal(set.Args(), arguments) {
			t.Errorf("%q became %q: arguments %q, want %q", words, got, set.Args(), arguments)
		}
		set.Visit(func(f *flag.Flag) {
			if name := longName(f.Name); name != "type" && f.Value.String() != values[name] {
				t.Errorf("%q became %q: --%s is %q, want %q", words, got, name, f.Value, values[name])
			}
			delete(values, longName(f.Name))
		})
		if len(values) > 0 {
			t.Errorf("%q became %q: %q are lost", words, got, values)
		}
	})
}

// readTyped reads a line of the command take with flags anywhere, word by word.
func readTyped(words []string) (values map[string]string, arguments []string) {
	values = map[string]string{}
	words = slices.Clone(words)
	seen := false
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--" {
			return values, append(arguments, words...)
		}
		if len(word) < 2 || word[0] != '-' {
			if seen {
				arguments = append(arguments, word)
			}
			seen = true
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		switch letter := name[:min(1, len(name))]; {
		case word[1] == '-' || len(name) < 2 || name == "quiet" || name == "output":
		case letter == "q": // the next short flag follows in the word
			values["quiet"], words = "true", append([]string{"-" + word[2:]}, words...)
			continue
		case letter == "o": // its value
			name, value, joined = letter, strings.TrimPrefix(word[2:], "="), true
		}
		name = longName(name)
		switch {
		case joined:
		case name == "json" || name == "quiet":
			value = "true"
		case len(words) > 0:
			value, words = words[0], words[1:]
		}
		if name == "json" || name == "quiet" {
			value = map[bool]string{true: "true", false: "false"}[!strings.ContainsAny(value, "0fF")]
		}
		values[name] = value
	}
	return values, arguments
}

func longName(name string) string {
	switch name {
	case "q":
		return "quiet"
	case "o":
		return "output"
	}
	return name
}
