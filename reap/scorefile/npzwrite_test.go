package scorefile

import (
	"bytes"
	"reflect"
	"testing"
)

// full are measurements of the model of these tests in which everything was measured.
func full() *Measurements {
	layers := func(by float64) map[int]*Layer {
		list := map[int]*Layer{}
		for _, block := range []int{1, 2} {
			l := &Layer{}
			for i, to := range []*[]float64{&l.Count, &l.GateSum, &l.NormSum, &l.NormMax, &l.ReapSum, &l.Energy} {
				for expert := range 3 {
					*to = append(*to, by*float64(block+i)+float64(expert)/3+1)
				}
				*to = append(*to, 0)
			}
			list[block] = l
		}
		return list
	}
	return &Measurements{
		Format: "saliency JSON", Tokens: 50, Layers: layers(3), Engine: "llama.cpp x",
		Settings: map[string]string{"context": "2048"},
		Inputs:   []Text{{Label: "code", File: "code.txt", SHA256: "ab"}},
		Sources:  []Source{{Label: "code", Tokens: 20, Weight: 1, Layers: layers(1)}, {Label: "Prosa, über", Tokens: 30, Weight: 0.5, Layers: layers(2)}},
	}
}

func TestNPZIsReadBack(t *testing.T) {
	m := full()
	data, err := m.EncodeNPZ(model(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := m.EncodeNPZ(model(), 3); !bytes.Equal(again, data) {
		t.Error("a second encoding differs")
	}
	got, err := Read(bytes.NewReader(data), int64(len(data)), model())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Layers, m.Layers) || got.Tokens != 50 || got.Engine != m.Engine {
		t.Errorf("read back %+v", got)
	}
	for i, source := range got.Sources {
		want := m.Sources[i]
		if source.Label != want.Label || source.Tokens != want.Tokens || !reflect.DeepEqual(source.Layers[2].ReapSum, want.Layers[2].ReapSum) {
			t.Errorf("source %d is read back as %+v", i, source)
		}
	}
	if _, err := m.EncodeNPZ(model(), 2); err == nil {
		t.Error("block 2 of a model with two blocks is written")
	}
}

func TestSaliencyDocumentHoldsEverything(t *testing.T) {
	m := full()
	m.Source.Architecture, m.Source.Name = model().Architecture, "m"
	data, err := m.Encode(model())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(data), int64(len(data)), model())
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("read back %+v (%v), want %+v", got, err, m)
	}
}
