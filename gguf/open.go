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

	"ggufreap/gguf/words"
)

// Open opens an artifact by any of its shards, by its single file, or by a folder that
// holds exactly one artifact, see [ModelFolder]; what goes beside a model there is set
// aside. Shards are looked up beside the given path by name, so
// that links in a hub's cache work; renamed shards are found by their keys. A set in
// which shards are missing or damaged opens, with those among the model's Problems, as
// long as one shard can be read: what is to be derived from a model must be checked by
// [Model.Err] first. The caller closes the model.
func Open(path string, opts ...Option) (*Model, error) {
	return openWith(opts, func(o *opener) (*Model, error) { return o.artifact(path) })
}

// OpenFiles opens the shards of one artifact from an explicit list, in any order. All
// of them must be readable, and none may be named twice.
func OpenFiles(paths []string, opts ...Option) (*Model, error) {
	return openWith(opts, func(o *opener) (*Model, error) {
		if len(paths) == 0 {
			return nil, errors.New("no files to open")
		}
		paths, err := o.wholes(paths)
		if err != nil {
			return nil, err
		}
		o.parse(paths)
		var files []*File
		seen := distinctFiles{}
		for _, path := range paths {
			f, err := o.file(path)
			if err != nil {
				return nil, err
			}
			if twin := seen.add(f); twin != nil {
				return nil, fmt.Errorf("%s and %s are the same file", printable(twin.Name), printable(path))
			}
			files = append(files, f)
		}
		return NewModel(commonStem(files), files...)
	})
}

// wholes puts files in the places of their pieces, once each.
func (o *opener) wholes(paths []string) ([]string, error) {
	var list []string
	for _, path := range paths {
		whole, err := o.wholeOf(path)
		if err != nil {
			return nil, err
		}
		if whole == path || !slices.Contains(list, whole) {
			list = append(list, whole)
		}
	}
	return list, nil
}

// maxParsers is how many headers are read side by side: disks and networks take longer to
// find a file than to deliver its header. Each has a file open.
const maxParsers = maxOpenFiles / 4

// An opener gathers the files of one model.
type opener struct {
	pool   *filePool
	far    Folder // nil for files of this machine
	opts   []Option
	parsed map[string]parsedFile           // by path: no header is read twice
	aside  []Aside                         // of the folder that was named
	pieces map[string]map[string]*pieceSet // by folder, and there by the path of the whole file
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
	m.pool, m.folder, m.Aside = o.pool, o.far, o.aside
	return m, nil
}

// artifact opens what path names.
func (o *opener) artifact(path string) (*Model, error) {
	typed := path
	path, err := o.wholeOf(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	list := o.setOf
	if o.piecesOf(path) == nil {
		info, err := os.Stat(typed)
		if err != nil {
			return nil, explainLink(typed, err)
		}
		if info.IsDir() {
			list = o.only
		}
	}
	paths, err := list(path)
	if err != nil {
		return nil, err
	}
	return o.joinReadable(path, paths)
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
	if o.far != nil {
		slots = make(chan struct{}, maxFarParsers)
	}
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
	if o.far != nil {
		return o.parseFar(path)
	}
	if set := o.piecesOf(path); set != nil {
		return o.parseJoined(set)
	}
	src, err := o.pool.source(path)
	if err != nil {
		return parsedFile{err: explainLink(path, err)}
	}
	f, err := NewFile(path, src, src.info.Size(), o.opts...)
	return parsedFile{f, err}
}

// explainLink says of a file that is not there that its link is: in a hub's cache the blob may be
// gone.
func explainLink(path string, err error) error {
	if to, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: link that leads nowhere, to %q: %w", printable(path), to, fs.ErrNotExist)
	}
	return err
}

// parseJoined parses a file that is read from pieces.
func (o *opener) parseJoined(set *pieceSet) parsedFile {
	src, err := o.pool.joined(set.paths)
	if err != nil {
		return parsedFile{err: err}
	}
	f, err := NewFile(set.whole, src, src.size(), o.opts...)
	switch doubt := fmt.Sprintf("is read from %s, of %s together: %s", words.Count(len(set.paths), "piece"), words.Count(src.size(), "byte"), src.doubt(set.count)); {
	case err != nil && !MachineFault(err):
		err = fmt.Errorf("%w; it %s", err, doubt)
	case f != nil && f.Trailing() > 0:
		f.Problems = append(f.Problems, Problem{Severity: Warning, Where: printable(set.whole), What: fmt.Sprintf("is read from %s, of which the last, %s, may be too long or of another file", words.Count(len(set.paths), "piece"), base(set.paths[len(set.paths)-1]))})
	case f != nil && f.Err() != nil:
		f.Problems = append(f.Problems, Problem{Severity: Warning, Where: printable(set.whole), What: doubt})
	}
	return parsedFile{f, err}
}

// joinReadable makes a model of the paths, of which one led here. Files that cannot be read
// do not hide the others.
func (o *opener) joinReadable(named string, paths []string) (*Model, error) {
	o.parse(paths)
	var files []*File
	var unreadable []string
	for _, path := range paths {
		f, err := o.file(path)
		if MachineFault(err) {
			return nil, err
		}
		if err == nil {
			files = append(files, f)
		} else if !errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere is a missing shard
			unreadable = append(unreadable, path)
		}
	}
	if len(files) == 0 {
		if !slices.Contains(paths, named) {
			named = paths[0]
		}
		return nil, o.parsed[named].err
	}
	name := commonStem(files)
	found := newProblems(printable(name))
	var pointers []string
	for _, path := range unreadable {
		err := o.parsed[path].err
		found.errorf(at(path), "%s", strings.TrimPrefix(err.Error(), printable(path)+": "))
		if format, ok := errors.AsType[*FormatError](err); ok && format.Pointer {
			pointers = append(pointers, path)
		}
	}
	m := newModel(name, files, unreadable, found)
	m.Pointers = pointers
	return m, nil
}

// commonStem names a model after the first of its files that is named like a shard, or
// else after the first one.
func commonStem(files []*File) string {
	files = slices.SortedStableFunc(slices.Values(files), byPlace)
	for _, f := range files {
		if n, named := parseShardName(f.Name); named {
			return n.stem
		}
	}
	return Stem(files[0].Name)
}

// familyPaths lists the shards of a split that are there, in pieces or whole. Only their
// presence is asked for: a link counts as the file it points to, a folder is none.
func (o *opener) familyPaths(dir string, name shardName) []string {
	var paths []string
	for i := range name.count {
		path := filepath.Join(dir, fmt.Sprintf(shardFormat, name.stem, i+1, name.count))
		if o.piecesOf(path) != nil {
			paths = append(paths, path)
		} else if info, err := os.Stat(path); err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			paths = append(paths, path)
		}
	}
	return paths
}
