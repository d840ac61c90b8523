package reap

import (
	"context"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// The preset's whole way on a model with the true structure of Kimi-K3, across shards.
func TestPresetOnK3(t *testing.T) {
	m, err := gguftest.K3(gguftest.K3Options{}).Model(gguf.Split{Shards: 9})
	if err != nil {
		t.Fatal(err)
	}
	e := mustExperts(t, m)
	preset, err := FindPreset("reap568")
	if err != nil {
		t.Fatal(err)
	}
	if err := preset.Check(e); err != nil {
		t.Fatal(err)
	}
	if e.Layer(0) != nil || e.Used != 16 || e.Gating != Sigmoid {
		t.Errorf("block 0 is dense, 16 experts are used, the gate is sigmoid: %+v", e)
	}
	s, err := RouterMassScores(context.Background(), m, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Choose(e, s, preset.Keep, ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	views, err := Views(context.Background(), m, e, p)
	if err != nil {
		t.Fatal(err)
	}
	md, err := Metadata(m, e, p, Provenance{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := md.Arch("expert_count"); v.TypeName() != "u32" {
		t.Errorf("expert count is %s", v.TypeName())
	} else if n, _ := v.Uint(); n != 568 {
		t.Errorf("expert count is %d", n)
	}
	for i, v := range views {
		source := m.Tensors()[i]
		_, name, _ := SplitBlock(v.Name)
		want := source.Size
		if _, routed := roleOf(name); routed {
			want = source.Size / 896 * 568
		}
		if v.Size() != want {
			t.Errorf("%s: %d bytes, want %d", v.Name, v.Size(), want)
		}
	}
	for _, block := range e.Blocks() {
		worst, best := slices.Max(dropped(s, p, block)), slices.Min(kept(s, p, block))
		if worst > best {
			t.Errorf("layer %d drops a score of %v and keeps one of %v", block, worst, best)
		}
	}
}

func kept(s *Scores, p *Plan, block int) []float64 {
	var list []float64
	for _, id := range p.Layers[block] {
		list = append(list, s.Layers[block][id])
	}
	return list
}

func dropped(s *Scores, p *Plan, block int) []float64 {
	var list []float64
	for id, score := range s.Layers[block] {
		if !slices.Contains(p.Layers[block], id) {
			list = append(list, score)
		}
	}
	return list
}

// At the real size: of 330,160,710,016 bytes, 328 dropped experts of 92 layers take
// 3,225,600 in the projections, 28,672 in the router and 4 in the bias each.
func TestRealSizeOfK3(t *testing.T) {
	m, err := gguftest.K3Real(1536, gguf.IQ1_S).Model(gguf.Split{Shards: 9})
	if err != nil {
		t.Fatal(err)
	}
	e := mustExperts(t, m)
	p, err := Choose(e, RandomScores(e, 1), 568, ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	views, err := Views(context.Background(), m, e, p)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, v := range views {
		size += v.Size()
	}
	if want := int64(330_160_710_016 - 328*92*(3_225_600+28_672+4)); size != want {
		t.Errorf("%d bytes, want %d", size, want)
	}
}
