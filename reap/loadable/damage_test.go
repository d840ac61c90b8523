package loadable_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
)

// A damage is a model that something was done to.
type damage struct {
	kind, what string
	spec       gguftest.Spec
}

// damages does to a model what happens to files: tensors, blocks and keys that are lost,
// shapes, types and lengths that are not what they were.
func damages(s gguftest.Spec) []damage {
	return slices.Concat(tensorDamages(s), blockDamages(s), keyDamages(s), listDamages(s))
}

func tensorDamages(s gguftest.Spec) []damage {
	var list []damage
	add := func(kind, what string, spec gguftest.Spec) { list = append(list, damage{kind, what, spec}) }
	for i, t := range s.Tensors {
		less := s.Clone()
		less.Tensors = slices.Delete(less.Tensors, i, i+1)
		add("a tensor is not there", "no "+t.Name, less)
		for d := range t.Shape {
			for _, n := range []uint64{t.Shape[d] + 1, t.Shape[d] / 2} {
				if n == 0 || n == t.Shape[d] {
					continue
				}
				other := s.Clone()
				shape := slices.Clone(t.Shape)
				shape[d] = n
				other.Tensors[i].Shape, other.Tensors[i].Data = shape, nil
				if _, err := gguf.TypeSize(t.Type, shape); err == nil {
					add("a dim is another", fmt.Sprintf("%s %v", t.Name, shape), other)
				}
			}
		}
		renamed := s.Clone()
		renamed.Tensors[i].Name = strings.Replace(t.Name, "weight", "wight", 1) + "x"
		add("a name is another", t.Name, renamed)
	}
	for _, name := range []string{"extra.weight", "blk.1.ffn_extra.weight", "blk.0.attn_norm.bias"} {
		more := s.Clone()
		if more.Tensor(name) == nil {
			more.Tensors = append(more.Tensors, gguftest.Tensor{Name: name, Type: gguf.F32, Shape: []uint64{4}})
			add("a tensor more", name, more)
		}
	}
	return list
}

func blockDamages(s gguftest.Spec) []damage {
	var list []damage
	for block := 0; ; block++ {
		less, there := s.Clone(), false
		less.Tensors = slices.DeleteFunc(less.Tensors, func(t gguftest.Tensor) bool {
			b, _, ok := reap.SplitBlock(t.Name)
			there = there || ok && b == block
			return ok && b == block
		})
		if !there {
			return list
		}
		list = append(list, damage{"a block is not there", fmt.Sprint("no block ", block), less})
	}
}

func keyDamages(s gguftest.Spec) []damage {
	var list []damage
	for _, key := range s.Metadata.Keys() {
		if key == gguf.KeyArchitecture {
			continue
		}
		less := s.Clone()
		less.Metadata = s.Metadata.Without(func(k string) bool { return k == key })
		list = append(list, damage{"a key is not there", "no " + key, less})
		v, _ := s.Metadata.Get(key)
		for _, other := range otherValues(v) {
			if n, _ := other.v.Uint(); n == math.MaxUint32 && strings.HasSuffix(key, ".vocab_size") {
				continue // llama.cpp makes a table of all tokens
			}
			spec := s.Clone()
			spec.Metadata.Set(key, other.v)
			list = append(list, damage{other.kind, fmt.Sprintf("%s is %s", key, other.v.Describe()), spec})
		}
	}
	return list
}

type otherValue struct {
	kind string
	v    gguf.Value
}

func otherValues(v gguf.Value) []otherValue {
	const typ, value = "a key of another type", "a key of another value"
	n, _ := v.Uint()
	switch v.Type() {
	case gguf.Uint32:
		list := []otherValue{{typ, gguf.Uint64Value(n)}, {typ, gguf.Int32Value(int32(n))}, {typ, gguf.TextValue("x")}}
		for _, other := range []uint64{0, 1, n / 2, n - 1, n + 1, 2 * n, 513, 1025, math.MaxUint32} {
			if other != n && other <= math.MaxUint32 {
				list = append(list, otherValue{value, gguf.Uint32Value(uint32(other))})
			}
		}
		return list
	case gguf.Float32:
		x, _ := v.Float()
		return []otherValue{{typ, gguf.Float64Value(x)}, {value, gguf.Float32Value(-1)}, {value, gguf.Float32Value(float32(math.NaN()))}}
	case gguf.Bool:
		b, _ := v.Bool()
		return []otherValue{{typ, gguf.Uint8Value(1)}, {value, gguf.BoolValue(!b)}}
	case gguf.Text:
		return []otherValue{{typ, gguf.Uint32Value(1)}, {value, gguf.TextValue("")}, {value, gguf.TextValue("never-heard-of")}}
	}
	return nil
}

// listDamages make lists longer and shorter, and give them other elements.
func listDamages(s gguftest.Spec) []damage {
	var list []damage
	for key, v := range s.Metadata.All() {
		if v.Type() != gguf.Array || v.Len() == 0 {
			continue
		}
		var items []gguf.Value
		v.Each(func(_ int64, e gguf.Value) error {
			items = append(items, e)
			return nil
		})
		add := func(kind string, other gguf.Value) {
			spec := s.Clone()
			spec.Metadata.Set(key, other)
			list = append(list, damage{kind, key, spec})
		}
		add("a list is shorter", gguf.ArrayValue(v.Elem(), items[:len(items)-1]...))
		add("a list is longer", gguf.ArrayValue(v.Elem(), append(slices.Clone(items), items[0])...))
		add("a list of another type", gguf.TextsValue(make([]string, len(items))...))
		if n, ok := items[0].Uint(); ok {
			add("a list is one number", gguf.Uint32Value(uint32(n)))
		}
	}
	return list
}
