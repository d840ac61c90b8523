package stage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

// A placer gives files of a folder that others write to their names, each when it is whole and
// durable. What it finds under a name it replaces: whoever wrote that wrote the same.
type placer struct {
	dir    disk.Folder
	run    string // what its temporary names end in
	direct bool   // files are written under their own names
}

// newPlacer finds out whether files of a folder can be renamed. Object stores that are mounted
// as folders cannot do so, some of them; they show a file when it is closed, whole.
func newPlacer(dir disk.Folder, run string) (placer, error) {
	p := placer{dir: dir, run: run}
	from, to := parts.Name(1, 1)+run, noteName(1, 1)+run // as of a record, so that whoever clears those clears it
	file, err := dir.Create(from)
	if err != nil {
		return p, err
	}
	defer dir.Remove(from)
	if err := file.Close(); err != nil {
		return p, err
	}
	err = dir.Rename(from, to)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		p.direct = true
		return p, nil
	case err == nil || errors.Is(err, fs.ErrNotExist): // see name
		return p, ignoreMissing(dir.Remove(to))
	}
	return p, err
}

// create makes the file that is to have a name, and returns under which name it is written.
func (p placer) create(name string) (file disk.OutputFile, at string, err error) {
	if !p.direct {
		file, err = p.dir.Create(name + p.run)
		return file, name + p.run, err
	}
	if list, err := p.dir.Open(manifest.SumsName); err == nil && name != manifest.SumsName {
		return nil, "", errors.Join(goneError{errors.New("all parts were joined")}, list.Close())
	}
	if err := ignoreMissing(p.dir.Remove(name)); err != nil {
		return nil, "", err
	}
	file, err = p.dir.Create(name)
	return file, name, err
}

// place writes a small file, and returns its sum.
func (p placer) place(name string, write func(w io.Writer) error) (manifest.Sum, error) {
	file, temporary, err := p.create(name)
	if err != nil {
		return manifest.Sum{}, err
	}
	hasher := pass.NewHasher()
	if err = write(io.MultiWriter(file, hasher)); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	sum := lists.FileSum{Name: name, SHA256: hasher.Sum()}
	if err == nil {
		err = p.name(temporary, sum, hasher.Size())
	}
	if err != nil {
		p.dir.Remove(temporary)
		return manifest.Sum{}, err
	}
	return sum.SHA256, nil
}

// name gives a file its name. A server that has done so, and whose answer was lost, says when
// it is asked again that there is no such file: then the file of that name must be this one.
func (p placer) name(temporary string, sum lists.FileSum, size int64) error {
	var err error
	if temporary != sum.Name {
		err = p.dir.Rename(temporary, sum.Name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.checkFile(sum, size) == nil:
	case errors.Is(err, fs.ErrNotExist):
		return goneError{err}
	case err != nil:
		return err
	}
	return p.dir.Sync()
}

// A goneError says that a temporary file is not there any more. Who joined the parts has
// removed it, or who did the same part on a disk that cannot rename.
type goneError struct{ error }

func (e goneError) Error() string { return "it is gone: " + e.error.Error() }
func (e goneError) Unwrap() error { return e.error }

// MachineFault reports that the same may succeed later, see [gguf.MachineFault].
func (e goneError) MachineFault() bool { return true }

// checkFile reads a file of the folder, which must have the size and sum.
func (p placer) checkFile(sum lists.FileSum, size int64) error {
	if err := checkSize(p.dir, sum.Name, size); err != nil {
		return err
	}
	got, err := sumFile(p.dir, sum.Name)
	if err == nil && got != sum.SHA256 {
		err = fmt.Errorf("%q: sha256 is %s, want %s", sum.Name, got, sum.SHA256)
	}
	return err
}

// checkSize returns an error when a file of a folder is not a regular one of that size.
func checkSize(dir disk.Folder, name string, size int64) error {
	file, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	got, err := file.Size()
	if err == nil && got != size {
		err = fmt.Errorf("%q has %s, want %s", name, words.Count(got, "byte"), words.Group(size))
	}
	return err
}

// sumFile takes the sum of a file of a folder.
func sumFile(dir disk.Folder, name string) (manifest.Sum, error) {
	file, err := dir.Open(name)
	if err != nil {
		return manifest.Sum{}, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return manifest.Sum{}, err
	}
	hasher := pass.NewHasher()
	n, err := io.Copy(hasher, io.NewSectionReader(file, 0, size))
	if err == nil && n < size {
		err = fmt.Errorf("%q: read %d bytes of %d", name, n, size)
	}
	return hasher.Sum(), err
}

// readRecord reads the record of a part.
func readRecord(dir disk.Folder, name string) (*parts.Record, error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	return parts.Decode(io.NewSectionReader(file, 0, size))
}
