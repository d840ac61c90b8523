package repair

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/filelock"
)

const journalSchema = "ggufreap/repair-journal/v1"

// maxJournal bounds what is read of a journal: a quarter of a million wrong experts.
const maxJournal = 256 << 20

// journalHead is the first line: what is wrong, and what mends it.
type journalHead struct {
	Schema string       `json:"schema"`
	Source string       `json:"source"` // identities of the sources
	Truth  string       `json:"truth"`  // pin digest, or "sums"
	Layout manifest.Sum `json:"layout"` // of the files
	Files  []FileDamage `json:"files"`
	Ranges []Range      `json:"ranges"`
}

// journalLine says that a range is replaced and durable.
type journalLine struct {
	Done int `json:"done"` // index in Ranges
}

// A journal is the file [JournalName].
type journal struct {
	path string
	file *os.File // locked; nil for a dry run, and until a folder can be written to
}

// openJournal opens the journal of a folder, and holds other runs off. Where that is not
// possible since nothing can be written there, nothing may have to be.
func openJournal(job *Job) (*journal, error) {
	j := &journal{path: job.path(JournalName)}
	if job.DryRun {
		return j, nil
	}
	if err := j.open(); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	return j, nil
}

// open opens and locks the file, a new one where there is none.
func (j *journal) open() error {
	if info, err := os.Lstat(j.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file", j.path)
	}
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = filelock.Lock(file)
	if err == nil && !named(file, j.path) { // its holder has ended meanwhile, and removed it
		err = filelock.ErrLocked
	}
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("%s: %w", j.path, ErrInUse)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	return nil
}

// named reports whether a path leads to an open file.
func named(file *os.File, path string) bool {
	is, err := file.Stat()
	there, errThere := os.Lstat(path)
	return err == nil && errThere == nil && os.SameFile(is, there)
}

// text returns what an earlier run left.
func (j *journal) text() ([]byte, error) {
	file := j.file
	if file == nil {
		var err error
		if file, _, err = manifest.OpenRegular(j.path); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	return io.ReadAll(io.NewSectionReader(file, 0, maxJournal+1))
}

// identity tells the sources from any others.
func (job *Job) identity() string {
	var list []string
	for _, s := range job.Sources {
		list = append(list, s.Identity)
	}
	return strings.Join(list, " ")
}

// layout is the digest of which files the folder should have, and where what lies in them.
func (job *Job) layout() manifest.Sum {
	h := blake3.New()
	for _, f := range job.files {
		fmt.Fprintf(h, "%q %d %d\n", f.name, f.size, f.data)
		for _, p := range f.tensors {
			fmt.Fprintf(h, "%q %d\n", p.pinned.Name, p.offset)
		}
	}
	return manifest.Sum(h.Sum(nil))
}

// truth names what says what is right.
func (job *Job) truth() string {
	if job.Pin == nil {
		return "sums"
	}
	return job.Pin.PinDigest.String()
}

// read returns what an earlier run found and did, nil where it left nothing, or went by another
// pin, other files or, by sums alone, other sources.
func (j *journal) read(job *Job) (*Damage, error) {
	data, err := j.text()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Contains(data, []byte("\n")) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(data) > maxJournal {
		return nil, fmt.Errorf("%s: more than %d bytes", j.path, maxJournal)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	var head journalHead
	if err := json.Unmarshal(lines[0], &head); err != nil || head.Schema != journalSchema {
		return nil, fmt.Errorf("%s: is no journal of a repair", j.path)
	}
	if head.Truth != job.truth() || head.Layout != job.layout() || job.Pin == nil && head.Source != job.identity() {
		return nil, nil // what was found is not what is looked for now; nothing in a file depends on it
	}
	d := &Damage{Ranges: head.Ranges, Files: head.Files, done: map[int]bool{}}
	if err := d.checkRanges(job); err != nil {
		return nil, fmt.Errorf("%s: %w", j.path, err)
	}
	for _, line := range lines[1:] {
		var entry journalLine
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &entry) != nil || entry.Done < 0 || entry.Done >= len(d.Ranges) {
			break // was being written when the run ended
		}
		d.done[entry.Done] = true
	}
	return d, nil
}

// checkRanges refuses ranges that are not in the files.
func (d *Damage) checkRanges(job *Job) error {
	for _, r := range d.Ranges {
		f, _ := job.file(r.File)
		switch {
		case f == nil || r.Offset < 0 || r.Length < 0 || r.Kind != Surplus && r.Offset > f.size-r.Length || r.Kind == Surplus && r.Offset != f.size:
			return fmt.Errorf("%d bytes at %d of %q are not in the files", r.Length, r.Offset, r.File)
		case r.Kind != Bytes && r.Kind != Surplus && r.Kind != End:
			return fmt.Errorf("a range of the kind %q is not known", r.Kind)
		}
	}
	return nil
}

// begin writes the head, unless an earlier run did, and makes it durable before any file is
// written to.
func (j *journal) begin(d *Damage) error {
	if j.file == nil {
		if err := j.open(); err != nil {
			return err
		}
	}
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	head := journalHead{Schema: journalSchema, Source: d.job.identity(), Truth: d.job.truth(), Layout: d.job.layout(), Files: d.Files, Ranges: d.Ranges}
	lines, err := json.Marshal(head, json.Deterministic(true))
	if err != nil {
		return err
	}
	lines = append(lines, '\n')
	for i := range d.Ranges {
		if d.done[i] {
			lines = fmt.Appendf(lines, "{\"done\":%d}\n", i)
		}
	}
	if _, err := j.file.WriteAt(lines, 0); err != nil {
		return err
	}
	if _, err := j.file.Seek(0, 2); err != nil {
		return err
	}
	return j.file.Sync()
}

// note says that ranges are replaced.
func (j *journal) note(ranges []int) error {
	var lines []byte
	for _, i := range ranges {
		lines = fmt.Appendf(lines, "{\"done\":%d}\n", i)
	}
	if _, err := j.file.Write(lines); err != nil {
		return err
	}
	return j.file.Sync()
}

// remove ends the journal. The lock holds others off until it is gone, where the system removes
// open files.
func (j *journal) remove() error {
	if os.Remove(j.path) == nil {
		return j.file.Close()
	}
	return errors.Join(j.file.Close(), os.Remove(j.path))
}

// leave ends a run that has nothing to mend. What an earlier one noted stays.
func (j *journal) leave() error {
	if j.file == nil {
		return nil
	}
	if info, err := j.file.Stat(); err != nil || info.Size() > 0 {
		return errors.Join(err, j.file.Close())
	}
	return j.remove()
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
	}
}
