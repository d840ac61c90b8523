package gguf

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"ggufreap/gguf/words"
)

// A Source is a file that may be on another machine. It can be a [Fetcher] too, and tell
// with a method Unchanged() error whether it is still what it was.
type Source interface {
	io.ReaderAt
	Name() string // in messages; its last part, after a slash, is the file's name
	Size() int64
}

// A Folder holds the files of an artifact that may be on another machine.
type Folder interface {
	Name() string // in messages; with a file's name added it is the name of the source
	// Names lists the files. Where that is not possible the error is an
	// [errors.ErrUnsupported].
	Names() ([]string, error)
	// Open returns a file; that there is none is an [fs.ErrNotExist].
	Open(name string) (Source, error)
}

const (
	// maxFarParsers is how many headers far away are read side by side.
	maxFarParsers = 16
	// maxFarRivals bounds the artifacts of a folder of which headers are fetched to tell the
	// model from what goes beside it.
	maxFarRivals = 8
	// maxAskedShards bounds the shards that are asked for one by one where there is no
	// listing.
	maxAskedShards = 1024
	// maxHead bounds the memory for a header that is kept, so that no part of it travels
	// twice.
	maxHead = 32 << 20
)

// OpenFolder opens the artifact that a file of a folder belongs to, or the only one in the
// folder where name is "". Shards belong together by their names alone: no header is
// fetched but those of the artifact. Otherwise it does as [Open] does. A folder that is an
// [io.Closer] is closed with the model; not where there is an error.
func OpenFolder(dir Folder, name string, opts ...Option) (*Model, error) {
	return openWith(opts, func(o *opener) (*Model, error) {
		o.far = dir
		names, err := o.farNames(dir, name)
		if err != nil {
			return nil, err
		}
		for i := range names {
			names[i] = dir.Name() + names[i]
		}
		return o.joinReadable(dir.Name()+name, names)
	})
}

// farNames lists the files of an artifact in a folder.
func (o *opener) farNames(dir Folder, name string) ([]string, error) {
	all, err := dir.Names()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return askedNames(name)
	case err != nil:
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !IsModelFile(name) })
	if name != "" {
		return farFamily(name, all), nil
	}
	var artifacts [][]string
	seen := map[string]bool{}
	for _, name := range all {
		if family := farFamily(name, all); !seen[family[0]] {
			seen[family[0]] = true
			artifacts = append(artifacts, family)
		}
	}
	if len(artifacts) > 1 && len(artifacts) <= maxFarRivals {
		artifacts = o.setFarAside(artifacts)
	}
	switch len(artifacts) {
	case 0:
		return nil, fmt.Errorf("%s: no .gguf file in this folder", printable(dir.Name()))
	case 1:
		return artifacts[0], nil
	}
	var first []string
	for _, family := range artifacts {
		first = append(first, family[0])
	}
	return nil, fmt.Errorf("%s: holds %s, name one of them: %s", printable(dir.Name()), words.Count(len(artifacts), "model"), nameList(first))
}

// setFarAside leaves out what goes beside a model, where there is one: the header of the first
// file of each tells.
func (o *opener) setFarAside(artifacts [][]string) [][]string {
	var sets []*shardSet
	var first []string
	families := map[*shardSet][]string{}
	for _, family := range artifacts {
		set := &shardSet{paths: []string{o.far.Name() + family[0]}}
		sets, first, families[set] = append(sets, set), append(first, set.paths[0]), family
	}
	o.parse(first)
	models, beside := o.setAside(sets)
	if len(models) == 0 {
		return artifacts
	}
	o.aside = o.asides(beside)
	artifacts = nil
	for _, set := range models {
		artifacts = append(artifacts, families[set])
	}
	return artifacts
}

// farFamily lists the files that are shards with name, in order; at least name itself.
func farFamily(name string, all []string) []string {
	own, named := parseShardName(name)
	if !named {
		return []string{name}
	}
	var family []string
	for _, other := range all {
		if n, ok := parseShardName(other); ok && n.stem == own.stem && n.count == own.count {
			family = append(family, other)
		}
	}
	if len(family) == 0 {
		return []string{name}
	}
	return family
}

// askedNames lists the names that the shards of an artifact must have.
func askedNames(name string) ([]string, error) {
	own, named := parseShardName(name)
	switch {
	case !named:
		return []string{name}, nil
	case own.count > maxAskedShards:
		return nil, fmt.Errorf("%s: %d shards are too many to be asked for one by one", printable(name), own.count)
	}
	var names []string
	for i := range own.count {
		names = append(names, ShardName(own.stem, i, own.count))
	}
	if own.count == 1 {
		names[0] = name
	}
	return names, nil
}

// parseFar parses a file of the folder far away.
func (o *opener) parseFar(path string) parsedFile {
	src, err := o.far.Open(strings.TrimPrefix(path, o.far.Name()))
	if err != nil {
		return parsedFile{err: err}
	}
	f, err := newFarFile(src, o.opts)
	return parsedFile{f, err}
}

// newFarFile parses the header of a source, and keeps what was read of it.
func newFarFile(src Source, opts []Option) (*File, error) {
	r := &headKeeper{Source: src, keeping: true}
	var reader io.ReaderAt = r
	if fetcher, ok := src.(Fetcher); ok {
		reader = &farReader{r, fetcher}
	}
	f, err := NewFile(src.Name(), reader, src.Size(), opts...)
	r.mu.Lock()
	r.keeping = false
	r.mu.Unlock()
	return f, err
}

// A headKeeper is a source of which some bytes that were read stay in memory.
type headKeeper struct {
	Source

	mu      sync.Mutex
	keeping bool
	parts   []keptPart
	size    int64
}

type keptPart struct {
	offset int64
	data   []byte
}

// Unchanged asks the source.
func (k *headKeeper) Unchanged() error {
	if c, ok := k.Source.(changing); ok {
		return c.Unchanged()
	}
	return nil
}

// Lend asks the source, once nothing is kept any more.
func (k *headKeeper) Lend(off, n int64, use func(p []byte) error) (int64, error) {
	l, ok := k.Source.(Lender)
	k.mu.Lock()
	ok = ok && !k.keeping
	k.mu.Unlock()
	if !ok || off < 0 {
		return 0, nil
	}
	return l.Lend(off, n, use)
}

// ReadAt reads from memory what is there, and the rest from the source.
func (k *headKeeper) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, next := k.kept(p[done:], off+int64(done))
		if done += n; n > 0 {
			continue
		}
		part := p[done:min(int64(len(p)), int64(done)+next)]
		n, err := k.Source.ReadAt(part, off+int64(done))
		k.keep(part[:n], off+int64(done))
		done += n
		if n < len(part) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return done, err
		}
	}
	return done, nil
}

// kept copies what is in memory at off, or returns how far off the next part is.
func (k *headKeeper) kept(p []byte, off int64) (n int, next int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = maxOffset
	for _, part := range k.parts {
		switch at := off - part.offset; {
		case at >= 0 && at < int64(len(part.data)):
			return copy(p, part.data[at:]), 0
		case at < 0:
			next = min(next, -at)
		}
	}
	return 0, next
}

func (k *headKeeper) keep(p []byte, off int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeping && len(p) > 0 && k.size+int64(len(p)) <= maxHead {
		k.size += int64(len(p))
		k.parts = append(k.parts, keptPart{off, slices.Clone(p)})
	}
}

// A farReader is a headKeeper whose source is a [Fetcher].
type farReader struct {
	*headKeeper
	Fetcher
}
