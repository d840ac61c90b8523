package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"ggufreap/gguf/words"
)

// ErrNoLink says that the release's folder cannot have other names of the source's files.
var ErrNoLink = errors.New("cannot hold other names of these files")

// linked returns the path of the file of which a shard is to be another name, or "". Such a
// shard has no temporary file: nothing that is written could reach the other name.
func (f *Folder) linked(shard int) string {
	if !f.release.Link {
		return ""
	}
	return f.release.Same[shard]
}

// readLinked lets the bytes of such a file pass by.
func (f *Folder) readLinked(ctx context.Context, job shardJob, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Size() != job.shard.Size {
		err = fmt.Errorf("%q has %s, want %s", path, words.Count(info.Size(), "byte"), words.Group(job.shard.Size))
	}
	if err != nil {
		return err
	}
	p := f.newPassage(job)
	if err := job.scan(ctx, file, p, job.shard.Size); err != nil {
		return err
	}
	if err := p.draft.End(); err != nil {
		return err
	}
	f.read.Add(job.shard.Size)
	job.file.SHA256, job.file.link = p.hasher.Sum(), path
	return nil
}

// publishLink gives a file its second name. What has that name is replaced.
func (f *Folder) publishLink(file *stagedFile) error {
	err := f.dir.Link(file.link, file.Name)
	if errors.Is(err, fs.ErrExist) {
		if err = f.dir.Remove(file.Name); err == nil {
			err = f.dir.Link(file.link, file.Name)
		}
	}
	if err == nil && f.parts[file.Name] { // of a run that copied it
		err = ignoreMissing(f.dir.Remove(file.Name + partSuffix))
	}
	if err != nil {
		return f.wrap(file.Name, err)
	}
	file.published = true
	return nil
}

// tryLink makes and removes another name of a file, since disks are bounds to names, and not
// every file system has them.
func (f *Folder) tryLink(name string) error {
	if !f.release.Link || len(f.release.Same) == 0 {
		return nil
	}
	path := f.release.Same[slices.Min(slices.Collect(maps.Keys(f.release.Same)))]
	if err := f.dir.Link(path, name); err != nil {
		return fmt.Errorf("%w: %w", f.refuse(ErrNoLink), err)
	}
	return f.dir.Remove(name)
}

// linkedAs reports whether a name is to be, or is already, another name of a file.
func (f *Folder) linkedAs(name, path string) bool {
	for i, linked := range f.release.Same {
		if f.release.Link && linked == path && name == f.release.shardName(i) {
			return true
		}
	}
	return false
}
