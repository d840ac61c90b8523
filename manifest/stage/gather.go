package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

// ErrNoParts says that a folder holds no record of a part.
var ErrNoParts = errors.New("holds no record of a part")

// A Gathering is what the records in a folder come to.
type Gathering struct {
	path string
	disk disk.Disk
	dir  disk.Folder

	n      int           // of parts, 0 when no record tells
	record *parts.Record // of some part, nil when there is none
	join   *parts.Join
	faults map[int]string // why parts are to be done again
	listed bool           // there is a list of sums
	wait   Wait
	until  time.Time // how long absent names are asked for again
}

// A Wait is how long absent names are asked for again: network file systems remember for a
// while that a name was not there.
type Wait struct {
	Time time.Duration
	// Begun, unless nil, is told once that names are absent: of so many parts.
	Begun func(parts int)
}

// A Fault says why a part is to be done, or done again.
type Fault struct {
	Part int
	Why  string
}

// askAgain is how long to wait before an absent name is asked for again.
const askAgain = time.Second

// Gather reads the records of all parts in the folder at path. Records of different work are
// an error. Those that are missing or damaged are faults.
func Gather(ctx context.Context, path string, wait Wait) (*Gathering, error) {
	return gather(ctx, disk.OS{}, path, wait)
}

func gather(ctx context.Context, d disk.Disk, path string, wait Wait) (*Gathering, error) {
	g := &Gathering{path: path, disk: d, faults: map[int]string{}, wait: wait, until: time.Now().Add(wait.Time)}
	if err := g.gather(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Gathering) gather(ctx context.Context) error {
	var err error
	if err := g.retry(ctx, g.open); err != nil {
		return err
	}
	if g.dir == nil {
		return &fs.PathError{Op: "open", Path: g.path, Err: fs.ErrNotExist}
	}
	err = g.retry(ctx, func() (bool, error) {
		g.n, err = g.look()
		return g.n > 0 || g.listed, err
	})
	switch {
	case err != nil:
		return err
	case g.n == 0 && !g.listed:
		return g.refuse(ErrNoParts)
	case g.n == 0:
		return nil
	}
	pending := make([]int, g.n)
	for i := range pending {
		pending[i] = i + 1
	}
	return g.retry(ctx, func() (bool, error) {
		if pending, err = g.readAll(pending, g.n); err != nil {
			return false, err
		}
		return len(pending) == 0 || g.listed, nil
	})
}

// open opens the folder, whose name may not be seen yet.
func (g *Gathering) open() (bool, error) {
	var err error
	g.dir, err = g.disk.Open(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
}

func (g *Gathering) refuse(why error) error { return fmt.Errorf("folder %q %w", g.path, why) }

// retry calls what until it reports that it is done, or the time is over.
func (g *Gathering) retry(ctx context.Context, what func() (done bool, err error)) error {
	for {
		done, err := what()
		left := time.Until(g.until)
		if err != nil || done || left <= 0 {
			return err
		}
		if g.wait.Begun != nil {
			g.wait.Begun(len(g.faults))
			g.wait.Begun = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(askAgain, left)):
		}
	}
}

// look returns of how many parts the records are that are there.
func (g *Gathering) look() (n int, err error) {
	entries, err := g.dir.List()
	if err != nil {
		return 0, err
	}
	first := ""
	for _, e := range entries {
		if e.Name() == manifest.JournalName {
			return 0, g.refuse(ErrInPieces)
		}
		if e.Name() == manifest.SumsName {
			g.listed = true
		}
		of, record := partsOf(e.Name())
		switch {
		case !record:
		case n == 0:
			n, first = of, e.Name()
		case n != of:
			return 0, fmt.Errorf("folder %q holds parts of %s and of %s, want one number: %q and %q", g.path, words.Group(n), words.Group(of), first, e.Name())
		}
	}
	return n, nil
}

// readAll reads the records of parts, and returns those that are not there or damaged.
func (g *Gathering) readAll(pending []int, n int) ([]int, error) {
	var again []int
	for _, part := range pending {
		name := parts.Name(part, n)
		record, err := readRecord(g.dir, name)
		if err == nil && (record.Part != part || record.Parts != n) {
			err = fmt.Errorf("it is the record of part %d of %d", record.Part, record.Parts)
		}
		switch {
		case cannotRead(err):
			return nil, fmt.Errorf("folder %q: %w", g.path, withName(name, err))
		case errors.Is(err, fs.ErrNotExist):
			g.faults[part] = fmt.Sprintf("%q is missing", name)
		case err != nil:
			g.faults[part] = fmt.Sprintf("%q is damaged: %v", name, err)
		default:
			delete(g.faults, part)
			if err := g.add(record); err != nil {
				return nil, fmt.Errorf("folder %q: %w", g.path, err)
			}
			continue
		}
		again = append(again, part)
	}
	return again, nil
}

// cannotRead reports whether an error says nothing about a file: to do its part again would
// change nothing.
func cannotRead(err error) bool {
	return gguf.MachineFault(err) || errors.Is(err, fs.ErrPermission)
}

// withName puts the name of a file before an error that does not say it.
func withName(name string, err error) error {
	if strings.Contains(err.Error(), strconv.Quote(name)) {
		return err
	}
	return fmt.Errorf("%q: %w", name, err)
}

func (g *Gathering) add(record *parts.Record) error {
	if g.record == nil {
		g.record, g.join = record, parts.NewJoin(record)
	}
	return g.join.Add(record)
}

// Record returns the record of some part, nil when there is none.
func (g *Gathering) Record() *parts.Record { return g.record }

// Parts returns into how many the work is divided, 0 when no record tells.
func (g *Gathering) Parts() int { return g.n }

// Listed reports whether the folder has a list of sums: parts were joined there before.
func (g *Gathering) Listed() bool { return g.listed }

// Faults returns the parts that are to be done, or done again, in order.
func (g *Gathering) Faults() []Fault {
	var faults []Fault
	for _, part := range slices.Sorted(maps.Keys(g.faults)) {
		faults = append(faults, Fault{part, g.faults[part]})
	}
	return faults
}

// Pin returns the pin that the parts come to; all must be there.
func (g *Gathering) Pin() (*manifest.Pin, error) {
	pin, err := g.join.Pin()
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", g.path, err)
	}
	return pin, nil
}

