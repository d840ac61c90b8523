package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// typeFlag teaches the block size of a type that the program does not know.
func typeFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "type", Usage: "`ID=B/E`: teach a type: B bytes store E elements (repeatable)"}
}

// openArtifact opens the artifact that the arguments name: one path, or several files
// in any order. The caller closes the model.
func openArtifact(c *cli.Context) (*gguf.Model, error) {
	if c.NArg() == 0 {
		return nil, hint.With(args.Usagef("no artifact given"), "ggufreap %s MODEL.gguf", c.Command.Name)
	}
	return openPaths(c, c.Args().Slice()...)
}

// openPaths opens the artifact that one path names, or several files are. The caller
// closes the model.
func openPaths(c *cli.Context, paths ...string) (*gguf.Model, error) {
	options, err := typeOptions(c.StringSlice("type"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 1 {
		return gguf.Open(paths[0], options...)
	}
	return gguf.OpenFiles(paths, options...)
}

// typeOptions reads the values of --type: ID=BYTES/ELEMENTS.
func typeOptions(values []string) ([]gguf.Option, error) {
	var options []gguf.Option
	for _, s := range values {
		t, info, ok := parseTypeSize(s)
		if !ok {
			return nil, hint.With(args.Usagef("--type is %q, want ID=BYTES/ELEMENTS", s), "a type whose id is 64 and that stores 256 elements in 46 bytes: --type 64=46/256")
		}
		if known, ok := t.Info(); ok && (known.Bytes != info.Bytes || known.Elements != info.Elements) {
			return nil, hint.With(args.Usagef("--type is %q, but type %d is %s, of which %s store %s", s, t, t, text.Count(known.Bytes, "byte"), text.Count(known.Elements, "element")),
				"--type is for types that are shown as unknown(ID)")
		}
		options = append(options, gguf.WithType(t, info))
	}
	return options, nil
}

func parseTypeSize(s string) (gguf.Type, gguf.TypeInfo, bool) {
	const most = 1 << 20 // of bytes or elements in a block
	id, size, _ := strings.Cut(s, "=")
	bytes, elements, _ := strings.Cut(size, "/")
	n, err := strconv.ParseUint(id, 10, 32)
	b, errB := strconv.ParseInt(bytes, 10, 64)
	e, errE := strconv.ParseInt(elements, 10, 64)
	if err != nil || errB != nil || errE != nil || b < 1 || b > most || e < 1 || e > most {
		return 0, gguf.TypeInfo{}, false
	}
	t := gguf.Type(n)
	return t, gguf.TypeInfo{Name: t.String(), Elements: e, Bytes: b}, true
}

// jsonFlag is that of the commands whose answer is a document too.
func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print a JSON document"} }

// readersFlag is that of the commands that read whole files.
func readersFlag() cli.Flag {
	return &cli.IntFlag{Name: "workers", Usage: "`N`: files read at once (two for each processor)"}
}
