package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Open opens an artifact by any of its shards, by its single file, or by a folder that
// holds exactly one artifact. Shards are looked up beside the given path by name, so
// that links in a hub's cache work; renamed shards are found by their keys. A set with
// missing shards opens, with the gap among the model's Problems. The caller closes the
// model.
func Open(path string, opts ...Option) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	o := &opener{pool: newFilePool(), opts: opts}
	if info.IsDir() {
		return o.folder(path)
	}
	return o.shard(path)
}

// OpenFiles opens the shards of one artifact from an explicit list, in any order.
func OpenFiles(paths []string, opts ...Option) (*Model, error) {
	o := &opener{pool: newFilePool(), opts: opts}
	return o.files(paths)
}

// An opener gathers the files of one model.
type opener struct {
	pool    *filePool
	opts    []Option
	sources []*sourceFile
}

// files parses every path and joins them.
func (o *opener) files(paths []string) (*Model, error) {
	var parsed []*File
	for _, path := range paths {
		f, err := o.file(path)
		if err != nil {
			o.pool.close()
			return nil, err
		}
		parsed = append(parsed, f)
	}
	return o.join(parsed)
}

func (o *opener) join(parsed []*File) (*Model, error) {
	if len(parsed) == 0 {
		return nil, errors.New("no files to open")
	}
	m, err := NewModel(Stem(parsed[0].Name), parsed...)
	if err != nil {
		return nil, err
	}
	m.pool, m.sources = o.pool, o.sources
	return m, nil
}

func (o *opener) file(path string) (*File, error) {
	src, err := o.pool.source(path)
	if err != nil {
		return nil, err
	}
	f, err := NewFile(path, src, src.info.Size(), o.opts...)
	if err != nil {
		return nil, err
	}
	o.sources = append(o.sources, src)
	return f, nil
}

// shard opens the artifact that a file belongs to.
func (o *opener) shard(path string) (*Model, error) {
	f, err := o.file(path)
	if err != nil {
		o.pool.close()
		return nil, err
	}
	name, named := parseShardName(path)
	if count := splitCount(f); count <= 1 && !(named && name.count > 1) {
		return o.join([]*File{f})
	}
	o.sources = nil // the file is read again with its siblings
	dir := filepath.Dir(path)
	if named {
		return o.files(familyPaths(dir, name))
	}
	siblings, err := o.renamed(dir, splitCount(f))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(siblings, filepath.Join(dir, filepath.Base(path))) {
		siblings = append(siblings, path)
	}
	return o.files(siblings)
}

// familyPaths lists the shards of a split that are there. Only their presence is
// asked for: a link counts as the file it points to.
func familyPaths(dir string, name shardName) []string {
	var paths []string
	for i := range name.count {
		path := filepath.Join(dir, ShardName(name.stem, i, name.count))
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// renamed lists the files of a folder that say they belong to a split of count but
// are not named like shards.
func (o *opener) renamed(dir string, count int) ([]string, error) {
	names, err := modelNames(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if _, named := parseShardName(name); named {
			continue
		}
		if n, err := o.splitCountOf(filepath.Join(dir, name)); err == nil && n == count {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// splitCountOf parses a file for its split.count alone.
func (o *opener) splitCountOf(path string) (int, error) {
	look := &opener{pool: o.pool, opts: o.opts}
	f, err := look.file(path)
	if err != nil {
		return 0, err
	}
	return splitCount(f), nil
}

// modelNames lists the names in a folder that end in .gguf, sorted.
func modelNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".gguf") && !isDir(dir, e) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// folder opens the one artifact that a folder holds.
func (o *opener) folder(dir string) (*Model, error) {
	names, err := modelNames(dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no .gguf file in this folder", printable(dir))
	}
	var artifacts []string // one path each
	seen := map[shardName]bool{}
	renamedSplits := map[int]bool{}
	for _, name := range names {
		n, named := parseShardName(name)
		n.no = 0
		switch {
		case named && seen[n]:
			continue
		case named:
			seen[n] = true
		default:
			count, err := o.splitCountOf(filepath.Join(dir, name))
			if err == nil && count > 1 && renamedSplits[count] {
				continue
			}
			renamedSplits[count] = err == nil && count > 1
		}
		artifacts = append(artifacts, name)
	}
	if len(artifacts) > 1 {
		return nil, fmt.Errorf("%s: holds %d artifacts, name one of them: %s", printable(dir), len(artifacts), nameList(artifacts))
	}
	return o.shard(filepath.Join(dir, artifacts[0]))
}

// nameList joins a few names for a message.
func nameList(names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, printable(name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(shown, ", ")
}
