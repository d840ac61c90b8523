package peer

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"

	parser "github.com/gpustack/gguf-parser-go"
)

// TestBlockSizes compares what both know of tensor types.
func TestBlockSizes(t *testing.T) {
	seen := 0
	for _, typ := range gguf.Types() {
		trait, known := parser.GGMLType(typ).Trait()
		if !known {
			t.Logf("%s is not known to the other reader", typ)
			continue
		}
		seen++
		info, _ := typ.Info()
		if uint64(info.Elements) != trait.BlockSize || uint64(info.Bytes) != trait.TypeSize {
			t.Errorf("%s: %d bytes per %d elements, the other reader has %d per %d", typ, info.Bytes, info.Elements, trait.TypeSize, trait.BlockSize)
		}
	}
	if seen < 30 {
		t.Errorf("only %d types were compared", seen)
	}
}

// TestSameReading writes random models, in one file and in shards, and compares what
// both read: metadata with types and values, tensors with types, shapes and places.
func TestSameReading(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		dir := t.TempDir()
		shards := 1 + rnd.IntN(4)
		layout, err := gguf.NewLayout(randomContents(rnd), gguf.Split{Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		for i, shard := range layout.Shards {
			var b bytes.Buffer
			if err := shard.Write(context.Background(), &b, nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, gguf.ShardName("m", i, shards)), b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		first := filepath.Join(dir, gguf.ShardName("m", 0, shards))
		ours, err := gguf.Open(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := ours.Err(); err != nil {
			t.Fatal(err)
		}
		theirs, err := parser.ParseGGUFFile(first)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) { compare(t, ours, theirs) })
		ours.Close()
	}
}

func compare(t *testing.T, ours *gguf.Model, theirs *parser.GGUFFile) {
	values := map[string]parser.GGUFMetadataKV{}
	for _, kv := range theirs.Header.MetadataKV {
		if _, twice := values[kv.Key]; !twice {
			values[kv.Key] = kv
		}
	}
	for key, v := range ours.Metadata().All() {
		if key == gguf.KeySplitNo {
			continue // the other reader drops it when it joins shards
		}
		kv, ok := values[key]
		if !ok || uint32(kv.ValueType) != uint32(v.Type()) {
			t.Errorf("key %q: %s, the other reader has type %d (%v)", key, v.TypeName(), kv.ValueType, ok)
			continue
		}
		if got, want := spell(t, v), spellTheirs(kv.ValueType, kv.Value); got != want {
			t.Errorf("key %q: %s, the other reader has %s", key, got, want)
		}
	}
	if len(ours.Tensors()) != len(theirs.TensorInfos) {
		t.Fatalf("%d tensors, the other reader has %d", len(ours.Tensors()), len(theirs.TensorInfos))
	}
	for i, tensor := range ours.Tensors() {
		info := theirs.TensorInfos[i]
		got := fmt.Sprint(tensor.Name, uint32(tensor.Type), tensor.Shape, tensor.Offset, tensor.Size)
		want := fmt.Sprint(info.Name, uint32(info.Type), info.Dimensions, info.Offset, info.Bytes())
		if got != want {
			t.Errorf("tensor %d: %s, the other reader has %s", i, got, want)
		}
	}
}

// spell writes a value in a plain way. White space around text is left out, as the
// other reader does.
func spell(t *testing.T, v gguf.Value) string {
	if v.Type() == gguf.Array {
		s := v.Elem().String() + "["
		err := v.Each(func(_ int64, e gguf.Value) error {
			s += spell(t, e) + " "
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return s + "]"
	}
	if text, ok := v.Text(); ok {
		return fmt.Sprintf("%q", strings.TrimSpace(text))
	}
	if b, ok := v.Bool(); ok {
		return fmt.Sprint(b)
	}
	if f, ok := v.Float(); ok {
		return fmt.Sprintf("%x", math.Float64bits(f))
	}
	if i, ok := v.Int(); ok {
		return fmt.Sprint(i)
	}
	u, _ := v.Uint()
	return fmt.Sprint(u)
}

func spellTheirs(typ parser.GGUFMetadataValueType, value any) string {
	switch v := value.(type) {
	case parser.GGUFMetadataKVArrayValue:
		s := gguf.ValueType(v.Type).String() + "["
		for _, e := range v.Array {
			s += spellTheirs(v.Type, e) + " "
		}
		return s + "]"
	case string:
		return fmt.Sprintf("%q", v)
	case float32:
		return fmt.Sprintf("%x", math.Float64bits(float64(v)))
	case float64:
		return fmt.Sprintf("%x", math.Float64bits(v))
	}
	return fmt.Sprint(value)
}

func randomContents(rnd *rand.Rand) gguf.Contents {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("made-up"))
	if rnd.IntN(2) == 0 {
		md.Set("general.alignment", gguf.Uint32Value(8<<rnd.IntN(5)))
	}
	for i := range rnd.IntN(30) {
		key := fmt.Sprintf("made-up.key%d", i)
		if rnd.IntN(3) > 0 {
			md.Set(key, randomValue(rnd, rnd.IntN(12)))
			continue
		}
		kind := rnd.IntN(12)
		items := make([]gguf.Value, 1+rnd.IntN(20))
		for j := range items {
			items[j] = randomValue(rnd, kind)
		}
		md.Set(key, gguf.ArrayValue(items[0].Type(), items...))
	}
	c := gguf.Contents{Version: uint32(2 + rnd.IntN(2)), Metadata: md}
	types := []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.I8, gguf.I32, gguf.F64, gguf.Q8_0, gguf.Q4_K, gguf.Q6_K, gguf.IQ1_S, gguf.IQ4_XS, gguf.MXFP4, gguf.Q4_0}
	for i := range 4 + rnd.IntN(20) {
		v := gguf.View{Name: fmt.Sprintf("t.%d.weight", i), Type: types[rnd.IntN(len(types))]}
		info, _ := v.Type.Info()
		v.Shape = append(v.Shape, uint64(info.Elements)*uint64(1+rnd.IntN(4)))
		for range rnd.IntN(4) {
			v.Shape = append(v.Shape, uint64(1+rnd.IntN(5)))
		}
		size, err := gguf.TypeSize(v.Type, v.Shape)
		if err != nil {
			panic(err)
		}
		v.Extents = []gguf.Extent{{Source: bytes.NewReader(make([]byte, size)), Length: size}}
		c.Views = append(c.Views, v)
	}
	return c
}

func randomValue(rnd *rand.Rand, kind int) gguf.Value {
	n := rnd.Uint64()
	switch kind {
	case 0:
		return gguf.Uint8Value(uint8(n))
	case 1:
		return gguf.Int8Value(int8(n))
	case 2:
		return gguf.Uint16Value(uint16(n))
	case 3:
		return gguf.Int16Value(int16(n))
	case 4:
		return gguf.Uint32Value(uint32(n))
	case 5:
		return gguf.Int32Value(int32(n))
	case 6:
		return gguf.Float32Value(float32(rnd.NormFloat64()))
	case 7:
		return gguf.BoolValue(n%2 == 0)
	case 8:
		return gguf.Uint64Value(n)
	case 9:
		return gguf.Int64Value(int64(n))
	case 10:
		return gguf.Float64Value(rnd.NormFloat64())
	}
	text := make([]byte, rnd.IntN(40))
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	return gguf.TextValue(string(text))
}
