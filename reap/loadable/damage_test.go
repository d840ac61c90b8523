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

// A damage is something that is done to a model.
type damage struct {
	kind, what string
	do         func(s *gguftest.Spec)
}

// damages are what happens to files: tensors, blocks and keys that are lost, shapes, types and
// lengths that are not what they were, and keys that are there besides. The keys that llama.cpp
// reads have %s in the place of the architecture.
func damages(s gguftest.Spec, engineKeys []string) []damage {
	return slices.Concat(tensorDamages(s), typeDamages(s), blockDamages(s), keyDamages(s), addedKeys(s, engineKeys), listDamages(s))
}

func tensorDamages(s gguftest.Spec) []damage {
	var list []damage
	add := func(kind, what string, do func(s *gguftest.Spec)) { list = append(list, damage{kind, what, do}) }
	for i, t := range s.Tensors {
		add("a tensor is not there", "no "+t.Name, func(s *gguftest.Spec) { s.Tensors = slices.Delete(s.Tensors, i, i+1) })
		for d := range t.Shape {
			for _, n := range []uint64{t.Shape[d] + 1, t.Shape[d] / 2} {
				shape := slices.Clone(t.Shape)
				shape[d] = n
				if _, err := gguf.TypeSize(t.Type, shape); err == nil && n > 0 && n != t.Shape[d] {
					add("a dim is another", fmt.Sprintf("%s %v", t.Name, shape), func(s *gguftest.Spec) {
						s.Tensors[i].Shape, s.Tensors[i].Data = shape, nil
					})
				}
			}
		}
		add("a name is another", t.Name, func(s *gguftest.Spec) {
			s.Tensors[i].Name = strings.Replace(t.Name, "weight", "wight", 1) + "x"
		})
	}
	for _, name := range []string{"extra.weight", "blk.1.ffn_extra.weight", "blk.0.attn_norm.bias"} {
		if s.Tensor(name) == nil {
			add("a tensor more", name, func(s *gguftest.Spec) {
				s.Tensors = append(s.Tensors, gguftest.Tensor{Name: name, Type: gguf.F32, Shape: []uint64{4}})
			})
		}
	}
	return list
}

// typeDamages give tensors another type, with which their rows come out even.
func typeDamages(s gguftest.Spec) []damage {
	var list []damage
	for i, t := range s.Tensors {
		for _, typ := range []gguf.Type{gguf.F32, gguf.F16, gguf.I32} {
			if typ != t.Type {
				list = append(list, damage{"a tensor of another type", fmt.Sprintf("%s %s", t.Name, typ), func(s *gguftest.Spec) {
					s.Tensors[i].Type, s.Tensors[i].Data = typ, nil
				}})
			}
		}
	}
	return list
}

func blockDamages(s gguftest.Spec) []damage {
	var list []damage
	for block := 0; ; block++ {
		isOfIt := func(t gguftest.Tensor) bool {
			b, _, ok := reap.SplitBlock(t.Name)
			return ok && b == block
		}
		if !slices.ContainsFunc(s.Tensors, isOfIt) {
			return list
		}
		list = append(list, damage{"a block is not there", fmt.Sprint("no block ", block), func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, isOfIt)
		}})
	}
}

func keyDamages(s gguftest.Spec) []damage {
	var list []damage
	for _, key := range s.Metadata.Keys() {
		if key == gguf.KeyArchitecture {
			continue
		}
		list = append(list, damage{"a key is not there", "no " + key, func(s *gguftest.Spec) {
			s.Metadata = s.Metadata.Without(func(k string) bool { return k == key })
		}})
		v, _ := s.Metadata.Get(key)
		for _, other := range otherValues(v) {
			if n, _ := other.v.Uint(); n == math.MaxUint32 && strings.HasSuffix(key, ".vocab_size") {
				continue // llama.cpp makes a table of all tokens
			}
			list = append(list, setKey(other.kind, key, other.v))
		}
	}
	return list
}

func setKey(kind, key string, v gguf.Value) damage {
	return damage{kind, fmt.Sprintf("%q is %s", key, v.Describe()), func(s *gguftest.Spec) { s.Metadata.Set(key, v) }}
}

// addedKeys add a key that llama.cpp may read and the model does without, in a type that it
// may not take, and keys that no file may have.
func addedKeys(s gguftest.Spec, engineKeys []string) []damage {
	const kind = "a key more"
	list := []damage{
		setKey(kind, "", gguf.Uint32Value(1)),
		setKey(kind, "general.lists", gguf.ArrayValue(gguf.Array, gguf.TextsValue("x"))),
	}
	for _, key := range engineKeys {
		key = strings.Replace(key, "%s", s.Metadata.Text(gguf.KeyArchitecture), 1)
		if _, there := s.Metadata.Get(key); there {
			continue
		}
		for _, v := range []gguf.Value{
			gguf.TextValue("x"), gguf.BoolValue(true), gguf.Uint8Value(1), gguf.Float64Value(1),
			gguf.TextsValue("x"), gguf.ArrayValue(gguf.Uint64, gguf.Uint64Value(1)),
		} {
			list = append(list, setKey(kind, key, v))
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
		add := func(kind string, other gguf.Value) { list = append(list, setKey(kind, key, other)) }
		add("a list is shorter", gguf.ArrayValue(v.Elem(), items[:len(items)-1]...))
		add("a list is longer", gguf.ArrayValue(v.Elem(), append(slices.Clone(items), items[0])...))
		add("a list of another type", gguf.TextsValue(make([]string, len(items))...))
		if n, ok := items[0].Uint(); ok {
			add("a list is one number", gguf.Uint32Value(uint32(n)))
		}
	}
	return list
}
