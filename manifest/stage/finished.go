package stage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage/internal/disk"
)

// Errors of Open for a folder with a finished release.
var (
	// ErrFinished says that it is this one: there is nothing to do.
	ErrFinished = errors.New("holds this release, finished")
	// ErrOther says that it is another one, or damaged.
	ErrOther = errors.New("holds a finished release that is not this one")
)

// checkFinished looks for a finished release, and says whether it is this one by what can be
// seen without reading tensors: names, sizes, the header of each shard, and the sums of
// documents that are known beforehand. A release that is to be replaced is not looked at.
func (f *Folder) checkFinished(head *journalHead, sources []fs.FileInfo) error {
	list, err := f.dir.Open(manifest.SumsName)
	if err != nil {
		return nil // no list, no finished release
	}
	defer list.Close()
	difference, err := f.finishedDifference(head, sources, list)
	switch {
	case err != nil:
		return fmt.Errorf("output folder %q: %w", f.path, err)
	case difference == "" && (f.options.Resume || !f.options.Force):
		return f.refuse(ErrFinished)
	case !f.options.Force:
		return fmt.Errorf("%w: %s", f.refuse(ErrOther), difference)
	}
	return nil
}

// readList reads a list of sums.
func readList(list io.ReaderAt) (map[string]manifest.Sum, error) {
	sums, err := lists.ReadSums(io.NewSectionReader(list, 0, lists.MaxSumsBytes+1))
	if err != nil {
		return nil, err
	}
	byName := map[string]manifest.Sum{}
	for _, sum := range sums {
		byName[sum.Name] = sum.SHA256
	}
	return byName, nil
}

// finishedDifference says in what the release in the folder is another than this one, or "".
func (f *Folder) finishedDifference(head *journalHead, sources []fs.FileInfo, list io.ReaderAt) (string, error) {
	sums, err := readList(list)
	if err != nil {
		return err.Error(), nil
	}
	there, err := infos(f.dir)
	if err != nil {
		return "", err
	}
	if difference := f.namesDifference(there, sums); difference != "" {
		return difference, nil
	}
	for i, info := range sources {
		if info.ModTime().After(there[manifest.SumsName].ModTime()) {
			return fmt.Sprintf("the source %q was modified after it was finished", f.options.Sources[i]), nil
		}
	}
	for name, sum := range f.release.Known {
		if sums[name] != sum {
			return fmt.Sprintf("%q has another sha256", name), nil
		}
	}
	for i := range f.release.Layout.Shards {
		if difference := f.finishedShard(i, head.Shards[i].Header, there); difference != "" {
			return difference, nil
		}
	}
	return "", nil
}

// infos returns what is said of the files of a folder, by their names.
func infos(dir disk.Folder) (map[string]fs.FileInfo, error) {
	entries, err := dir.List()
	if err != nil {
		return nil, err
	}
	there := map[string]fs.FileInfo{}
	for _, e := range entries {
		if there[e.Name()], err = e.Info(); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// namesDifference names a model file that this release does not have, or one of its files that
// is not there or not listed.
func (f *Folder) namesDifference(there map[string]fs.FileInfo, sums map[string]manifest.Sum) string {
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if gguf.IsModelFile(name) && !f.names[name] {
			return fmt.Sprintf("%q is no part of this one", name)
		}
	}
	for _, name := range f.release.names() {
		if _, listed := sums[name]; there[name] == nil || !listed && name != manifest.SumsName {
			return fmt.Sprintf("%q is missing", name)
		}
	}
	return ""
}

// finishedShard says in what a shard that is there differs from this release's, or "".
func (f *Folder) finishedShard(i int, header manifest.Sum, there map[string]fs.FileInfo) string {
	name, shard := f.release.shardName(i), f.release.Layout.Shards[i]
	if size := there[name].Size(); size != shard.Size {
		return fmt.Sprintf("%q has %s, want %s", name, words.Count(size, "byte"), words.Group(shard.Size))
	}
	file, err := f.dir.Open(name)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	h := blake3.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, shard.DataOffset)); err != nil {
		return fmt.Sprintf("%q: %v", name, err)
	}
	if !bytes.Equal(h.Sum(nil), header[:]) {
		return fmt.Sprintf("%q has other metadata or another tensor table", name)
	}
	return ""
}
