package main

import (
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
)

// checkPinPart refuses what cannot be said of a part of a pin.
func checkPinPart(c *cli.Context) error {
	switch output := c.String("output"); {
	case c.IsSet("check"):
		return hint.With(args.Usagef("--check and --only exclude each other"), "ggufreap verify --only I/N checks a part")
	case c.String("format") != formatPin:
		return args.Usagef("--format %s and --only exclude each other", c.String("format"))
	case output == "":
		return hint.With(args.Usagef("no folder given for the record"), "-o DIR names it; ggufreap assemble -o FILE DIR writes the pin once all parts are there")
	case output == "-" || gguf.IsModelFile(output):
		return args.Usagef("with --only, -o names the folder of the records, got %q", output)
	}
	return nil
}

// pinPart takes the digests of one part of a model's files, and leaves a record of them.
func pinPart(con *ui.Console, c *cli.Context, m *gguf.Model) error {
	share, err := shareOf(c)
	if err != nil {
		return err
	}
	o := pinOptions(c, m)
	pin, err := manifest.PinHeaders(m, o)
	if err != nil {
		return err
	}
	record, err := newPinRecord(share, pin, m)
	if err != nil {
		return err
	}
	folder, err := stage.OpenRecords(c.String("output"), record, share.Runner)
	if err != nil {
		return err
	}
	defer folder.Close()
	files := filesOf(m, share)
	found, redo := folder.Found()
	switch {
	case found != nil && !c.Bool("recheck"):
		con.Notef("pin: %s is there: nothing was read", text.Safe(filepath.Join(c.String("output"), parts.Name(share.Part, share.Parts))))
		return reportPinPart(con, c, found)
	case redo != "":
		con.Warnf("done again: %s", text.Safe(redo))
	}
	p := con.StartProgress("pin", 0)
	o.Progress = p.Set
	if pin, err = manifest.PinPart(c.Context, m, o, files); err != nil {
		return err
	}
	p.Finish()
	fillRecord(record, pin, m, files)
	if err := folder.Write(record); err != nil {
		return err
	}
	return reportPinPart(con, c, record)
}

// filesOf returns which files of a model a part has, by number from 0.
func filesOf(m *gguf.Model, share stage.Share) []int {
	costs := make([]int64, len(m.Files))
	for i, f := range m.Files {
		costs[i] = f.Size
	}
	return parts.Divide(costs, share.Parts)[share.Part-1]
}

// newPinRecord says which work a part of a pin belongs to.
func newPinRecord(share stage.Share, pin *manifest.Pin, m *gguf.Model) (*parts.Record, error) {
	structure, err := pin.StructureDigest()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range pin.Files {
		lines = append(lines, parts.FileLine(f.Name, f.Size, ""))
	}
	if far := hub.Of(m); far != nil {
		sources, err := far.Sources(m)
		if err != nil {
			return nil, err
		}
		lines = nil
		for _, s := range sources {
			lines = append(lines, parts.FileLine(s.Name, s.Size, s.Identity))
		}
	}
	record := parts.New(pin, []parts.Fact{
		{Name: "structure digest", Digest: structure},
		{Name: "metadata digest", Digest: pin.MetadataDigest},
		parts.FactOf("list of files", slices.Values(lines)),
	})
	record.Task, record.Program, record.Part, record.Parts = share.Task, share.Program, share.Part, share.Parts
	return record, nil
}

// fillRecord puts what was measured of some files into a record.
func fillRecord(record *parts.Record, pin *manifest.Pin, m *gguf.Model, files []int) {
	rest := pin.Tensors
	for i, f := range m.Files {
		if slices.Contains(files, i) {
			record.Add(i+1, pin.Files[i], rest[:len(f.Tensors)])
		}
		rest = rest[len(f.Tensors):]
	}
}

func reportPinPart(con *ui.Console, c *cli.Context, record *parts.Record) error {
	if c.Bool("json") {
		return record.Encode(con.Out)
	}
	describeRecord(con, record)
	con.Field("record", "%s", text.Safe(filepath.Join(c.String("output"), parts.Name(record.Part, record.Parts))))
	con.Field("next", "ggufreap assemble -o FILE %s, once all parts are there", text.Safe(filepath.Clean(c.String("output"))))
	return nil
}

// describeRecord prints which files a part has read, and their sums.
func describeRecord(con *ui.Console, record *parts.Record) {
	var bytes int64
	for _, f := range record.Files {
		bytes += f.Size
	}
	con.Field("part", "%d of %d: %s of %d, %s", record.Part, record.Parts, text.Count(len(record.Files), "shard"), record.Artifact.Shards, text.Size(bytes))
	for _, f := range record.Files {
		con.Field("sha256", "%s %s", f.SHA256, text.Safe(f.Name))
	}
}
