package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
)

// typeFlag teaches the block size of a type that the program does not know.
func typeFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "type", Usage: "`ID=B/E+R`: the size of a type that this program does not know: B bytes for E elements, and R bytes more for each row if it has any (repeatable)"}
}

// openArtifact opens the artifact that the arguments name: one path, or several files
// in any order. The caller closes the model.
func openArtifact(con *ui.Console, c *cli.Context) (*gguf.Model, error) {
	if c.NArg() == 0 {
		return nil, hint.With(args.Usagef("no model given"), "ggufreap %s MODEL.gguf", c.Command.Name)
	}
	return openPaths(con, c, c.Args().Slice()...)
}

// openPaths opens the artifact that one path or address names, or several files are. The
// caller closes the model.
func openPaths(con *ui.Console, c *cli.Context, paths ...string) (*gguf.Model, error) {
	options, err := typeOptions(c.StringSlice("type"))
	if err != nil {
		return nil, err
	}
	far := 0
	for _, path := range paths {
		if remote.IsAddress(path) {
			far++
		} else if err := checkModelPath(path); err != nil {
			return nil, err
		}
	}
	switch {
	case far > 0 && far < len(paths):
		return nil, args.Usagef("a model is in files of this machine or at addresses, not both")
	case far > 0:
		return openAddresses(con, c, paths, options)
	case len(paths) == 1:
		return openPath(con, paths[0], options)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, hint.With(args.Usagef("%s is a folder: several arguments are the files of one model", text.Safe(path)), "one folder, or one model, at a time")
		}
	}
	return gguf.OpenFiles(paths, options...)
}

// checkNamed refuses "-" in place of a model or a folder.
func checkNamed(what, path string) error {
	if path == files.Stdin {
		return hint.With(args.Usagef("%s cannot be read from standard input", what), "name its file or folder; one that is called - is ./-")
	}
	return nil
}

