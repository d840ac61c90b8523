package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/page"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap/picture"
)

const reportHelp = `Draw a plan, scores, a pin or a release: one HTML file that needs nothing else.

Usage:
  ggufreap report [flags] -o FILE PLAN|SCORES|PIN|RELEASE|MODEL

The page has no script and loads nothing. It reads on a phone, in the dark and
on paper; every picture has its numbers in a table. Drawn is what is known:
which experts are kept; with scores, their heat map with the cut, the share of
the score that is kept for every keep count, how uneven experts are, and ties;
with a second plan, how far both agree; bytes by kind before and after; shards.

Scores come from --scores, or from the file that the plan was made of, where it
lies beside it; for a plan by a proxy, from the routers of --model. Programs get
such numbers from "plan --explain --json" and "inspect --json".

Flags:

Examples:
  ggufreap report -o plan.html --model K3-00001-of-00009.gguf plan.json
  ggufreap report -o scores.html --keep 568 --png pictures saliency.json
  ggufreap report -o release.html K3-REAP568
`

func reportCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "draw a plan, scores, a pin or a release as a page",
		Description: reportHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the page to `FILE`"},
			&cli.StringFlag{Name: "png", Usage: "`DIR`: write the pictures there too, as PNG and SVG"},
			&cli.BoolFlag{Name: "force", Usage: "replace files that exist"},
			&cli.StringFlag{Name: "model", Usage: "`MODEL`: the model of a plan or of scores"},
			&cli.StringFlag{Name: "scores", Usage: "`FILE`: the scores that a plan was made of, or others"},
			&cli.StringFlag{Name: "criterion", Usage: "`NAME`: how scores rank (the first that they allow)"},
			&cli.IntFlag{Name: "keep", Usage: "draw the cut of scores at `N` experts in each layer"},
			&cli.StringFlag{Name: "compare", Usage: "`PLAN`: draw how far it agrees"},
			&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: the pin of a release's source, for the bytes before"},
			typeFlag(),
		}, progressFlags(con), fetchFlags()),
		Action: func(c *cli.Context) error { return reportAction(con, c) },
	}
}

func reportAction(con *ui.Console, c *cli.Context) error {
	output := c.String("output")
	switch {
	case c.NArg() != 1:
		return hint.With(args.Usagef("report takes one plan, score file, pin or release, got %d", c.NArg()), "ggufreap report -o report.html PLAN")
	case output == "":
		return hint.With(args.Usagef("nothing says where the page goes"), "-o report.html")
	}
	s, err := readSubject(con, c)
	if err != nil {
		return err
	}
	defer s.close()
	pictures, err := s.pictures(con, c)
	if err != nil {
		return err
	}
	if err := files.CheckDistinct(append(picturePaths(c, pictures), output)...); err != nil {
		return err
	}
	p, err := s.page(pictures)
	if err != nil {
		return err
	}
	if output == files.Stdin {
		if err := writePictures(c, pictures, s.paths(c)); err != nil {
			return err
		}
		return p.Write(con.Out)
	}
	size, err := files.Write(output, c.Bool("force"), s.paths(c), p.Write)
	if err != nil {
		return err
	}
	if err := writePictures(c, pictures, s.paths(c)); err != nil {
		return err
	}
	describePictures(con, s.title, pictures)
	con.Field("written", "%s, %s", text.Safe(output), text.Size(size))
	return nil
}

func describePictures(con *ui.Console, title string, pictures []*picture.Picture) {
	con.Field("about", "%s", text.Safe(title))
	con.Field("pictures", "%d", len(pictures))
	for _, x := range pictures {
		con.Field("", "%s", text.Safe(x.Title))
	}
}

// page is the page with the pictures.
func (s *subject) page(pictures []*picture.Picture) (*page.Page, error) {
	p := &page.Page{Title: s.title, Lead: s.lead, Facts: s.facts, Foot: "Made by ggufreap report. The page loads nothing and runs nothing."}
	for _, x := range pictures {
		drawn, err := x.Fragment()
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, page.Section{ID: x.Name, Title: x.Title, About: x.About, Picture: drawn, Columns: x.Columns, Rows: x.Rows})
	}
	return p, nil
}

// picturePaths are the files that writePictures writes.
func picturePaths(c *cli.Context, pictures []*picture.Picture) []string {
	var paths []string
	if dir := c.String("png"); dir != "" {
		for _, x := range pictures {
			paths = append(paths, filepath.Join(dir, x.Name+".png"), filepath.Join(dir, x.Name+".svg"))
		}
		paths = append(paths, dir)
	}
	return paths
}

// writePictures writes each picture as PNG and SVG to the folder of --png.
func writePictures(c *cli.Context, pictures []*picture.Picture, sources []string) error {
	dir := c.String("png")
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, x := range pictures {
		for _, form := range []struct {
			end  string
			draw func() ([]byte, error)
		}{{"png", x.PNG}, {"svg", x.SVG}} {
			drawn, err := form.draw()
			if err != nil {
				return fmt.Errorf("%s: %w", x.Name, err)
			}
			if _, err := files.Write(filepath.Join(dir, x.Name+"."+form.end), c.Bool("force"), sources, files.Bytes(drawn)); err != nil {
				return err
			}
		}
	}
	return nil
}
