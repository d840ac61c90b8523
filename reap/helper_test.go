package reap

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// A recipe is a model to be made in memory. Data bytes differ everywhere unless given.
type recipe struct {
	arch    string
	keys    map[string]gguf.Value // under the architecture
	others  map[string]gguf.Value // elsewhere
	shards  int
	tensors []ingredient
}

type ingredient struct {
	name  string
	typ   gguf.Type
	shape []uint64
	data  []byte
}

// moe is a model with a dense block 0 and routed blocks 1 to layers, 8 experts of which
// 2 are used.
func moe(layers int) *recipe {
	r := &recipe{arch: "test", keys: map[string]gguf.Value{}}
	r.set("block_count", layers+1)
	r.set("expert_count", 8)
	r.set("expert_used_count", 2)
	r.set("expert_shared_count", 1)
	r.add("token_embd.weight", gguf.F32, 16, 10)
	r.add("blk.0.ffn_up.weight", gguf.F32, 16, 8)
	for b := 1; b <= layers; b++ {
		r.addMoE(b)
	}
	r.add("output.weight", gguf.F32, 16, 10)
	return r
}

func (r *recipe) addMoE(b int) {
	p := fmt.Sprintf("blk.%d.", b)
	r.add(p+"ffn_norm.weight", gguf.F32, 16)
	r.add(p+"ffn_gate_inp.weight", gguf.F32, 16, 8)
	r.add(p+"exp_probs_b.bias", gguf.F32, 8)
	r.add(p+"ffn_gate_exps.weight", gguf.Q8_0, 32, 4, 8)
	r.add(p+"ffn_up_exps.weight", gguf.Q8_0, 32, 4, 8)
	r.add(p+"ffn_down_exps.weight", gguf.MXFP4, 32, 3, 8)
	r.add(p+"ffn_down_exps.scale", gguf.F32, 8)
	// None of these holds anything for each expert.
	r.add(p+"ffn_routed_down.weight", gguf.F32, 16, 8)
	r.add(p+"ffn_routed_norm.weight", gguf.F32, 8)
	r.add(p+"ffn_up_shexp.weight", gguf.F32, 16, 8)
	r.add(p+"ffn_gate_inp_shexp.weight", gguf.F32, 8)
	r.add(p+"attn_q.weight", gguf.F32, 16, 8)
	r.add(p+"attn_k_b.weight", gguf.F32, 4, 2, 8)
}

func (r *recipe) set(suffix string, n int) { r.keys[suffix] = gguf.Uint32Value(uint32(n)) }

func (r *recipe) add(name string, typ gguf.Type, shape ...uint64) *ingredient {
	r.tensors = append(r.tensors, ingredient{name: name, typ: typ, shape: shape})
	return &r.tensors[len(r.tensors)-1]
}

func (r *recipe) find(name string) *ingredient {
	for i := range r.tensors {
		if r.tensors[i].name == name {
			return &r.tensors[i]
		}
	}
	panic("no tensor " + name)
}

func (r *recipe) remove(part string) {
	var left []ingredient
	for _, t := range r.tensors {
		if !strings.Contains(t.name, part) {
			left = append(left, t)
		}
	}
	r.tensors = left
}

// model writes the recipe and reads it back.
func (r *recipe) model(t testing.TB) *gguf.Model {
	t.Helper()
	md := gguf.NewMetadata()
	md.Set(gguf.KeyArchitecture, gguf.TextValue(r.arch))
	for _, suffix := range slices.Sorted(maps.Keys(r.keys)) {
		md.Set(r.arch+"."+suffix, r.keys[suffix])
	}
	for _, key := range slices.Sorted(maps.Keys(r.others)) {
		md.Set(key, r.others[key])
	}
	c := gguf.Contents{Version: 3, Metadata: md}
	for i, in := range r.tensors {
		data := in.data
		if data == nil {
			size, err := gguf.TypeSize(in.typ, in.shape)
			if err != nil {
				t.Fatal(err)
			}
			data = distinct(uint32(i), int(size))
		}
		c.Views = append(c.Views, gguf.View{Name: in.name, Type: in.typ, Shape: in.shape,
			Extents: []gguf.Extent{{Source: bytes.NewReader(data), Length: int64(len(data))}}})
	}
	return written(t, c, max(1, r.shards))
}

// written writes contents and opens the result.
func written(t testing.TB, c gguf.Contents, shards int) *gguf.Model {
	t.Helper()
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	var files []*gguf.File
	for i, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(context.Background(), &b, make([]byte, 512), nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.NewFile(gguf.ShardName("m", i, shards), bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	m, err := gguf.NewModel("m", files...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// distinct returns bytes that differ from place to place and are small floats when
// read as F32.
func distinct(seed uint32, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		x := mix64(uint64(seed)<<32 | uint64(i/4))
		data[i] = byte(x >> (8 * (i % 4)))
		if i%4 == 3 {
			data[i] = data[i]&0x80 | 0x3e
		}
	}
	return data
}

func floats(list ...float32) []byte {
	var data []byte
	for _, x := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

func int32s(list ...int32) []byte {
	var data []byte
	for _, x := range list {
		data = binary.LittleEndian.AppendUint32(data, uint32(x))
	}
	return data
}

func tensorBytes(t testing.TB, m *gguf.Model, name string) []byte {
	t.Helper()
	data, err := io.ReadAll(m.Tensor(name).Reader())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustExperts(t testing.TB, m *gguf.Model) *Experts {
	t.Helper()
	e, err := ReadExperts(m)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// planFor keeps the same list in every layer.
func planFor(e *Experts, keep ...int) *Plan {
	p := &Plan{
		Source:     Source{StructureDigest: "s", Architecture: e.Architecture, Name: "m"},
		NumExperts: e.Count, KeepCount: len(keep),
		Criterion: Criterion{Name: Given, Version: 1},
		Layers:    map[int][]int{},
	}
	for _, b := range e.Blocks() {
		p.Layers[b] = keep
	}
	return p
}

// wantFaults wants one fault for each text, in any order, and no others.
func wantFaults(t *testing.T, fs Faults, texts ...string) {
	t.Helper()
	for _, text := range texts {
		found := false
		for _, f := range fs {
			found = found || strings.Contains(f.String(), text)
		}
		if !found {
			t.Errorf("no fault says %q", text)
		}
	}
	if len(fs) != len(texts) {
		t.Errorf("%d faults, want %d:\n%v", len(fs), len(texts), fs.Error())
	}
}
