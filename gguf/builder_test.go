package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// A builder writes the bytes of a file field by field, as the format's definition has
// them. It shares no code with the writer, so that it can be wrong on purpose.
type builder struct {
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	b []byte
}

func little() *builder { return &builder{order: binary.LittleEndian} }
func big() *builder    { return &builder{order: binary.BigEndian} }

// add appends fields: a string with its length before it, bytes as they are, numbers in
// the width of their type.
func (b *builder) add(fields ...any) *builder {
	for _, field := range fields {
		switch field := field.(type) {
		case string:
			b.b = b.order.AppendUint64(b.b, uint64(len(field)))
			b.b = append(b.b, field...)
		case []byte:
			b.b = append(b.b, field...)
		default:
			var err error
			if b.b, err = binary.Append(b.b, b.order, field); err != nil {
				panic(err)
			}
		}
	}
	return b
}

// head adds the fixed part of a version 3 header.
func (b *builder) head(tensors, pairs uint64) *builder { return b.headOf(3, tensors, pairs) }

func (b *builder) headOf(version uint32, tensors, pairs uint64) *builder {
	return b.add([]byte("GGUF"), version, tensors, pairs)
}

// pair adds a key, its value type and whatever the value is made of.
func (b *builder) pair(key string, t ValueType, value ...any) *builder {
	return b.add(key, uint32(t)).add(value...)
}

// info adds a line of the tensor table.
func (b *builder) info(name string, t Type, offset uint64, dims ...uint64) *builder {
	b.add(name, uint32(len(dims)))
	for _, d := range dims {
		b.add(d)
	}
	return b.add(uint32(t), offset)
}

// pad adds zeros up to a multiple of 32.
func (b *builder) pad() *builder {
	for len(b.b)%32 != 0 {
		b.b = append(b.b, 0)
	}
	return b
}

// data adds n bytes of tensor data.
func (b *builder) data(n int) *builder { return b.add(bytes.Repeat([]byte{0xd7}, n)) }

func parse(b []byte, opts ...Option) (*File, error) {
	return NewFile("m.gguf", bytes.NewReader(b), int64(len(b)), opts...)
}

// mustParse parses bytes that must be readable as GGUF.
func mustParse(t *testing.T, b []byte, opts ...Option) *File {
	t.Helper()
	f, err := parse(b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// wantProblems compares problems with the wanted ones, each written as its severity and
// a part of its text.
func wantProblems(t *testing.T, got []Problem, want ...string) {
	t.Helper()
	for i, p := range got {
		text := fmt.Sprintf("%s: %s", p.Severity, p)
		if i >= len(want) {
			t.Errorf("unexpected problem: %s", text)
			continue
		}
		severity, part, _ := strings.Cut(want[i], ": ")
		if p.Severity.String() != severity || !strings.Contains(p.String(), part) {
			t.Errorf("problem %d:\n got %s\nwant %s", i, text, want[i])
		}
	}
	for _, w := range want[min(len(got), len(want)):] {
		t.Errorf("problem not found: %s", w)
	}
}

// wantError checks that an error says what it should.
func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", part)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("error is %q, want one that says %q", err, part)
	}
}
