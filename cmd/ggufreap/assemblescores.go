package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
)

// assembleScores adds up the parts of a calibration, of which one is named, and writes the
// scores beside them.
func assembleScores(con *ui.Console, c *cli.Context, named string) error {
	if c.IsSet("output") || c.Bool("recheck") {
		return args.Usagef("-o and --recheck are not for parts of scores, which are read whole and joined beside them")
	}
	paths, _, _ := calibration.Siblings(named)
	task := "calibrate"
	a := &assembly{Schema: "ggufreap/assembly/v1", Folder: document.Text(filepath.Dir(named)), Task: &task, Parts: len(paths)}
	missing, err := absent(c.Context, paths, c.Duration("wait"))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		a.Array = parts.Array(missing)
		for _, number := range missing {
			a.Again = append(a.Again, againDocument{number, document.Text(filepath.Base(paths[number-1]) + ": is not there")})
		}
		return a.report(con, c)
	}
	j, m, err := calibration.Join(c.Context, paths, nil)
	if err != nil {
		return err
	}
	npz, scores, err := calibration.EncodeJoined(j, m)
	if err != nil {
		return err
	}
	output, _, _ := calibration.ParsePartName(named)
	if err := a.writeScores(c, output, npz, scores, paths); err != nil {
		return err
	}
	if c.Bool("json") {
		return con.JSON(a)
	}
	con.Field("parts", "%d, of %s", a.Parts, task)
	con.Field("measured", "%s", text.Count(m.Tokens, "token"))
	for _, note := range m.Notes {
		con.Field("note", "%s", text.Safe(note))
	}
	con.Field("written", "%s", text.Safe(output+".npz"))
	con.Field("", "%s", text.Safe(output+".json"))
	return nil
}

// writeScores writes both forms of scores that were joined.
func (a *assembly) writeScores(c *cli.Context, output string, npz, scores []byte, sources []string) error {
	for _, file := range []struct {
		path string
		data []byte
	}{{output + ".npz", npz}, {output + ".json", scores}} {
		if _, err := files.Write(file.path, c.Bool("force"), sources, files.Bytes(file.data)); err != nil {
			return err
		}
		sum := manifest.Sum(sha256.Sum256(file.data))
		a.Files = append(a.Files, fileDocument{document.Text(filepath.Base(file.path)), int64(len(file.data)), sum.String()})
	}
	a.Joined = true
	return nil
}

// absent returns the numbers, from 1, of files that are not there, also when they are asked
// for again until wait is over.
func absent(ctx context.Context, paths []string, wait time.Duration) ([]int, error) {
	for until := time.Now().Add(wait); ; {
		var missing []int
		for i, path := range paths {
			f, err := os.Open(path) // a network file system may answer for a name from memory
			switch {
			case err == nil:
				f.Close()
			case errors.Is(err, fs.ErrNotExist):
				missing = append(missing, i+1)
			default:
				return nil, err
			}
		}
		if len(missing) == 0 || !time.Now().Before(until) {
			return missing, nil
		}
		select {
		case <-time.After(min(time.Second, time.Until(until))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
