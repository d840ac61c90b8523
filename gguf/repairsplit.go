package gguf

import (
	"cmp"
	"slices"
)

// isWhole reports whether a file whose keys call it a shard is a whole model: it is not
// named like a shard, has the metadata, and holds as many tensors as all shards together. Of one
// that is named so the total may be its own alone, and the others missing.
func (f *File) isWhole() bool {
	_, named := parseShardName(f.Name)
	total, ok := f.Metadata.Uint(KeySplitTensors)
	count, _ := f.Metadata.Uint(KeySplitCount)
	return !named && ok && count <= maxSplitShards && total > 0 && total == uint64(len(f.Tensors)) && f.Metadata.Architecture() != ""
}

// checkLeftOver notes the split keys of a file that is whole.
func (f *File) checkLeftOver(found *problems) {
	found.errorf(f.whereKey(KeySplitCount), "is %d, but the file is whole: it holds all %d tensors that %s counts", splitCount(f), len(f.Tensors), KeySplitTensors)
}

// SplitFaults returns the errors of a model that new split keys mend: a total of tensors that
// does not fit, keys that a whole file has kept. The error is of whatever else is
// in the way of writing the model.
func (m *Model) SplitFaults() ([]Problem, error) {
	mendable := map[string]bool{}
	for _, f := range m.Files {
		mendable[f.whereKey(KeySplitTensors).words] = true
		if len(m.Files) == 1 {
			mendable[f.whereKey(KeySplitCount).words] = true
			mendable[f.whereKey(KeySplitNo).words] = true
		}
	}
	var faults, others []Problem
	for _, p := range m.Problems {
		switch {
		case p.Severity != Error:
		case m.Complete() && mendable[p.Where]:
			faults = append(faults, p)
		default:
			others = append(others, p)
		}
	}
	return faults, cmp.Or(joinErrors(others), m.checkOrder())
}

// ByNames returns the same files as the shards that their names say they are, whatever their
// split keys say, and the errors of the model that this does away with. Where the first by its
// name has no metadata, which a later one has, it is the keys that say. It is nil where neither
// tell all: a file is named otherwise, missing, or cannot be read.
func (m *Model) ByNames() (*Model, []Problem) {
	ordered := m.filesByName()
	if ordered != nil && lacksMetadata(ordered) { // the names lie: a new cut would lose it
		ordered = m.filesByNumber()
	}
	if ordered == nil {
		return nil, nil
	}
	found := newProblems(printable(m.Name))
	named := &Model{Name: m.Name, Files: ordered, Shards: len(ordered), Aside: m.Aside, folder: m.folder}
	named.checkAlike(found)
	named.collect(found)
	named.checkArchitecture(found)
	named.Problems = found.all()
	for _, f := range ordered {
		named.Problems = append(named.Problems, f.Problems...)
	}
	return named, slices.DeleteFunc(slices.Clone(m.Problems), func(p Problem) bool {
		return p.Severity != Error || slices.Contains(named.Problems, p)
	})
}

// filesByName returns the files in the order of their names, nil where those are not the names
// of all shards of one model.
func (m *Model) filesByName() []*File {
	ordered := make([]*File, len(m.Files))
	for _, f := range m.Files {
		n, named := parseShardName(f.Name)
		if !named || n.stem != m.Name || n.count != len(m.Files) || ordered[n.no-1] != nil || len(m.Unreadable) > 0 {
			return nil
		}
		ordered[n.no-1] = f
	}
	return ordered
}

// lacksMetadata reports whether the first file has no metadata, and a later one has.
func lacksMetadata(files []*File) bool {
	has := func(f *File) bool { return f.Metadata.Architecture() != "" }
	return !has(files[0]) && slices.ContainsFunc(files, has)
}

// filesByNumber returns the files in the order of their split.no, nil where those are not the
// numbers of all shards of one model, or where the first of them lacks metadata too.
func (m *Model) filesByNumber() []*File {
	ordered := make([]*File, len(m.Files))
	for _, f := range m.Files {
		no, ok := splitNo(f)
		if !ok || no >= len(ordered) || ordered[no] != nil {
			return nil
		}
		ordered[no] = f
	}
	if lacksMetadata(ordered) {
		return nil
	}
	return ordered
}

// WithoutSplit returns the pairs without those that say how a model is split, as a new split
// writes its own.
func (m *Metadata) WithoutSplit() *Metadata {
	return m.Without(func(key string) bool { return key == KeySplitNo || key == KeySplitCount || key == KeySplitTensors })
}
