package reap

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// pruned applies a plan and reads the result back.
func pruned(t testing.TB, m *gguf.Model, e *Experts, p *Plan, shards int) *gguf.Model {
	t.Helper()
	views, err := Views(context.Background(), m, e, p)
	if err != nil {
		t.Fatal(err)
	}
	md, err := Metadata(m, e, p, Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	return written(t, gguf.Contents{Version: 3, Metadata: md, Views: views}, shards)
}

// routedBytes are the bytes of one expert in the tensors that moe makes, by hand.
var routedBytes = map[string]int{
	"ffn_gate_inp.weight": 64, "exp_probs_b.bias": 4, "ffn_down_exps.scale": 4,
	"ffn_gate_exps.weight": 136, "ffn_up_exps.weight": 136, "ffn_down_exps.weight": 51,
}

// Every kept slab is the source's, in the order of the list, and nothing else changes:
// seen in the bytes of the written file, without the code that made the views.
func TestPrunedBytes(t *testing.T) {
	r := moe(3)
	r.shards = 4
	m := r.model(t)
	e := mustExperts(t, m)
	p := planFor(e, 3, 0, 1, 6, 7)
	p.Layers[2] = []int{7, 6, 5, 4, 3}
	out := pruned(t, m, e, p, 3)
	if len(out.Tensors()) != len(m.Tensors()) {
		t.Fatalf("%d tensors, source has %d", len(out.Tensors()), len(m.Tensors()))
	}
	for i, got := range out.Tensors() {
		source := m.Tensors()[i]
		if got.Name != source.Name || got.Type != source.Type {
			t.Fatalf("tensor %d is %q, source has %q", i, got.Name, source.Name)
		}
		block, name, _ := SplitBlock(got.Name)
		want, shape := tensorBytes(t, m, got.Name), slices.Clone(source.Shape)
		if size, routed := routedBytes[name]; routed {
			var kept []byte
			for _, id := range p.Layers[block] {
				kept = append(kept, want[id*size:(id+1)*size]...)
			}
			want = kept
			shape[len(shape)-1] = 5
		}
		if !slices.Equal(got.Shape, shape) {
			t.Errorf("%s: shape %v, want %v", got.Name, got.Shape, shape)
		}
		if !bytes.Equal(tensorBytes(t, out, got.Name), want) {
			t.Errorf("%s: wrong bytes", got.Name)
		}
	}
	if after := mustExperts(t, out); after.Count != 5 || after.Used != 2 {
		t.Errorf("%+v", after)
	}
}

// Neighbouring slabs are one extent, so that they are one read.
func TestViewsMergeNeighbours(t *testing.T) {
	m := moe(1).model(t)
	e := mustExperts(t, m)
	views, err := Views(context.Background(), m, e, planFor(e, 0, 1, 2, 5, 6, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		want := 1
		if _, name, _ := SplitBlock(v.Name); routedBytes[name] > 0 {
			want = 3
		}
		if len(v.Extents) != want {
			t.Errorf("%s: %d extents, want %d", v.Name, len(v.Extents), want)
		}
	}
}

// An identity plan gives the source's views, and a shuffle and its inverse give the
// source's bytes.
func TestShuffleAndBack(t *testing.T) {
	m := moe(2).model(t)
	e := mustExperts(t, m)
	identity := []int{0, 1, 2, 3, 4, 5, 6, 7}
	views, err := Views(context.Background(), m, e, planFor(e, identity...))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range views {
		want := m.Tensors()[i].View()
		if v.Name != want.Name || !slices.Equal(v.Shape, want.Shape) || !slices.Equal(v.Extents, want.Extents) {
			t.Errorf("identity: got %+v, want %+v", v, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		there, back := planFor(e, identity...), planFor(e, identity...)
		for _, b := range e.Blocks() {
			list := random.Perm(8)
			inverse := make([]int, 8)
			for i, id := range list {
				inverse[id] = i
			}
			there.Layers[b], back.Layers[b] = list, inverse
		}
		shuffled := pruned(t, m, e, there, 2)
		again := pruned(t, shuffled, mustExperts(t, shuffled), back, 1)
		for _, tensor := range m.Tensors() {
			if !bytes.Equal(tensorBytes(t, again, tensor.Name), tensorBytes(t, m, tensor.Name)) {
				t.Fatalf("%s differs after shuffle and inverse", tensor.Name)
			}
		}
	}
}

func TestViewsRefuseWrongPlan(t *testing.T) {
	m := moe(2).model(t)
	e := mustExperts(t, m)
	p := planFor(e, 0, 1, 1)
	delete(p.Layers, 2)
	_, err := Views(context.Background(), m, e, p)
	faults, _ := err.(Faults)
	wantFaults(t, faults, "layer 1: expert 1 stands twice", "layer 2: has experts but no plan entry")
}

func TestMetadata(t *testing.T) {
	r := moe(1)
	r.keys["expert_count"] = gguf.Uint64Value(8) // not the usual type
	r.keys["attention.head_count_kv"] = gguf.Int32sValue(1, 2, 3, 4, 5, 6, 7, 8)
	m := r.model(t)
	e := mustExperts(t, m)
	p := planFor(e, 0, 1, 2)
	md, err := Metadata(m, e, p, Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	before, after := m.Metadata().Keys(), md.Keys()
	if !slices.Equal(before, after) {
		t.Errorf("keys %q, want %q", after, before)
	}
	for key, v := range md.All() {
		old, _ := m.Metadata().Get(key)
		want, _ := old.Raw()
		if key == "test.expert_count" {
			want = []byte{3, 0, 0, 0, 0, 0, 0, 0}
		}
		if got, _ := v.Raw(); v.TypeName() != old.TypeName() || !bytes.Equal(got, want) {
			t.Errorf("%s: %s % x, want %s % x", key, v.TypeName(), got, old.TypeName(), want)
		}
	}
	if n, _ := m.Metadata().Uint("test.expert_count"); n != 8 {
		t.Error("the source's metadata was changed")
	}
}

func TestMetadataProvenance(t *testing.T) {
	m := moe(1).model(t)
	e := mustExperts(t, m)
	p := planFor(e, 0, 1, 2)
	md, err := Metadata(m, e, p, Provenance{Plan: p, PlanDigest: "blake3:pp"})
	if err != nil {
		t.Fatal(err)
	}
	added := md.Keys()[m.Metadata().Len():]
	if want := []string{KeySourceStructure, KeyPlan, KeyCriterion, KeySourceExperts}; !slices.Equal(added, want) {
		t.Errorf("added %q, want %q", added, want)
	}
	if md.Text(KeySourceStructure) != "s" || md.Text(KeyPlan) != "blake3:pp" || md.Text(KeyCriterion) != Given {
		t.Error("wrong texts")
	}
	if n, _ := md.Uint(KeySourceExperts); n != 8 {
		t.Errorf("%s is %d", KeySourceExperts, n)
	}
}

// An array with an entry for each expert is not copied in silence.
func TestMetadataPerExpertArray(t *testing.T) {
	r := moe(1)
	r.keys["expert_names"] = gguf.TextsValue("a", "b", "c", "d", "e", "f", "g", "h")
	m := r.model(t)
	e := mustExperts(t, m)
	p := planFor(e, 0, 1, 2)
	_, err := Metadata(m, e, p, Provenance{})
	faults, _ := err.(Faults)
	wantFaults(t, faults, `key "test.expert_names": has 8 entries`)
	if _, err := Metadata(m, e, p, Provenance{}, "test.expert_names"); err != nil {
		t.Error(err)
	}
}

// Dims of 1 behind the expert dim, or behind an id table's last, make no other model: the same
// experts are kept, and what is written has the dims of the source.
func TestOuterDimsOfOne(t *testing.T) {
	plain, outer := moe(2), moe(2)
	for i := range outer.tensors {
		if name := outer.tensors[i].name; strings.Contains(name, "_exps") || strings.Contains(name, "ffn_gate_inp.") || strings.Contains(name, "exp_probs_b") {
			outer.tensors[i].shape = append(slices.Clone(outer.tensors[i].shape), 1)
		}
	}
	a, b := plain.model(t), outer.model(t)
	ea, eb := mustExperts(t, a), mustExperts(t, b)
	if got, want := eb.Layers[0].ExpertBytes(), ea.Layers[0].ExpertBytes(); got != want || got == 0 {
		t.Fatalf("an expert has %d bytes, want %d", got, want)
	}
	plan := planFor(ea, 3, 0, 1, 6, 7)
	pa, pb := pruned(t, a, ea, plan, 1), pruned(t, b, eb, plan, 1)
	for i, want := range pa.Tensors() {
		got := pb.Tensors()[i]
		if !bytes.Equal(tensorBytes(t, pb, got.Name), tensorBytes(t, pa, want.Name)) || !slices.Equal(gguf.CanonicalShape(got.Shape), want.Shape) {
			t.Errorf("tensor %q: shape %v, want the data of %v", got.Name, got.Shape, want.Shape)
		}
		if extra := len(b.Tensors()[i].Shape) - len(want.Shape); len(got.Shape) != len(want.Shape)+extra {
			t.Errorf("tensor %q: shape %v, the source has %v", got.Name, got.Shape, b.Tensors()[i].Shape)
		}
	}
	for i, view := range Outline(b, eb, 5) {
		if !slices.Equal(view.Shape, pb.Tensors()[i].Shape) {
			t.Errorf("outline of %q: %v, want %v", view.Name, view.Shape, pb.Tensors()[i].Shape)
		}
	}
	if _, err := RouterNormScores(t.Context(), b, eb, nil); err != nil {
		t.Error(err)
	}
	if _, err := RouterMassScores(t.Context(), b, eb, nil); err != nil {
		t.Error(err)
	}
}
