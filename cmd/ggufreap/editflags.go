package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
)

// editFlags are those that change metadata.
func editFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "`KEY=VALUE`: give a key this value, of the type that it has; KEY:TYPE=VALUE for another type (u32, str, bool, str[] and so on), lists as JSON, KEY=@FILE for what a file holds, KEY=@- for standard input (repeatable)"},
		&cli.StringSliceFlag{Name: "unset", Usage: "`KEY`: remove a key (repeatable)"},
		&cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: give a key another name (repeatable)"},
	}
}

// readChanges reads what the flags of editFlags ask for: first what is renamed, then what is
// removed, then what is set.
func readChanges(c *cli.Context, stdin io.Reader) ([]edit.Change, error) {
	var changes []edit.Change
	for _, pair := range c.StringSlice("rename") {
		old, key, ok := strings.Cut(pair, "=")
		if !ok || old == "" || key == "" {
			return nil, args.Usagef("--rename is %q, want OLD=NEW", pair)
		}
		changes = append(changes, edit.Change{Key: old, Rename: key})
	}
	for _, key := range c.StringSlice("unset") {
		changes = append(changes, edit.Change{Key: key})
	}
	streams := 0
	for _, pair := range c.StringSlice("set") {
		if strings.HasSuffix(pair, "=@"+files.Stdin) {
			streams++
		}
		if streams > 1 {
			return nil, args.Usagef("--set %s: standard input can be read once", text.Safe(pair))
		}
		change, err := readSet(pair, stdin)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, checkOnce(changes)
}

// checkOnce refuses a key that is set, removed or renamed twice: the later would undo the earlier
// in silence.
func checkOnce(changes []edit.Change) error {
	seen := map[string]bool{}
	for _, change := range changes {
		if seen[change.Key] {
			return args.Usagef("key %q is to be changed twice", change.Key)
		}
		seen[change.Key] = true
	}
	return nil
}

// readSet reads one value of --set.
func readSet(pair string, stdin io.Reader) (edit.Change, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return edit.Change{}, args.Usagef("--set is %q, want KEY=VALUE", pair)
	}
	set := &edit.Text{Data: value}
	if name, typ, typed := strings.Cut(key, ":"); typed {
		key, set.Type = name, typ
	}
	path, file := strings.CutPrefix(value, "@")
	switch {
	case strings.HasPrefix(path, "@"):
		set.Data = path // @@ for a text that begins with one
	case file:
		data, err := files.ReadInput(stdin, path)
		if err != nil {
			return edit.Change{}, err
		}
		set.Data = string(data)
	}
	return edit.Change{Key: key, Value: set}, nil
}

// applyChanges returns metadata with the given changes and what the flags ask for, and states
// which keys that were.
func applyChanges(c *cli.Context, md *gguf.Metadata, changes ...edit.Change) (*gguf.Metadata, []edit.Change, error) {
	asked, err := readChanges(c, c.App.Reader)
	if changes = append(changes, asked...); err != nil || len(changes) == 0 {
		return md, nil, err
	}
	was := md
	md, err = edit.Apply(was, changes, c.Bool("force"))
	switch {
	case errors.Is(err, edit.ErrMissing):
		return nil, nil, explainMissing(err, was, changes)
	case errors.Is(err, edit.ErrComputes):
		return nil, nil, hint.With(err, "--force changes it all the same")
	case err != nil:
		return nil, nil, explainType(err)
	}
	if !c.Bool("no-provenance-keys") {
		edit.State(md, changes)
	}
	return md, changes, nil
}

// explainMissing says what was meant with a key that is not there, or how it gets a type.
func explainMissing(err error, md *gguf.Metadata, changes []edit.Change) error {
	for _, change := range changes {
		if _, there := md.Get(change.Key); there {
			continue
		}
		if near := args.Closest(change.Key, md.Keys()); near != "" {
			return hint.With(err, "did you mean %q?", near)
		}
		if change.Value == nil {
			return hint.With(err, "ggufreap inspect --keys MODEL lists all keys")
		}
	}
	return explainType(err)
}

// explainType adds how a type is stated.
func explainType(err error) error {
	if s := err.Error(); strings.Contains(s, "nothing says what type") || strings.Contains(s, "is not a type of value") {
		return hint.With(err, "--set KEY:TYPE=VALUE states a type: u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, bool, str, or one of them with [] for a list")
	}
	return fmt.Errorf("changing metadata: %w", err)
}
