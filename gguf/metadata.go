package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
)

// Keys that this package reads or writes itself.
const (
	KeyArchitecture    = "general.architecture"
	KeyAlignment       = "general.alignment"
	KeySplitNo         = "split.no"
	KeySplitCount      = "split.count"
	KeySplitTensors    = "split.tensors.count"
	keySplitPrefix     = "split."
	defaultAlignment   = 32
	maxAlignment       = 1 << 31
	maxWriteAlignment  = 1 << 20
	maxNameLength      = 1<<16 - 1 // bytes of a key or tensor name; the format allows keys no more
	loaderNameLength   = 63        // llama.cpp refuses tensor names that are longer
	maxSplitShards     = 1<<16 - 1 // split.count is a u16
	minTensorInfoBytes = 8 + 4 + 4 + 8
	minPairBytes       = 8 + 4 + 1
	pairRoom           = 1 << 15 // most pairs that room is made for before they are read
)

// Metadata is the ordered list of key-value pairs of a file.
type Metadata struct {
	keys   []string
	values []Value
	index  map[string]int // the first place of each key
}

// NewMetadata returns empty metadata.
func NewMetadata() *Metadata { return &Metadata{index: map[string]int{}} }

// Len returns the number of pairs.
func (m *Metadata) Len() int { return len(m.keys) }

// All yields the pairs in file order, repeated keys included.
func (m *Metadata) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, key := range m.keys {
			if !yield(key, m.values[i]) {
				return
			}
		}
	}
}

// Get returns the value of key.
func (m *Metadata) Get(key string) (Value, bool) {
	i, ok := m.index[key]
	if !ok {
		return Value{}, false
	}
	return m.values[i], true
}

// Text returns a string value, or "" when key is absent or not a string.
func (m *Metadata) Text(key string) string {
	v, _ := m.Get(key)
	s, _ := v.Text()
	return s
}

// Uint returns an integer value of any stored integer type.
func (m *Metadata) Uint(key string) (uint64, bool) {
	v, ok := m.Get(key)
	if !ok {
		return 0, false
	}
	return v.Uint()
}

// Architecture returns general.architecture, or "".
func (m *Metadata) Architecture() string { return m.Text(KeyArchitecture) }

// ArchKey returns the full name of a key that is kept under the architecture, such as
// "kimi-k3.expert_count" for "expert_count".
func (m *Metadata) ArchKey(suffix string) string { return m.Architecture() + "." + suffix }

// Arch returns the value of [Metadata.ArchKey].
func (m *Metadata) Arch(suffix string) (Value, bool) { return m.Get(m.ArchKey(suffix)) }

// ArchUint returns the integer at [Metadata.ArchKey].
func (m *Metadata) ArchUint(suffix string) (uint64, bool) { return m.Uint(m.ArchKey(suffix)) }

// Set replaces the value of key where it stands, or appends the pair.
func (m *Metadata) Set(key string, v Value) {
	if i, ok := m.index[key]; ok {
		m.values[i] = v
		return
	}
	m.add(key, v)
}

// add appends a pair, a repeated key too: reading keeps what the file holds.
func (m *Metadata) add(key string, v Value) {
	if _, ok := m.index[key]; !ok {
		m.index[key] = len(m.keys)
	}
	m.keys = append(m.keys, key)
	m.values = append(m.values, v)
}

// grow makes room for n more pairs.
func (m *Metadata) grow(n int) {
	m.keys, m.values = slices.Grow(m.keys, n), slices.Grow(m.values, n)
}

// Clone returns a copy that can be changed without changing m.
func (m *Metadata) Clone() *Metadata {
	return m.Without(func(string) bool { return false })
}

// Without returns a copy that lacks the keys for which drop is true.
func (m *Metadata) Without(drop func(key string) bool) *Metadata {
	out := NewMetadata()
	out.keys = make([]string, 0, len(m.keys))
	out.values = make([]Value, 0, len(m.keys))
	for key, v := range m.All() {
		if !drop(key) {
			out.add(key, v)
		}
	}
	return out
}

// check refuses pairs that could not be written and read back.
func (m *Metadata) check() error {
	for i, key := range m.keys {
		v := m.values[i]
		switch {
		case m.index[key] != i:
			return fmt.Errorf("key %s stands twice", quoted(key))
		case len(key) > maxNameLength:
			return fmt.Errorf("key %s is too long, at most %d bytes can be written", quoted(key), maxNameLength)
		case v.isUnset():
			return fmt.Errorf("key %s has no value", quoted(key))
		case v.order == binary.ByteOrder(binary.BigEndian):
			return fmt.Errorf("key %s: big-endian values cannot be written", quoted(key))
		}
	}
	return nil
}

// Keys returns the keys in file order.
func (m *Metadata) Keys() []string { return slices.Clone(m.keys) }

// encodedSize returns the bytes that the pairs take in a file.
func (m *Metadata) encodedSize() int64 {
	var n int64
	for key, v := range m.All() {
		n += 8 + int64(len(key)) + 4 + v.Size()
	}
	return n
}
