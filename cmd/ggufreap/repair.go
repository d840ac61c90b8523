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
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
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

DIR has the files of a model, some of them damaged, cut off, too long or not
there. Which bytes are wrong a pin tells, to the expert: one wrong byte costs
one expert of one tensor. Without --pin, DIR/pin.json.zst is that pin, if it is
there. Otherwise sums tell which files are wrong, and those are replaced whole:
the sums that the hub lists, or DIR/MANIFEST.sha256.

Right bytes come from --from, which is an address, a folder or a file:
  - a copy of the same files, under whatever names;
  - with a pin, the same model in other files, more or fewer of them;
  - with a pin, the model that DIR was pruned from: its experts are those of the
    release, by DIR/plan.json, else by the pin DIR/source.pin.json.zst. A header
    that is damaged is made anew, if plan and source give all that stands in it.
Give --from several times, and the next one is asked for what one has not got.

Nothing is overwritten before what takes its place is known to be right. Where a
link stands in DIR, or a file that has other names, DIR gets a file of its own.
A run that was ended goes on when it is started again: REPAIR.jsonl in DIR says
where. When all is done, the sums of the files that were written to are taken,
and what is behind the end of a file that is right is cut.

Flags:

Exit codes:
  0  nothing was wrong, or all is right now
  1  with --dry-run, something is wrong
  2  the request could not be carried out
  75 not now: a disk, the network or memory failed, or another run is at work
     there; try again

Examples:
  ggufreap repair --from hf://org/K3 --pin K3.pin.json.zst K3
  ggufreap repair --from /mnt/backup/K3 --from hf://org/K3 K3
  ggufreap repair --from hf://org/K3 K3-REAP568
  ggufreap repair --from hf://org/K3 --dry-run K3
`

func repairCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "repair",
		Usage:       "replace the wrong bytes of a model, and no others",
		Description: repairHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringSliceFlag{Name: "from", Usage: "`ADDRESS`, folder or file of a copy, or of the model before pruning (repeatable)"},
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
	case len(c.StringSlice("from")) == 0:
		return hint.With(args.Usagef("nothing says where a good copy is"), "ggufreap repair --from ADDRESS DIR")
	}
	if err := checkNamed("a folder", c.Args().First()); err != nil {
		return err
	}
	r := &repairing{con: con, dir: c.Args().First(), dry: c.Bool("dry-run")}
	defer r.close()
	if err := r.open(c); err != nil {
		return err
	}
	if err := r.find(c); err != nil {
		return err
	}
	wrong := r.damage.Bytes()
	if !c.Bool("json") {
		r.describe()
	}
	if !r.dry && len(r.damage.Ranges) > 0 {
		if err := r.mend(c, wrong); err != nil {
			return err
		}
	}
	return r.report(c, wrong)
}

// A repairing is one run of the command.
type repairing struct {
	con    *ui.Console
	dir    string
	dry    bool
	models []*gguf.Model
	job    *repair.Job
	damage *repair.Damage
}

func (r *repairing) close() {
	for _, m := range r.models {
		m.Close()
	}
}

// open gathers what says which bytes are right, and where they are.
func (r *repairing) open(c *cli.Context) error {
	if info, err := os.Stat(r.dir); err != nil {
		return err
	} else if !info.IsDir() {
		return args.Usagef("repair takes the folder of the files, got the file %q", r.dir)
	}
	r.job = &repair.Job{Dir: r.dir, Workers: c.Int("workers"), DryRun: r.dry}
	pin, err := r.readPin(c)
	if err != nil {
		return err
	}
	r.job.Pin = pin
	if err := r.openSources(c); err != nil {
		return err
	}
	for _, m := range r.models {
		if err := checkJoined(r.dir, m); err != nil {
			return err
		}
	}
	if r.job.Sums, err = r.sums(); err != nil && pin == nil {
		return hint.With(err, "--pin FILE says what is right, to the expert; ggufreap pin makes one of a good copy")
	}
	return nil
}

// readPin reads the pin that a flag names or that lies in the folder; nil where there is none.
func (r *repairing) readPin(c *cli.Context) (*manifest.Pin, error) {
	path := c.String("pin")
	if path != "" {
		return files.ReadPin(c.App.Reader, path)
	}
	path = filepath.Join(r.dir, manifest.PinName)
	pin, err := files.ReadPin(c.App.Reader, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, hint.With(err, "--pin FILE names a sound one; where %s is moved away, sums say what is right", args.ShellQuote(path))
	}
	return pin, nil
}

// find looks for what is wrong.
func (r *repairing) find(c *cli.Context) error {
	checked := r.con.StartProgress("compare", r.models[0].FileBytes())
	r.job.Checked = checked.Set
	var err error
	r.damage, err = repair.Find(c.Context, r.job)
	checked.Finish()
	switch {
	case errors.Is(err, repair.ErrInUse):
		return hint.With(err, "wait for it to end")
	case errors.Is(err, repair.ErrHeader):
		return hint.With(err, "a copy of the same file has it: name its place with one more --from")
	}
	return err
}

// mend replaces what is wrong.
func (r *repairing) mend(c *cli.Context, wrong int64) error {
	fetched := r.con.StartProgress("repair", wrong)
	r.job.Checked, r.job.Fetched = nil, fetched.Set
	err := r.damage.Mend(c.Context)
	fetched.Finish()
	if err == nil {
		return nil
	}
	journal := filepath.Join(r.dir, repair.JournalName)
	if _, none := os.Lstat(journal); none != nil {
		return err
	}
	return hint.With(err, "what is done is noted in %s; the same command goes on", text.Safe(journal))
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

// sums returns those that the hub lists, and those that stand in the folder. Where both are of
// one file and differ, one of them is about another model.
func (r *repairing) sums() (map[string]manifest.Sum, error) {
	own, err := ownSums(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	sums := map[string]manifest.Sum{}
	for name, sum := range own {
		sums[name] = sum
	}
	for _, m := range r.models {
		stated, err := statedSums(m)
		if err != nil {
			return nil, err
		}
		for name, sum := range stated {
			if there, known := own[name]; known && there != sum {
				return nil, fmt.Errorf("%s says that the sha256 of %s is %s, the hub that it is %s: one of them is about another model, or the list is damaged", filepath.Join(r.dir, manifest.SumsName), name, there, sum)
			}
			if _, known := sums[name]; !known {
				sums[name] = sum
			}
		}
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s: nothing says what its bytes should be: it has neither a %s nor a %s, and the good copy no listing with sums", r.dir, manifest.PinName, manifest.SumsName)
	}
	return sums, nil
}

// ownSums reads the list of sums of a folder.
func ownSums(dir string) (map[string]manifest.Sum, error) {
	file, err := os.Open(filepath.Join(dir, manifest.SumsName))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	listed, err := lists.ReadSums(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	sums := map[string]manifest.Sum{}
	for _, s := range listed {
		sums[s.Name] = s.SHA256
	}
	return sums, nil
}
