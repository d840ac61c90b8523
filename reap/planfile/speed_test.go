package planfile

import (
	"testing"

	"ggufreap/reap"
)

// kimi is a plan of the size of Kimi-K3's.
func kimi() *reap.Plan {
	p := &reap.Plan{NumExperts: 896, KeepCount: 568, Criterion: reap.Criterion{Name: reap.Given, Version: 1}, Layers: map[int][]int{}}
	for block := range 92 {
		for i := range 568 {
			p.Layers[block+1] = append(p.Layers[block+1], i)
		}
	}
	return p
}

func BenchmarkEncode(b *testing.B) {
	p := kimi()
	for b.Loop() {
		document, err := Encode(p)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(document)))
	}
}

func BenchmarkDecode(b *testing.B) {
	document, err := Encode(kimi())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := Decode(document); err != nil {
			b.Fatal(err)
		}
	}
}
