package gguf

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf/words"
)

// splitTypes are the value types of the split keys that llama.cpp demands.
var splitTypes = []struct {
	key  string
	want ValueType
}{{KeySplitNo, Uint16}, {KeySplitCount, Uint16}, {KeySplitTensors, Int32}}

// splitNo returns split.no of a file.
func splitNo(f *File) (int, bool) {
	n, ok := f.Metadata.Uint(KeySplitNo)
	return int(min(n, maxSplitShards)), ok
}

// splitCount returns split.count, 0 when the file is not part of a split.
func splitCount(f *File) int {
	n, _ := f.Metadata.Uint(KeySplitCount)
	return int(min(n, maxSplitShards))
}

// placeInSplit is split.no, or what the name says when the key is missing.
func placeInSplit(f *File) int {
	if n, ok := splitNo(f); ok {
		return n
	}
	if n, ok := parseShardName(f.Name); ok {
		return n.no - 1
	}
	return maxSplitShards
}

func byPlace(a, b *File) int { return cmp.Compare(placeInSplit(a), placeInSplit(b)) }

// statedShards returns the number of shards that most files agree on, by split.count and
// then by their names. Of numbers that have the same support it is the least: the others
// declare more shards missing. It is 0 when no split.count says.
func statedShards(files []*File) int {
	type support struct{ keys, names int }
	votes := map[int]support{}
	for _, f := range files {
		if n := splitCount(f); n > 0 {
			v := votes[n]
			votes[n] = support{v.keys + 1, v.names}
		}
		if n, named := parseShardName(f.Name); named {
			v := votes[n.count]
			votes[n.count] = support{v.keys, v.names + 1}
		}
	}
	most := 0
	for _, n := range slices.Sorted(maps.Keys(votes)) {
		v, best := votes[n], votes[most]
		if v.keys > best.keys || v.keys > 0 && v.keys == best.keys && v.names > best.names {
			most = n
		}
	}
	return most
}

// join puts the files in order by their keys and notes where keys, names and the
// files that are there disagree.
func (m *Model) join(found *problems) {
	slices.SortStableFunc(m.Files, byPlace)
	for _, f := range m.Files {
		f.checkSplitTypes(found)
	}
	stated := statedShards(m.Files)
	if stated > 1 && len(m.Files) == 1 && len(m.Unreadable) == 0 && m.Files[0].isWhole() {
		m.Shards = 1
		m.Files[0].checkLeftOver(found)
		return
	}
	m.Shards = max(1, stated)
	if stated <= 1 {
		m.Shards = len(m.Files)
	} else if len(m.Files) > stated {
		found.errorf(at(m.Name), "%d files, but a split of %d: they are not the shards of one model", len(m.Files), stated)
	}
	if len(m.Files) == 1 && m.Shards == 1 {
		m.Files[0].checkAlone(found)
		return
	}
	seen := make([]*File, m.Shards)
	for _, f := range m.Files {
		m.joinShard(f, stated, seen, found)
	}
	if stated > 1 {
		m.findMissing(seen, found)
	}
	m.checkKeys(found)
	m.checkAlike(found)
}

// checkAlike looks for shards of another byte order or version than the first.
func (m *Model) checkAlike(found *problems) {
	first := m.Files[0]
	for _, f := range m.Files[1:] {
		if f.Order != first.Order {
			found.errorf(at(f.Name), "%s, but %s is %s", orderName(f.Order), printable(first.Name), orderName(first.Order))
		}
		if f.Version != first.Version {
			found.warnf(at(f.Name), "GGUF version %d, but %s has version %d", f.Version, printable(first.Name), first.Version)
		}
	}
}

// findMissing lists the places that no file has by its keys, nor by its name.
func (m *Model) findMissing(seen []*File, found *problems) {
	there := make([]bool, m.Shards)
	for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
		if n, named := parseShardName(path); named && n.count == m.Shards {
			there[n.no-1] = true
		}
	}
	for i, f := range seen {
		if f == nil && !there[i] {
			m.Missing = append(m.Missing, ShardName(m.Name, i, m.Shards))
		}
	}
	if n := len(m.Missing); n > 0 {
		found.errorf(at(m.Name), "incomplete: %s of %s %s missing: %s", words.Group(n), words.Count(m.Shards, "shard"), words.Verb(n, "is", "are"), nameList(m.Missing))
	}
}

// checkKeys looks for metadata outside the first shard, from which alone readers take it. What
// stands in a later shard only is lost with the next cut; what differs is a contradiction.
func (m *Model) checkKeys(found *problems) {
	first := m.Files[0]
	if !m.HasMetadata() {
		return
	}
	for _, f := range m.Files[1:] {
		for key, v := range f.Metadata.All() {
			if key == KeyAlignment || strings.HasPrefix(key, splitPrefix) {
				continue
			}
			switch have, ok := first.Metadata.Get(key); {
			case !ok:
				found.warnf(f.whereKey(key), "stands in a later shard only: readers take metadata from the first one, and a new cut leaves it out")
			case !v.equal(have):
				found.errorf(f.whereKey(key), "is %s, in the first shard %s", v.Describe(), have.Describe())
			}
		}
	}
}

// splitPrefix begins the keys that say how a model is split.
const splitPrefix = "split."

