package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/repair"
)

const repairHelp = `Replace the bytes of a model that are wrong, and no others.

Usage:
  ggufreap repair [flags] --from ADDRESS|FOLDER DIR

DIR has the files of a model, some of them damaged, cut off or missing. The good
copy is at an address or in a folder, and has the same files. Which bytes are
wrong a pin tells, to the expert: one wrong byte costs one expert of one tensor.
Without --pin, DIR/pin.json.zst is that pin, if it is there. Otherwise sums tell
which files are wrong, and those are replaced whole: the sums that the hub
lists, or else DIR/MANIFEST.sha256.

What is fetched is written into the file and compared before it counts. A run
that was ended goes on when it is started again: REPAIR.jsonl in DIR says where.
When all is done, the sums of the files that were written to are taken.

Flags:

Exit codes:
  0  nothing was wrong, or all is right now
  1  with --dry-run, something is wrong
  2  the request could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap repair --from hf://org/K3 --pin K3.pin.json.zst K3
  ggufreap repair --from /mnt/backup/K3 K3
  ggufreap repair --from hf://org/K3 --dry-run K3
`

func repairCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "repair",
		Usage:       "replace the wrong bytes of a model, and no others",
		Description: repairHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "`ADDRESS` or folder of a good copy"},
			&cli.StringFlag{Name: "pin", Usage: "`FILE`: the pin that says what is right (pin.json.zst in DIR, if it has one)"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what is wrong and what would be fetched, and stop"},
			readersFlag(),
			jsonFlag(),
			typeFlag(),
		}, progressFlags(con), fetchFlags()),
		Action: func(c *cli.Context) error { return repairAction(con, c) },
	}
}

func repairAction(con *ui.Console, c *cli.Context) error {
	switch {
	case c.NArg() != 1:
		return hint.With(args.Usagef("repair takes one folder, got %d", c.NArg()), "ggufreap repair --from ADDRESS DIR")
	case c.String("from") == "":
		return hint.With(args.Usagef("nothing says where a good copy is"), "ggufreap repair --from ADDRESS DIR")
	}
	if err := checkNamed("a folder", c.Args().First()); err != nil {
		return err
	}
	good, err := openPaths(con, c, c.String("from"))
	if err != nil {
		return err
	}
	defer good.Close()
	job, err := repairJob(c, good)
	if err != nil {
		return err
	}
	damage, err := findDamage(con, c, job, good.FileBytes())
	if err != nil {
		return err
	}
	wrong := damage.Bytes()
	if !c.Bool("json") {
		describeDamage(con, job, damage)
	}
	if !c.Bool("dry-run") && wrong+int64(len(damage.Ranges)) > 0 {
		if err := mendDamage(con, c, job, damage, wrong); err != nil {
			return err
		}
	}
	return reportRepair(con, c, good, damage, wrong)
}

func findDamage(con *ui.Console, c *cli.Context, job *repair.Job, bytes int64) (*repair.Damage, error) {
	checked := con.StartProgress("compare", bytes)
	job.Checked = checked.Set
	damage, err := repair.Find(c.Context, job)
	checked.Finish()
	if errors.Is(err, repair.ErrInUse) {
		err = hint.With(err, "wait for it to end")
	}
	return damage, err
}

func mendDamage(con *ui.Console, c *cli.Context, job *repair.Job, damage *repair.Damage, wrong int64) error {
	fetched := con.StartProgress("repair", wrong)
	job.Checked, job.Fetched = nil, fetched.Set
	err := damage.Mend(c.Context)
	fetched.Finish()
	if err != nil {
		return hint.With(err, "what is done is noted in %s; the same command goes on", text.Safe(filepath.Join(job.Dir, repair.JournalName)))
	}
	return nil
}

// checkJoined refuses a folder in which a file lies in pieces: the whole would be fetched again
// beside them.
func checkJoined(dir string, good *gguf.Model) error {
	for _, j := range gguf.PiecesIn(dir) {
		if slices.ContainsFunc(good.Paths(), func(path string) bool { return filepath.Base(path) == filepath.Base(j.File) }) {
			words := append([]string{"cat"}, j.Pieces...)
			return hint.With(fmt.Errorf("%s: lies there in %s, and repair writes to whole files", text.Safe(j.File), text.Count(len(j.Pieces), "piece")), "%s > %s joins them", args.CommandLine(words), args.ShellQuote(j.File))
		}
	}
	return nil
}

// repairJob gathers what says which bytes are right.
func repairJob(c *cli.Context, good *gguf.Model) (*repair.Job, error) {
	job := &repair.Job{Dir: c.Args().First(), Good: good, Workers: c.Int("workers"), Identity: c.String("from"), DryRun: c.Bool("dry-run")}
	if info, err := os.Stat(job.Dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, args.Usagef("repair takes the folder of the files, got the file %q", job.Dir)
	}
	if err := checkJoined(job.Dir, good); err != nil {
		return nil, err
	}
	far := hub.Of(good)
	if far != nil {
		job.Identity = far.Identity()
	}
	var err error
	path := c.String("pin")
	if path == "" {
		path = filepath.Join(job.Dir, manifest.PinName)
	}
	job.Pin, err = files.ReadPin(c.App.Reader, path)
	if !errors.Is(err, fs.ErrNotExist) || c.IsSet("pin") {
		return job, err
	}
	if job.Sums, err = repairSums(job, far, good); err != nil {
		return nil, hint.With(err, "--pin FILE says what is right, to the expert; ggufreap pin makes one of a good copy")
	}
	return job, nil
}

