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
	dir disk.Folder
	run string // what its temporary names end in
}

// place writes a small file, and returns its sum.
func (p placer) place(name string, write func(w io.Writer) error) (manifest.Sum, error) {
	temporary := name + p.run
	file, err := p.dir.Create(temporary)
	if err != nil {
		return manifest.Sum{}, err
	}
	defer p.dir.Remove(temporary) // unless it has got its own name
	hasher := pass.NewHasher()
	if err = write(io.MultiWriter(file, hasher)); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return manifest.Sum{}, err
	}
	sum := lists.FileSum{Name: name, SHA256: hasher.Sum()}
	return sum.SHA256, p.name(temporary, sum, hasher.Size())
}

// name gives a file its name. A server that has done so, and whose answer was lost, says when
// it is asked again that there is no such file: then the file of that name must be this one.
func (p placer) name(temporary string, sum lists.FileSum, size int64) error {
	err := p.dir.Rename(temporary, sum.Name)
	if errors.Is(err, fs.ErrNotExist) && p.checkFile(sum, size) == nil {
		err = nil
	}
	if err != nil {
		return err
	}
	return p.dir.Sync()
}

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