// Findings returns what the parts of a verification have found.
func (g *Gathering) Findings() []parts.Finding { return g.join.Findings() }

// Clear removes what tasks of this work have left, and then the records, and returns the
// names.
func (g *Gathering) Clear() ([]string, error) {
	entries, err := g.dir.List()
	if err != nil {
		return nil, err
	}
	names, err := g.names()
	if err != nil {
		return nil, err
	}
	var left, records []string
	for _, e := range entries {
		name := e.Name()
		_, _, record := parts.ParseName(name)
		_, _, note := parseNote(name)
		switch {
		case !e.Type().IsRegular():
		case note || isRunPart(name, names):
			left = append(left, name)
		case record:
			records = append(records, name)
		}
	}
	removed := append(left, records...)
	for _, name := range removed {
		if err := ignoreMissing(g.dir.Remove(name)); err != nil {
			return removed, fmt.Errorf("folder %q: %w", g.path, err)
		}
	}
	return removed, g.dir.Sync()
}

// names are those of the files that the parts write: by their records, and by the list of
// sums where that is there.
func (g *Gathering) names() (map[string]bool, error) {
	names := map[string]bool{manifest.PinName: true, manifest.SumsName: true}
	if g.record != nil {
		for _, f := range g.join.Files() {
			names[f.Name] = true
		}
		for _, d := range g.join.Documents() {
			names[d.Name] = true
		}
	}
	sums, err := g.sums()
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	for name := range sums {
		names[name] = true
	}
	return names, err
}

// sums are those of the list in the folder.
func (g *Gathering) sums() (map[string]manifest.Sum, error) {
	list, err := g.dir.Open(manifest.SumsName)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	sums, err := readList(list)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %s: %w", g.path, manifest.SumsName, err)
	}
	return sums, nil
}

// Close ends it.
func (g *Gathering) Close() error {
	if g.dir == nil {
		return nil
	}
	err := g.dir.Close()
	g.dir = nil
	return err
}
