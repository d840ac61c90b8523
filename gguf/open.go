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
	f, err := o.file(path)
	if err != nil {
		return nil, err
	}
	siblings, err := o.siblings(f)
	if err != nil {
		return nil, err
	}
	return o.withSiblings(f, siblings)
}

// file parses a file.
func (o *opener) file(path string) (*File, error) {
	if p, ok := o.parsed[path]; ok {
		return p.file, p.err
	}
	var p parsedFile
	src, err := o.pool.source(path)
	if err == nil {
		p.file, err = NewFile(path, src, src.info.Size(), o.opts...)
	}
	p.err = err
	o.parsed[path] = p
	return p.file, p.err
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

// siblings lists the paths of the set that a file belongs to, as far as they exist.
func (o *opener) siblings(f *File) ([]string, error) {
	dir := filepath.Dir(f.Name)
	name, named := parseShardName(f.Name)
	switch {
	case named && max(name.count, splitCount(f)) > 1:
		return familyPaths(dir, name), nil
	case splitCount(f) > 1:
		return o.renamed(dir, splitCount(f))
	}
	return nil, nil
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
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, named := parseShardName(name); named {
			continue
		}
		if f, err := o.file(path); err == nil && splitCount(f) == count {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
