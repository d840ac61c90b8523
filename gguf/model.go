package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A Model is the shards of one artifact read as one.
type Model struct {
	Name string // the file names' common stem
	// Files are the shards that are there, in order of split.no.
	Files []*File
	// Shards is how many shards the artifact has; more than len(Files) when some
	// are missing.
	Shards int
	// Missing names the shards that are not there.
	Missing []string
	// Problems are those of the set and of each file.
	Problems []Problem

	tensors []*Tensor
	byName  map[string]*Tensor
	pool    *filePool
	sources []*sourceFile
}

// NewModel joins parsed files into a model; they may come in any order. It returns an
// error only when there is no file. What is wrong with the set is listed in Problems.
func NewModel(name string, files ...*File) (*Model, error) {
	if len(files) == 0 {
		return nil, errors.New("a model needs at least one file")
	}
	m := &Model{Name: name, Files: slices.Clone(files)}
	found := &problems{}
	m.join(found)
	m.collect(found)
	m.checkTotal(found)
	m.Problems = *found
	for _, f := range m.Files {
		m.Problems = append(m.Problems, f.Problems...)
	}
	return m, nil
}

// Err joins the problems that are errors; it is nil for a sound and complete model.
func (m *Model) Err() error { return problems(m.Problems).err() }

// Metadata returns the pairs of the first shard, which describe the whole model.
func (m *Model) Metadata() *Metadata { return m.Files[0].Metadata }

// Tensors returns the tensors of all shards in order. The slice must not be changed.
func (m *Model) Tensors() []*Tensor { return m.tensors }

// Tensor returns the tensor of that name, or nil. When a name stands twice, which is a
// problem, it is the first.
func (m *Model) Tensor(name string) *Tensor { return m.byName[name] }

// FileBytes returns the size of all files.
func (m *Model) FileBytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// TensorBytes returns the size of all tensor data without padding.
func (m *Model) TensorBytes() int64 {
	var n int64
	for _, t := range m.tensors {
		n += t.Size
	}
	return n
}

// Contents returns what is written to copy the model: every tensor whole.
func (m *Model) Contents() Contents {
	c := Contents{Version: m.Files[0].Version, Metadata: m.Metadata(), Views: make([]View, len(m.tensors))}
	for i, t := range m.tensors {
		c.Views[i] = t.View()
	}
	return c
}

// Unchanged looks at every file again and returns an error when one was replaced,
// resized or written to since it was opened.
func (m *Model) Unchanged() error {
	for _, s := range m.sources {
		if err := s.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Paths returns the paths by which the files were opened, in shard order.
func (m *Model) Paths() []string {
	paths := make([]string, len(m.Files))
	for i, f := range m.Files {
		paths[i] = f.Name
	}
	return paths
}

// Close closes the files that [Open] opened.
func (m *Model) Close() error {
	if m.pool == nil {
		return nil
	}
	return m.pool.close()
}

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

// join puts the files in order by their keys and notes where keys, names and the
// files that are there disagree.
func (m *Model) join(found *problems) {
	m.Shards = 1
	for _, f := range m.Files {
		m.Shards = max(m.Shards, splitCount(f))
	}
	if len(m.Files) == 1 && splitCount(m.Files[0]) <= 1 {
		m.joinSingle(found)
		return
	}
	slices.SortStableFunc(m.Files, func(a, b *File) int { return placeInSplit(a) - placeInSplit(b) })
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
		found.errorf(printable(m.Name), "incomplete: %d of %d shards are missing, the first is %s", len(m.Missing), m.Shards, printable(m.Missing[0]))
	}
	for _, f := range m.Files[1:] {
		if f.Order != m.Files[0].Order || f.Version != m.Files[0].Version {
			found.errorf(printable(f.Name), "GGUF version or byte order differs from that of %s", printable(m.Files[0].Name))
		}
	}
}

// joinSingle checks a file that says it is a model of its own.
func (m *Model) joinSingle(found *problems) {
	f := m.Files[0]
	if n, ok := parseShardName(f.Name); ok && n.count > 1 {
		found.errorf(printable(f.Name), "the name says shard %d of %d, but the file has no %s", n.no, n.count, KeySplitCount)
	}
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

func (m *Model) joinShard(f *File, seen []*File, found *problems) {
	for _, key := range []string{KeySplitNo, KeySplitCount, KeySplitTensors} {
		want := splitTypes[key]
		if v, ok := f.Metadata.Get(key); ok && v.Type() != want {
			found.warnf(f.whereKey(key), "stored as %s, want %s: llama.cpp refuses it", v.TypeName(), want)
		}
	}
	if n := splitCount(f); n != m.Shards {
		found.errorf(f.whereKey(KeySplitCount), "is %d, in other shards %d", n, m.Shards)
	}
	no, ok := splitNo(f)
	switch {
	case !ok:
		found.errorf(f.whereKey(KeySplitNo), "is missing or not an integer")
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
		found.warnf(printable(f.Name), "is shard %d of %d by its keys, but is not named like one", no+1, m.Shards)
	} else if n.no != no+1 || n.count != m.Shards {
		found.errorf(printable(f.Name), "the name says shard %d of %d, the keys say shard %d of %d", n.no, n.count, no+1, m.Shards)
	}
}

// collect lists the tensors of all files and finds names that stand in two of them.
func (m *Model) collect(found *problems) {
	m.byName = map[string]*Tensor{}
	for i, f := range m.Files {
		for _, t := range f.Tensors {
			t.shard = i
			m.tensors = append(m.tensors, t)
			first, repeated := m.byName[t.Name]
			if !repeated {
				m.byName[t.Name] = t
			} else if first.file != f {
				found.errorf(t.where(), "stands in %s too", printable(first.file.Name))
			}
		}
	}
}

// checkTotal compares split.tensors.count, which counts over all shards, with what is there.
func (m *Model) checkTotal(found *problems) {
	if m.Shards == 1 {
		return
	}
	for _, f := range m.Files {
		want, ok := f.Metadata.Uint(KeySplitTensors)
		switch {
		case !ok:
			found.errorf(f.whereKey(KeySplitTensors), "is missing or not an integer")
		case len(m.Missing) == 0 && want != uint64(len(m.tensors)):
			found.errorf(f.whereKey(KeySplitTensors), "is %d, but the shards hold %d tensors", want, len(m.tensors))
		}
	}
}

// CheckWritable returns an error when the model cannot be the source of another one.
func (m *Model) CheckWritable() error {
	if err := m.Err(); err != nil {
		return err
	}
	if f := m.Files[0]; f.Order == binary.BigEndian {
		return fmt.Errorf("%s: big-endian files can be inspected and hashed, not written", printable(f.Name))
	}
	return nil
}

// splitTypes are the value types that llama.cpp demands.
var splitTypes = map[string]ValueType{KeySplitNo: Uint16, KeySplitCount: Uint16, KeySplitTensors: Int32}