// checkSplitTypes notes split keys that are not stored as llama.cpp wants them.
func (f *File) checkSplitTypes(found *problems) {
	for _, s := range splitTypes {
		v, ok := f.Metadata.Get(s.key)
		if !ok {
			continue
		}
		if _, ok := v.Uint(); !ok {
			found.errorf(f.whereKey(s.key), "is %s, want a count stored as %s", v.Describe(), s.want)
		} else if v.Type() != s.want {
			found.warnf(f.whereKey(s.key), "stored as %s, want %s: llama.cpp refuses it", v.TypeName(), s.want)
		}
	}
}

// checkAlone checks a file that says it is a model of its own.
func (f *File) checkAlone(found *problems) {
	n, named := parseShardName(f.Name)
	_, hasCount := f.Metadata.Get(KeySplitCount)
	switch {
	case named && n.count > 1 && hasCount:
		found.errorf(at(f.Name), "the name says shard %d of %d, %s says it is one file", n.no, n.count, KeySplitCount)
	case named && n.count > 1:
		found.errorf(at(f.Name), "the name says shard %d of %d, but the file has no %s", n.no, n.count, KeySplitCount)
	}
	if no, ok := splitNo(f); ok && no != 0 {
		found.errorf(f.whereKey(KeySplitNo), "is %d in a model of one file, want 0", no)
	}
}

// joinShard puts a file in its place; stated is the shard count that most files agree on.
// Keys that are no counts were reported before.
func (m *Model) joinShard(f *File, stated int, seen []*File, found *problems) {
	v, there := f.Metadata.Get(KeySplitCount)
	switch n, ok := v.Uint(); {
	case !there:
		found.errorf(f.whereKey(KeySplitCount), "is missing: the file does not say that it is a shard")
		return
	case !ok:
	case n > maxSplitShards:
		found.errorf(f.whereKey(KeySplitCount), "is %d, at most %d are possible", n, maxSplitShards)
	case int(n) != stated && n > 0:
		found.errorf(f.whereKey(KeySplitCount), "is %d, in other shards %d", n, stated)
	case int(n) != m.Shards:
		found.errorf(f.whereKey(KeySplitCount), "is %s, but %s %s there", words.Group(n), words.Count(len(m.Files), "file"), words.Verb(len(m.Files), "is", "are"))
	}
	_, there = f.Metadata.Get(KeySplitNo)
	no, ok := splitNo(f)
	switch {
	case !there:
		found.errorf(f.whereKey(KeySplitNo), "is missing")
		return
	case !ok:
		return
	case no >= m.Shards:
		found.errorf(f.whereKey(KeySplitNo), "is %d, want 0 to %d: it counts from 0", no, m.Shards-1)
		return
	case seen[no] != nil:
		found.errorf(f.whereKey(KeySplitNo), "is %d, as in %s", no, printable(seen[no].Name))
		return
	}
	seen[no] = f
	if n, named := parseShardName(f.Name); !named {
		found.warnf(at(f.Name), "is shard %d of %d by its keys, but is not named like one: llama.cpp will not find it", no+1, m.Shards)
	} else if n.no != no+1 || n.count != m.Shards {
		found.errorf(at(f.Name), "the name says shard %d of %d, the keys say shard %d of %d", n.no, n.count, no+1, m.Shards)
	}
}

// collect lists the tensors of all files and finds names that stand in two of them.
func (m *Model) collect(found *problems) {
	count := 0
	for i, f := range m.Files {
		f.shard = i
		count += len(f.Tensors)
	}
	if len(m.Files) == 1 {
		m.tensors = m.Files[0].names
		return
	}
	m.tensors = newNameIndex(int64(count))
	for _, f := range m.Files {
		for i, t := range f.Tensors {
			if first := m.tensors.addHashed(t, f.names.hashes[i]); first >= 0 && m.tensors.list[first].file != f {
				found.errorf(t.where(), "stands in %s too", printable(m.tensors.list[first].file.Name))
			}
		}
	}
}

// checkTotal compares split.tensors.count, which counts over all shards, with what is
// there.
func (m *Model) checkTotal(found *problems) {
	for _, f := range m.Files {
		_, there := f.Metadata.Get(KeySplitTensors)
		want, ok := f.Metadata.Uint(KeySplitTensors)
		switch {
		case !there && splitCount(f) > 1:
			found.errorf(f.whereKey(KeySplitTensors), "is missing")
		case ok && m.Complete() && want != uint64(len(m.tensors.list)):
			found.errorf(f.whereKey(KeySplitTensors), "is %s, but the model holds %s", words.Group(want), words.Count(len(m.tensors.list), "tensor"))
		case ok && !m.Complete() && want < uint64(len(m.tensors.list)):
			found.errorf(f.whereKey(KeySplitTensors), "is %s, but %s of %s hold %s already", words.Group(want), words.Group(len(m.Files)), words.Count(m.Shards, "shard"), words.Count(len(m.tensors.list), "tensor"))
		}
	}
}

// checkArchitecture looks for the key that everything else in a model hangs on.
func (m *Model) checkArchitecture(found *problems) {
	f := m.Files[0]
	if !m.HasMetadata() || m.Companion() == companions["imatrix"] { // which has none
		return
	}
	v, ok := f.Metadata.Get(KeyArchitecture)
	if !ok {
		found.warnf(f.whereKey(KeyArchitecture), "is missing: llama.cpp refuses such a file")
	} else if v.Type() != Text {
		found.errorf(f.whereKey(KeyArchitecture), "stored as %s, want str", v.TypeName())
	}
}