// repairSums returns the sums of the files that the hub lists, or that stand in the folder.
func repairSums(job *repair.Job, far *hub.Folder, good *gguf.Model) (map[string]manifest.Sum, error) {
	sums := map[string]manifest.Sum{}
	if far != nil {
		stated, err := far.SHA256(good)
		if err != nil {
			return nil, err
		}
		for i, f := range good.Files {
			if stated[i] != (manifest.Sum{}) {
				sums[filepath.Base(f.Name)] = stated[i]
			}
		}
		if len(sums) == len(good.Files) {
			return sums, nil
		}
	}
	file, err := os.Open(filepath.Join(job.Dir, manifest.SumsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: nothing says what its bytes should be: it has neither a %s nor a %s, and the good copy no listing with sums", job.Dir, manifest.PinName, manifest.SumsName)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	listed, err := lists.ReadSums(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	for _, s := range listed {
		sums[s.Name] = s.SHA256
	}
	return sums, nil
}

// describeDamage prints what is wrong.
func describeDamage(con *ui.Console, job *repair.Job, d *repair.Damage) {
	if len(d.Ranges) == 0 {
		return
	}
	con.Field("wrong", "%s in %s", text.Count(len(d.Ranges), "range"), text.Count(d.Files, "file"))
	if n := d.Resumed(); n > 0 {
		con.Field("", "%s of them were replaced before: going on", text.Grouped(n))
	}
	const most = 20
	for _, r := range d.Ranges[:min(len(d.Ranges), most)] {
		con.Field("", "%s: %s at %s%s", text.Safe(r.File), text.Count(r.Length, "byte"), text.Grouped(r.Offset), rangeText(r))
	}
	if more := len(d.Ranges) - most; more > 0 {
		con.Field("", "and %s more", text.Grouped(more))
	}
	if d.Whole > 0 {
		con.Field("why so much", "only sums are known, which tell the file and not the place in it: %s is replaced whole. With a pin it would be the wrong experts alone (ggufreap pin)", text.Count(d.Whole, "file"))
	}
}

func rangeText(r repair.Range) string {
	switch {
	case r.Expert != nil:
		return fmt.Sprintf(": tensor %s, expert %d", text.Safe(r.Tensor), *r.Expert)
	case r.Tensor != "":
		return ": tensor " + text.Safe(r.Tensor)
	}
	return ""
}

// repairDocument is the --json output of repair.
type repairDocument struct {
	Schema  string        `json:"schema"`
	Ranges  []rangeOutput `json:"ranges"`
	Bytes   int64         `json:"bytes"` // replaced by this run, or to be replaced
	Mended  bool          `json:"mended"`
	Fetched *int64        `json:"fetched"` // bytes that travelled; null for a copy on this machine
}

type rangeOutput struct {
	File   document.Text  `json:"file"`
	Offset int64          `json:"offset"`
	Length int64          `json:"length"`
	Tensor *document.Text `json:"tensor"` // null for header, padding, and files of which only a sum is known
	Expert *int           `json:"expert"`
}

// rangeOutputs are the ranges of a document.
func rangeOutputs(ranges []repair.Range) []rangeOutput {
	list := []rangeOutput{}
	for _, r := range ranges {
		out := rangeOutput{File: document.Text(r.File), Offset: r.Offset, Length: r.Length, Expert: r.Expert}
		if r.Tensor != "" {
			tensor := document.Text(r.Tensor)
			out.Tensor = &tensor
		}
		list = append(list, out)
	}
	return list
}

// reportRepair prints what was done.
func reportRepair(con *ui.Console, c *cli.Context, good *gguf.Model, d *repair.Damage, bytes int64) error {
	dry := c.Bool("dry-run")
	if c.Bool("json") {
		doc := repairDocument{Schema: "ggufreap/repair/v1", Ranges: rangeOutputs(d.Ranges), Bytes: bytes, Mended: !dry}
		if far := hub.Of(good); far != nil {
			_, n := far.Traffic()
			doc.Fetched = &n
		}
		if err := con.JSON(doc); err != nil {
			return err
		}
	} else {
		describeFetched(con, good)
		switch {
		case len(d.Ranges) == 0:
			con.Field("result", "nothing is wrong: every byte is as it should be")
		case dry:
			con.Field("result", "%s would be replaced: this was a dry run", text.Size(bytes))
		default:
			con.Field("result", "%s replaced; every file that was written to has the sum that it should have", text.Size(bytes))
		}
	}
	if dry && len(d.Ranges) > 0 {
		return errDiffers
	}
	return nil
}
