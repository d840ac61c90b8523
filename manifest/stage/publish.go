package stage

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
)

// Publish gives every staged file its name, then writes the list of sums, and removes
// the journal last. That a file is missing which Open was told of is an error. A
// release whose publishing failed can be resumed.
func (f *Folder) Publish(ctx context.Context) error {
	if err := f.checkComplete(); err != nil {
		return err
	}
	list, err := f.sumKept(ctx)
	if err != nil {
		return err
	}
	if err := f.mine(); err != nil {
		return err
	}
	if err := f.dropOldList(); err != nil {
		return err
	}
	for i := range f.staged {
		file := &f.staged[i]
		if err := f.publish(file); err != nil {
			return err
		}
		list = append(list, file.FileSum)
	}
	if err := f.syncNames(); err != nil {
		return err
	}
	if err := f.writeList(list); err != nil {
		return err
	}
	if err := f.mine(); err != nil {
		return err
	}
	if err := f.journal.file.Discard(); err != nil {
		return f.wrap(manifest.JournalName, err)
	}
	f.done = true
	return f.syncNames()
}

// checkComplete refuses to publish less than was announced.
func (f *Folder) checkComplete() error {
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		if name != manifest.SumsName && !slices.ContainsFunc(f.staged, func(file stagedFile) bool { return file.Name == name }) {
			return fmt.Errorf("file %q was announced for this release and not written", name)
		}
	}
	return nil
}

// writeList writes the list of sums, which makes the folder a release.
func (f *Folder) writeList(list []lists.FileSum) error {
	sum, err := f.writeFile(manifest.SumsName, func(w io.Writer) error { return lists.WriteSums(w, list) })
	if err != nil {
		return err
	}
	if err := f.publish(&stagedFile{FileSum: lists.FileSum{Name: manifest.SumsName, SHA256: sum}}); err != nil {
		return err
	}
	return f.syncNames()
}

func (f *Folder) syncNames() error {
	if err := f.dir.Sync(); err != nil {
		return fmt.Errorf("syncing folder %w", err)
	}
	return nil
}

// sumKept takes the sums of files that were in the folder before and stay.
func (f *Folder) sumKept(ctx context.Context) ([]lists.FileSum, error) {
	sums := make([]lists.FileSum, len(f.kept))
	err := pass.ForEach(ctx, len(f.kept), f.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		sum, err := f.sum(ctx, f.kept[i], w)
		sums[i] = lists.FileSum{Name: f.kept[i], SHA256: sum}
		return err
	})
	return sums, err
}

// sum takes the sum of a file of the folder.
func (f *Folder) sum(ctx context.Context, name string, w *pass.Worker) (manifest.Sum, error) {
	file, err := f.dir.Open(name)
	if err != nil {
		return manifest.Sum{}, fmt.Errorf("output folder %q: %w", f.path, err)
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return manifest.Sum{}, fmt.Errorf("output folder %q: %w", f.path, err)
	}
	hasher := w.Hasher()
	if err := pass.Scan(ctx, file, size, w.Buf, hasher, nil, nil); err != nil {
		return manifest.Sum{}, fmt.Errorf("%q: %w", filepath.Join(f.path, name), err)
	}
	return hasher.Sum(), nil
}

// dropOldList removes the list of an earlier release before its files are replaced, and what
// vouches for that list before it, so that neither ever stands beside files that it does not
// describe.
func (f *Folder) dropOldList() error {
	old := f.void
	if f.listed {
		old = append(slices.Clip(old), manifest.SumsName)
	}
	for _, name := range old {
		if err := ignoreMissing(f.dir.Remove(name)); err != nil {
			return f.wrap(name, err)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return f.syncNames()
}

// publish gives a file its name, unless an earlier run did. Then what that run may have left
// under the temporary name goes: a kill while names were tried leaves an empty file there.
func (f *Folder) publish(file *stagedFile) error {
	if file.published {
		if f.parts[file.Name] {
			return ignoreMissing(f.dir.Remove(file.Name + partSuffix))
		}
		return nil
	}
	if file.link != "" {
		return f.publishLink(file)
	}
	if err := f.dir.Rename(file.Name+partSuffix, file.Name); err != nil {
		return f.wrap(file.Name, err)
	}
	file.published = true
	return nil
}
