package gguf

import (
	"cmp"
	"slices"
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

// join puts the files in order by their keys and notes where keys, names and the
// files that are there disagree.
func (m *Model) join(found *problems) {
	slices.SortStableFunc(m.Files, byPlace)
	m.Shards = 1
	for _, f := range m.Files {
		m.Shards = max(m.Shards, splitCount(f))
		f.checkSplitTypes(found)
	}
	if len(m.Files) == 1 && m.Shards == 1 {
		m.Files[0].checkAlone(found)
		return
	}
	seen := make([]*File, m.Shards)
	for _, f := range m.Files {
		m.joinShard(f, seen, found)
	}
	for i, f := range seen {
		if f == nil {
			m.Missing = append(m.Missing, ShardName(m.Name, i, m.Shards))
		}
	}
	if len(m.Missing) > 0 {
		found.errorf(at(m.Name), "incomplete: %d of %d shards are missing: %s", len(m.Missing), m.Shards, nameList(m.Missing))
	}
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

// checkSplitTypes notes split keys that are not stored as llama.cpp wants them.
func (f *File) checkSplitTypes(found *problems) {
	for _, s := range splitTypes {
		v, ok := f.Metadata.Get(s.key)
		if !ok || v.Type() == s.want {
			continue
		}
		if _, ok := v.Uint(); ok {
			found.warnf(f.whereKey(s.key), "stored as %s, want %s: llama.cpp refuses it", v.TypeName(), s.want)
		} else {
			found.errorf(f.whereKey(s.key), "is not a count but %s, want %s", v.TypeName(), s.want)
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

func (m *Model) joinShard(f *File, seen []*File, found *problems) {
	switch n, ok := f.Metadata.Uint(KeySplitCount); {
	case !ok:
		found.errorf(f.whereKey(KeySplitCount), "is missing or not a count: the file does not say that it is a shard")
	case n > maxSplitShards:
		found.errorf(f.whereKey(KeySplitCount), "is %d, at most %d are possible", n, maxSplitShards)
	case int(n) != m.Shards:
		found.errorf(f.whereKey(KeySplitCount), "is %d, in other shards %d", n, m.Shards)
	}
	no, ok := splitNo(f)
	switch {
	case !ok:
		found.errorf(f.whereKey(KeySplitNo), "is missing or not a count")
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
		for _, t := range f.Tensors {
			if first := m.tensors.add(t); first >= 0 && m.tensors.list[first].file != f {
				found.errorf(t.where(), "stands in %s too", printable(m.tensors.list[first].file.Name))
			}
		}
	}
}

// checkTotal compares split.tensors.count, which counts over all shards, with what is
// there.
func (m *Model) checkTotal(found *problems) {
	for _, f := range m.Files {
		want, ok := f.Metadata.Uint(KeySplitTensors)
		switch {
		case !ok && m.Shards > 1:
			found.errorf(f.whereKey(KeySplitTensors), "is missing or not a count")
		case ok && len(m.Missing) == 0 && want != uint64(len(m.tensors.list)):
			found.errorf(f.whereKey(KeySplitTensors), "is %d, but the model holds %d tensors", want, len(m.tensors.list))
		case ok && len(m.Missing) > 0 && want < uint64(len(m.tensors.list)):
			found.errorf(f.whereKey(KeySplitTensors), "is %d, but %d of %d shards hold %d tensors already", want, len(m.Files), m.Shards, len(m.tensors.list))
		}
	}
}

// checkArchitecture looks for the key that everything else in a model hangs on.
func (m *Model) checkArchitecture(found *problems) {
	f := m.Files[0]
	if placeInSplit(f) > 0 && m.Shards > 1 {
		return // the shard that should have it is missing
	}
	v, ok := f.Metadata.Get(KeyArchitecture)
	if !ok {
		found.warnf(f.whereKey(KeyArchitecture), "is missing: llama.cpp refuses such a file")
	} else if v.Type() != Text {
		found.errorf(f.whereKey(KeyArchitecture), "stored as %s, want str", v.TypeName())
	}
}
