package stage

import (
	"errors"
	"fmt"
	"io/fs"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

// A recordKeeper looks after the records of a folder, for one part.
type recordKeeper struct {
	dir  disk.Folder
	path string
	want *parts.Record // of this part, as far as it is known before it is done
}

func (k recordKeeper) refuse(why error) error { return fmt.Errorf("output folder %q %w", k.path, why) }

// checkOthers refuses a folder with records of another number of parts, or of other work. Of
// other parts one record is looked at: all are when they are joined.
func (k recordKeeper) checkOthers(entries []fs.DirEntry) error {
	for _, e := range entries {
		n, record := partsOf(e.Name())
		if record && n != k.want.Parts {
			return fmt.Errorf("%w: it holds %q, one of %s, this is one of %s", k.refuse(ErrDifferent), e.Name(), words.Count(n, "part"), words.Group(k.want.Parts))
		}
	}
	for _, e := range entries {
		i, _, record := parts.ParseName(e.Name())
		if !record || i == k.want.Part {
			continue
		}
		other, err := readRecord(k.dir, e.Name())
		if err != nil {
			continue // its own task's business
		}
		return k.checkWork(e.Name(), other)
	}
	return nil
}

// checkWork refuses a record of other work.
func (k recordKeeper) checkWork(name string, other *parts.Record) error {
	if what := k.want.Difference(other); what != "" {
		return fmt.Errorf("%w: it holds %q: %s", k.refuse(ErrDifferent), name, what)
	}
	return nil
}

// find reads the first of the names that holds a record of this part. Where one does not
// count, redo says why.
func (k recordKeeper) find(names ...string) (found *parts.Record, at, redo string, err error) {
	for _, name := range names {
		was, err := readRecord(k.dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			redo = fmt.Sprintf("%s: %v", name, err)
		case was.Part != k.want.Part:
			redo = fmt.Sprintf("%s: it is that of part %d", name, was.Part)
		default:
			return was, name, redo, k.checkWork(name, was)
		}
	}
	return nil, "", redo, nil
}

// A RecordFolder is a folder of records about work that writes nothing else.
type RecordFolder struct {
	placer
	keeper recordKeeper
	found  *parts.Record
	redo   string
}

// OpenRecords prepares the folder at path, which it creates, for the record of a part that is
// known as far as want says. It holds no model: records there would be taken for those of
// what is written.
func OpenRecords(path string, want *parts.Record, runner string) (*RecordFolder, error) {
	return openRecords(disk.OS{}, path, want, runner)
}

func openRecords(d disk.Disk, path string, want *parts.Record, runner string) (*RecordFolder, error) {
	dir, err := d.Make(path)
	if err != nil {
		return nil, err
	}
	f := &RecordFolder{placer: placer{dir: dir}, keeper: recordKeeper{dir, path, want}}
	if err = f.look(); err == nil {
		f.placer, err = newPlacer(dir, Share{Runner: runner}.runName())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *RecordFolder) look() error {
	entries, err := f.keeper.dir.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if gguf.IsModelFile(e.Name()) {
			return fmt.Errorf("output folder %q holds the model file %q, want a folder for records alone", f.keeper.path, e.Name())
		}
	}
	if err := f.keeper.checkOthers(entries); err != nil {
		return err
	}
	f.found, _, f.redo, err = f.keeper.find(parts.Name(f.keeper.want.Part, f.keeper.want.Parts))
	return err
}

// Found returns the record that an earlier task of this part has left, or nil and why one
// that is there does not count.
func (f *RecordFolder) Found() (record *parts.Record, redo string) { return f.found, f.redo }

// Write writes the record of the part.
func (f *RecordFolder) Write(record *parts.Record) error {
	name := parts.Name(record.Part, record.Parts)
	if _, err := f.place(name, record.Encode); err != nil {
		return fmt.Errorf("output folder %q: writing %q: %w", f.keeper.path, name, err)
	}
	return nil
}

// Close closes the folder.
func (f *RecordFolder) Close() error { return f.keeper.dir.Close() }
