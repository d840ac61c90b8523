package gguf

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A shardSet is the files in a folder that belong together.
type shardSet struct {
	setKey
	paths []string
}

// A setKey is what the files of one set have in common: stem and count by their names, or
// the count in their keys when they were renamed. A file of its own has count 0.
type setKey struct {
	named bool
	stem  string
	count int
}

// setOf lists the files of the set that a file belongs to. A folder is looked through only
// when names do not tell the whole set.
func (o *opener) setOf(path string) ([]string, error) {
	dir := filepath.Dir(path)
	known := []string{path}
	if name, named := parseShardName(path); named {
		if known = o.familyPaths(dir, name); len(known) < name.count && len(o.findPieces(dir)) > 0 {
			known = o.familyPaths(dir, name)
		}
		if len(known) == name.count {
			return known, nil
		}
	} else if f, err := o.file(path); err != nil || splitCount(f) <= 1 {
		return known, err
	}
	names, err := o.modelNames(dir)
	if err != nil {
		return known, nil // a folder may let its files be read, but not be listed
	}
	for _, path := range append(known, path) {
		names = append(names, filepath.Base(path))
	}
	slices.Sort(names)
	set := o.find(path, o.sets(dir, slices.Compact(names)))
	return set.paths, o.checkPlaces(dir, set)
}

// find returns the set that a file belongs to, by this name or by another one of it.
func (o *opener) find(path string, sets []*shardSet) *shardSet {
	for _, set := range sets {
		if slices.Contains(set.paths, path) {
			return set
		}
	}
	return sets[slices.IndexFunc(sets, func(set *shardSet) bool {
		return slices.ContainsFunc(set.paths, func(other string) bool { return o.same(path, other) })
	})]
}

// sets groups files of a folder, in the order of their names.
func (o *opener) sets(dir string, names []string) []*shardSet {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(dir, name)
	}
	o.parse(paths)
	var sets []*shardSet
	seen := map[setKey]*shardSet{}
	for _, path := range o.withoutLinks(paths) {
		key := o.setKey(path)
		set := seen[key]
		if set == nil || key.count == 0 {
			set = &shardSet{setKey: key}
			seen[key], sets = set, append(sets, set)
		}
		set.paths = append(set.paths, path)
	}
	return o.reunite(sets)
}

func (o *opener) setKey(path string) setKey {
	if n, named := parseShardName(path); named {
		return setKey{true, n.stem, n.count}
	}
	if f, err := o.file(path); err == nil && splitCount(f) > 1 {
		return setKey{count: splitCount(f)}
	}
	return setKey{}
}

// withoutLinks leaves out other names of files that are listed already. A name that tells
// the place in a split is never left out; before links go files that are none.
func (o *opener) withoutLinks(paths []string) []string {
	rank := make(map[string]int, len(paths))
	for _, path := range paths {
		if _, named := parseShardName(path); named {
			continue
		}
		rank[path] = 1
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			rank[path] = 2
		}
	}
	seen := distinctFiles{}
	var list []string
	for _, path := range slices.SortedStableFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(rank[a], rank[b]) }) {
		if f := o.parsed[path].file; f == nil || seen.add(f) == nil || rank[path] == 0 {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// reunite puts renamed shards into the set of which the named ones are, where one alone
// lacks them.
func (o *opener) reunite(sets []*shardSet) []*shardSet {
	var list []*shardSet
	for _, set := range sets {
		var homes []*shardSet
		for _, other := range sets {
			if !set.named && set.count > 0 && other.named && set.count == other.count && o.fits(set, other) {
				homes = append(homes, other)
			}
		}
		if len(homes) == 1 {
			homes[0].paths = append(homes[0].paths, set.paths...)
		} else {
			list = append(list, set)
		}
	}
	return list
}

// fits reports whether renamed shards have, by their keys, each a place of its own that no
// name of a set has taken.
func (o *opener) fits(renamed, set *shardSet) bool {
	taken := map[int]bool{}
	for _, path := range set.paths {
		n, _ := parseShardName(path)
		taken[n.no-1] = true
	}
	for _, path := range renamed.paths {
		no, ok := splitNo(o.parsed[path].file)
		if !ok || no >= set.count || taken[no] {
			return false
		}
		taken[no] = true
	}
	return true
}

// checkPlaces refuses renamed shards of which two have one place: they are those of two
// models, and nothing tells which belongs to which.
func (o *opener) checkPlaces(dir string, set *shardSet) error {
	taken := map[int]string{}
	for _, path := range set.paths {
		f := o.parsed[path].file
		if _, named := parseShardName(path); named || f == nil {
			continue
		}
		no, ok := splitNo(f)
		if first := taken[no]; ok && first != "" {
			return fmt.Errorf("%s: holds renamed shards of more than one model: %s and %s are both shard %d of %d by their keys; name all files of one model",
				printable(dir), printable(filepath.Base(first)), printable(filepath.Base(path)), no+1, set.count)
		}
		taken[no] = path
	}
	return nil
}

// same reports whether two paths lead to one file.
func (o *opener) same(a, b string) bool {
	f, g := o.parsed[a].file, o.parsed[b].file
	return f != nil && g != nil && sameFile(f, g)
}

// sameFile reports whether two files were opened from one file of the system.
func sameFile(f, g *File) bool {
	a, ok := f.r.(*sourceFile)
	b, okOther := g.r.(*sourceFile)
	return ok && okOther && os.SameFile(a.info, b.info)
}

// distinctFiles is files that are not the same, by what tells most of them apart.
type distinctFiles map[fileTraits][]*File

type fileTraits struct {
	size int64
	no   int
}

// add adds a file, unless one is there that is the same; that one is returned.
func (d distinctFiles) add(f *File) *File {
	no, _ := splitNo(f)
	traits := fileTraits{f.Size, no}
	for _, other := range d[traits] {
		if sameFile(f, other) {
			return other
		}
	}
	d[traits] = append(d[traits], f)
	return nil
}
