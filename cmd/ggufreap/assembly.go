package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// An assembly is what came of joining parts, and the document of --json.
type assembly struct {
	Schema        string            `json:"schema"`
	Folder        document.Text     `json:"folder"`
	Task          *string           `json:"task"` // null where no record is left
	Parts         int               `json:"parts"`
	Joined        bool              `json:"joined"`
	Again         []againDocument   `json:"again"`
	Array         string            `json:"array"`
	PinDigest     *string           `json:"pin_digest"`
	WeightsDigest *string           `json:"weights_digest"`
	Files         []fileDocument    `json:"files"`
	Findings      []findingDocument `json:"findings"`

	pin     *manifest.Pin
	written string // the pin's file
}

type againDocument struct {
	Part int           `json:"part"`
	Why  document.Text `json:"why"`
}

type findingDocument struct {
	File document.Text `json:"file"`
	What document.Text `json:"what"`
}

type fileDocument struct {
	File   document.Text `json:"file"`
	Size   int64         `json:"size"`
	SHA256 string        `json:"sha256"`
}

// report prints the outcome, and turns parts to be done again into the exit code.
func (a *assembly) report(con *ui.Console, c *cli.Context) error {
	if a.pin != nil {
		pin, weights := a.pin.PinDigest.String(), a.pin.WeightsDigest.String()
		a.PinDigest, a.WeightsDigest = &pin, &weights
		for _, f := range a.pin.Files {
			a.Files = append(a.Files, fileDocument{document.Text(f.Name), f.Size, f.SHA256.String()})
		}
	}
	switch {
	case c.Bool("json"):
		if err := con.JSON(a); err != nil {
			return err
		}
	case !a.Joined:
		a.describeMissing(con, c.Bool("recheck"))
	case a.pin == nil:
		con.Field("folder", "%s is joined already", text.Safe(filepath.Clean(string(a.Folder))))
	default:
		con.Field("parts", "%d, of %s", a.Parts, *a.Task)
		con.Field("files", "%s, %s", text.Files(len(a.pin.Files)), text.Size(a.pin.Artifact.FileBytes))
		con.Field("pin digest", "%s", a.pin.PinDigest)
		con.Field("weights digest", "%s", a.pin.WeightsDigest)
		a.describeEnd(con)
	}
	if !a.Joined || len(a.Findings) > 0 {
		return errDiffers
	}
	return nil
}

// describeEnd says what was written, or found.
func (a *assembly) describeEnd(con *ui.Console) {
	folder := text.Safe(filepath.Clean(string(a.Folder)))
	switch {
	case *a.Task == "verify":
		a.describeFindings(con)
	case *a.Task != "pin":
		con.Field("written", "%s", folder)
	case a.written == "":
		con.Field("written", "nothing; -o FILE writes the pin")
	default:
		con.Field("written", "%s; the records stay in %s", text.Safe(a.written), folder)
	}
}

// describeFindings lists what parts of a verification have found.
func (a *assembly) describeFindings(con *ui.Console) {
	const most = 50
	for _, f := range a.Findings[:min(len(a.Findings), most)] {
		place := ""
		if f.File != "" {
			place = text.Safe(string(f.File)) + ": "
		}
		con.Field("found", "%s%s", place, text.Safe(string(f.What)))
	}
	if more := len(a.Findings) - most; more > 0 {
		con.Field("", "and %s more; --json lists them", text.Count(more, "finding"))
	}
	result := "nothing found"
	if len(a.Findings) > 0 {
		result = con.Paint(ui.Red, text.Count(len(a.Findings), "finding"))
	}
	con.Field("result", "%s, all %d parts together", result, a.Parts)
}

// describeMissing lists what is to be submitted again.
func (a *assembly) describeMissing(con *ui.Console, rechecked bool) {
	const most = 20
	con.Field("parts", "%s to be done again, nothing was written", ofAll(len(a.Again), a.Parts))
	for _, again := range a.Again[:min(len(a.Again), most)] {
		con.Field(fmt.Sprintf("part %d", again.Part), "%s", text.Safe(string(again.Why)))
	}
	if more := len(a.Again) - most; more > 0 {
		con.Field("more", "%s", text.Count(more, "part"))
	}
	con.Field("again", "--array=%s", a.Array)
	if rechecked {
		con.Field("", "with --recheck, where a record is there: without it a task looks at sizes alone")
	}
}

func ofAll(n, all int) string {
	if n == 1 {
		return fmt.Sprintf("1 of %d is", all)
	}
	return strings.Join([]string{text.Grouped(n), "of", text.Grouped(all), "are"}, " ")
}