// checkModelPath refuses what cannot be a model, whose parts are read in any order.
func checkModelPath(path string) error {
	if err := checkNamed("a model", path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if scheme, _, far := strings.Cut(path, "://"); far && err != nil {
		return hint.With(args.Usagef("%s: addresses of %q are not read, want hf://, https:// or http://", text.Safe(remote.Redacted(path)), scheme),
			"rclone serve http makes what it can read readable here")
	}
	if err != nil || info.IsDir() || info.Mode().IsRegular() {
		return nil // to open it says what is wrong, if anything is
	}
	return args.Usagef("%s is neither a file nor a folder: a model cannot be read from a pipe or a device", text.Safe(path))
}

// openPath opens what a path of this machine names, and says what of a folder was set aside.
func openPath(con *ui.Console, path string, options []gguf.Option) (*gguf.Model, error) {
	m, err := gguf.Open(path, options...)
	if _, ok := errors.AsType[*gguf.FormatError](err); ok {
		err = filekind.ExplainFile(err, path, filekind.Model)
	}
	if err != nil {
		return nil, cmp.Or(checkSettled(path), err)
	}
	if err := checkSettled(m.Paths()...); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	for _, j := range m.Joined() {
		con.Notef("%s: read from %s, in this order: %s", text.Safe(j.File), text.Count(len(j.Pieces), "piece"), pieceNames(j.Pieces))
	}
	if n := len(m.Pointers); n > 0 {
		con.Warnf("%s: Git LFS pointers in place of %s; git lfs pull, in their folder, fetches what they stand for", text.Safe(path), text.Count(n, "file"))
	}
	noteAside(con, m)
	return m, nil
}

// noteAside says what of a folder was set aside.
func noteAside(con *ui.Console, m *gguf.Model) {
	for _, a := range m.Aside {
		con.Notef("%s: set aside, of the kind %s: goes beside a model and is no part of it", text.Safe(a.File), a.Kind)
	}
}

// checkWhole refuses a model that lies there in pieces, for llama.cpp, which reads files.
func checkWhole(m *gguf.Model) error {
	list := m.Joined()
	if len(list) == 0 {
		return nil
	}
	words := append([]string{"cat"}, list[0].Pieces...)
	return hint.With(fmt.Errorf("%s: llama.cpp cannot read a file in pieces", text.Safe(list[0].File)), "%s > %s joins them", args.CommandLine(words), args.ShellQuote(list[0].File))
}

// pieceNames lists pieces of a file by their base names; of many the first and the last.
func pieceNames(paths []string) string {
	const most = 8
	var names []string
	for _, path := range paths {
		names = append(names, text.Safe(filepath.Base(path)))
	}
	if len(names) > most {
		names = slices.Concat(names[:most-1], []string{"...", names[len(names)-1]})
	}
	return strings.Join(names, ", ")
}

// openAddresses opens an artifact that is not on this machine.
func openAddresses(con *ui.Console, c *cli.Context, addresses []string, options []gguf.Option) (*gguf.Model, error) {
	fetch, err := readFetch(c)
	if err != nil {
		return nil, err
	}
	expectConnections(cmp.Or(fetch.Connections, remote.DefaultConnections))
	folder, name, err := hub.Open(c.Context, con, fetch, addresses...)
	if err != nil {
		return nil, err
	}
	m, err := gguf.OpenFolder(folder, name, options...)
	if err != nil {
		return nil, errors.Join(hub.Explain(err), folder.Close())
	}
	noteAside(con, m)
	if len(addresses) == 1 && strings.Contains(addresses[0], "?") && !m.Complete() {
		con.Notef("not all shards came: where the signature in the address is that of one file, give the addresses of all %s", text.Count(m.Shards, "shard"))
	}
	return m, nil
}

// typeOptions reads the values of --type: ID=BYTES/ELEMENTS or ID=BYTES/ELEMENTS+ROW.
func typeOptions(values []string) ([]gguf.Option, error) {
	var options []gguf.Option
	for _, s := range values {
		t, info, ok := parseTypeSize(s)
		if !ok {
			return nil, hint.With(args.Usagef("--type is %q, want ID=BYTES/ELEMENTS, or ID=BYTES/ELEMENTS+ROW", s), "a type whose id is 64 and that stores 256 elements in 46 bytes: --type 64=46/256")
		}
		if known, ok := t.Info(); ok && (known.Bytes != info.Bytes || known.Elements != info.Elements || known.Row != info.Row) {
			return nil, hint.With(args.Usagef("--type is %q, but type %d is %s, which is %d=%s", s, t, t, t, sizeOfType(known)),
				"--type is for types that are shown as unknown(ID)")
		}
		options = append(options, gguf.WithType(t, info))
	}
	return options, nil
}

// sizeOfType spells the size of a type as --type takes it.
func sizeOfType(info gguf.TypeInfo) string {
	size := fmt.Sprintf("%d/%d", info.Bytes, info.Elements)
	if info.Row > 0 {
		size += fmt.Sprintf("+%d", info.Row)
	}
	return size
}

func parseTypeSize(s string) (gguf.Type, gguf.TypeInfo, bool) {
	const most = 1 << 20 // of bytes or elements in a block
	id, size, _ := strings.Cut(s, "=")
	bytes, rest, _ := strings.Cut(size, "/")
	elements, row, more := strings.Cut(rest, "+")
	if !more {
		row = "0"
	}
	n, err := strconv.ParseUint(id, 10, 32)
	b, errB := strconv.ParseInt(bytes, 10, 64)
	e, errE := strconv.ParseInt(elements, 10, 64)
	r, errR := strconv.ParseUint(row, 10, 20)
	if err != nil || errB != nil || errE != nil || errR != nil || b < 1 || b > most || e < 1 || e > most {
		return 0, gguf.TypeInfo{}, false
	}
	t := gguf.Type(n)
	return t, gguf.TypeInfo{Name: t.String(), Elements: e, Bytes: b, Row: int64(r)}, true
}

// jsonFlag is that of the commands whose answer is a document too.
func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print a JSON document"} }

// readersFlag is that of the commands that read whole files.
func readersFlag() cli.Flag {
	return &cli.IntFlag{Name: "workers", Usage: "`N`: files read at once (two for each processor)"}
}

// inputs are the files of a model and those that flags name, which no output may replace.
func inputs(c *cli.Context, m *gguf.Model) []string { return append(m.OnDisk(), typedInputs(c)...) }

// typedInputs are the files that flags name.
func typedInputs(c *cli.Context) []string {
	var paths []string
	for _, flag := range []string{"plan", "source-pin", "pin", "check", "always-keep", "compare", "license-file", "ssh-key", "key"} {
		paths = append(paths, c.String(flag))
	}
	paths = slices.Concat(paths, c.StringSlice("from"), c.StringSlice("evidence"))
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" || files.IsStream(path) })
}
