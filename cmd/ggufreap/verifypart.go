package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
	"ggufreap/manifest/verify"
)

// checkVerifyPart refuses what cannot be said of a part of the files.
func checkVerifyPart(c *cli.Context) error {
	if !c.IsSet("only") {
		if c.IsSet("output") {
			return args.Usagef("-o names the folder of a part's record: it is for --only")
		}
		return nil
	}
	for _, name := range []string{"source-pin", "source", "source-digest", "plan", "against", "fast", "complete", "signer", "identity", "oms-key", "oms-ca"} {
		if c.IsSet(name) {
			return hint.With(args.Usagef("--%s and --only exclude each other", name), "it is about all files: give it to a run without --only")
		}
	}
	return nil
}

// A verifiedPart is what one part of a verification comes to.
type verifiedPart struct {
	share  stage.Share
	record *parts.Record // nil where the headers of the model are not sound
	err    error
}

// only makes the options those of a part.
func (v *verifiedPart) only(c *cli.Context, o *verify.Options) error {
	var err error
	if v.share, err = shareOf(c); err != nil {
		return err
	}
	o.Only = func(sizes []int64) []int { return parts.Divide(sizes, v.share.Parts)[v.share.Part-1] }
	strict := "noted"
	if o.Strict {
		strict = "found"
	}
	o.Measured = func(m *gguf.Model, pin *manifest.Pin, files []int) {
		if v.record, v.err = newPinRecord(v.share, pin, m); v.err == nil {
			v.record.Facts = append(v.record.Facts, parts.FactOf("choice of what is found and what noted", slices.Values([]string{strict})))
			fillRecord(v.record, pin, m, files)
		}
	}
	return nil
}

// write leaves the record of the part in a folder.
func (v *verifiedPart) write(con *ui.Console, folder string, seen *verify.Report) error {
	switch {
	case v.err != nil:
		return v.err
	case v.record == nil:
		con.Warnf("no record was written: the model could not be taken apart into tensors")
		return nil
	}
	for _, f := range seen.Findings {
		v.record.Findings = append(v.record.Findings, parts.Finding{File: jsonText(f.File), What: jsonText(f.Text())})
	}
	records, err := stage.OpenRecords(folder, v.record, v.share.Runner)
	if err != nil {
		return err
	}
	defer records.Close()
	if err := records.Write(v.record); err != nil {
		return err
	}
	con.Notef("verify: the record is %s; ggufreap assemble %s, once all parts are there", text.Safe(filepath.Join(folder, parts.Name(v.share.Part, v.share.Parts))), text.Safe(folder))
	return nil
}

// jsonText returns text as a document can have it.
func jsonText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
