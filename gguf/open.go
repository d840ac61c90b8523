package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Open opens an artifact by any of its shards, by its single file, or by a folder that
// holds exactly one artifact. Shards are looked up beside the given path by name, so
// that links in a hub's cache work; renamed shards are found by their keys. A set in
// which shards are missing or damaged opens, with those among the model's Problems:
// what is to be derived from a model must be checked by [Model.Err] first. The caller
// closes the model.
func Open(path string, opts ...Option) (*Model, error) {
	return openWith(opts, func(o *opener) (*Model, error) { return o.artifact(path) })
}

// OpenFiles opens the shards of one artifact from an explicit list, in any order. All
// of them must be readable.
func OpenFiles(paths []string, opts ...Option) (*Model, error) {
	return openWith(opts, func(o *opener) (*Model, error) {
		o.parse(paths)
		var files []*File
		for _, path := range paths {
			f, err := o.file(path)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		return o.join(files)
	})
}

// maxParsers is how many headers are read side by side: disks and networks take longer to
// find a file than to deliver its header. Each has a file open.
const maxParsers = maxOpenFiles / 4

// An opener gathers the files of one model.
type opener struct {
	pool   *filePool
	opts   []Option
	parsed map[string]parsedFile // by path: no header is read twice
	found  *problems
}

type parsedFile struct {
	file *File
	err  error
}

func openWith(opts []Option, open func(*opener) (*Model, error)) (*Model, error) {
	o := &opener{pool: newFilePool(), opts: opts, parsed: map[string]parsedFile{}}
	m, err := open(o)
	if err != nil {
		o.pool.close()
		return nil, err
	}
	m.pool = o.pool
	return m, nil
}

// artifact opens what path names.
func (o *opener) artifact(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	if info.IsDir() {
		if path, err = o.only(path); err != nil {
			return nil, err
		}
	}
	name, named := parseShardName(path)
	var siblings []string
	if named {
		siblings = familyPaths(filepath.Dir(path), name)
	}
	o.parse(append(siblings, path))
	f, err := o.file(path)
	if err != nil {
		return nil, err
	}
	if count := splitCount(f); !named && count > 1 {
		if siblings, err = o.renamed(filepath.Dir(path), count); err != nil {
			return nil, err
		}
	}
	return o.withSiblings(f, siblings)
}

// file returns a file, parsed now or before.
func (o *opener) file(path string) (*File, error) {
	o.parse([]string{path})
	p := o.parsed[path]
	return p.file, p.err
}

// parse parses the files that were not parsed before, some of them side by side.
func (o *opener) parse(paths []string) {
	var todo []string
	for _, path := range paths {
		if _, ok := o.parsed[path]; !ok {
			todo, o.parsed[path] = append(todo, path), parsedFile{}
		}
	}
	done := make([]parsedFile, len(todo))
	var group sync.WaitGroup
	slots := make(chan struct{}, maxParsers)
	for i, path := range todo {
		slots <- struct{}{}
		group.Go(func() {
			done[i] = o.parseOne(path)
			<-slots
		})
	}
	group.Wait()
	for i, path := range todo {
		o.parsed[path] = done[i]
	}
}

func (o *opener) parseOne(path string) parsedFile {
	src, err := o.pool.source(path)
	if err != nil {
		return parsedFile{err: err}
	}
	f, err := NewFile(path, src, src.info.Size(), o.opts...)
	return parsedFile{f, err}
}

// join makes the model; it is named after its first shard.
func (o *opener) join(files []*File) (*Model, error) {
	if len(files) == 0 {
		return nil, errors.New("no files to open")
	}
	name := Stem(slices.MinFunc(files, byPlace).Name)
	if o.found == nil {
		o.found = newProblems(printable(name))
	}
	return newModel(name, files, o.found)
}

// withSiblings joins the file that the user named with the others of its set. One of
// those that cannot be read does not hide the rest.
func (o *opener) withSiblings(f *File, siblings []string) (*Model, error) {
	files := []*File{f}
	o.found = newProblems(printable(Stem(f.Name)))
	for _, path := range siblings {
		if path == f.Name {
			continue
		}
		other, err := o.file(path)
		if err != nil {
			o.found.errorf(at(path), "%s", strings.TrimPrefix(err.Error(), printable(path)+": "))
			continue
		}
		files = append(files, other)
	}
	return o.join(files)
}

// familyPaths lists the shards of a split that are there. Only their presence is
// asked for: a link counts as the file it points to.
func familyPaths(dir string, name shardName) []string {
	var paths []string
	for i := range name.count {
		path := filepath.Join(dir, fmt.Sprintf(shardFormat, name.stem, i+1, name.count))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
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
	for _, path := range o.parseUnnamed(dir, names) {
		if f, err := o.file(path); err == nil && splitCount(f) == count {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// parseUnnamed parses the files of a folder whose names do not tell their set, and returns
// their paths.
func (o *opener) parseUnnamed(dir string, names []string) []string {
	var paths []string
	for _, name := range names {
		if _, named := parseShardName(name); !named {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	o.parse(paths)
	return paths
}
