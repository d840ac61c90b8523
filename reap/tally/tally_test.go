package tally

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact adds with big.Float, whose precision is beyond what any sum here needs.
func exact(numbers []float64) *big.Float {
	sum := new(big.Float).SetPrec(400)
	for _, x := range numbers {
		sum.Add(sum, new(big.Float).SetPrec(400).SetFloat64(x))
	}
	return sum
}

// draw returns a number of any size that is added without loss, some of them 0.
func draw(rng *rand.Rand) float64 {
	if rng.IntN(20) == 0 {
		return 0
	}
	return math.Ldexp(rng.Float64()+1e-3, rng.IntN(100)-50)
}

func TestSumIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		numbers := make([]float64, 1+rng.IntN(40))
		var sum Sum
		for i := range numbers {
			numbers[i] = math.Ldexp(float64(rng.Uint64()>>11), rng.IntN(120)-128)
			if !sum.Add(numbers[i]) {
				t.Fatalf("%v is not added", numbers[i])
			}
		}
		want, _ := exact(numbers).Float64()
		if got := sum.Float64(); got != want {
			t.Fatalf("%v: sum %v, want %v", numbers, got, want)
		}
	}
}

func TestSumRoundsToEven(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0},
		{[]float64{math.Copysign(0, -1), 0}, 0},
		{[]float64{1 << 53, 1}, 1 << 53},
		{[]float64{1<<53 + 2, 1}, 1<<53 + 4},
		{[]float64{1 << 53, 1, 0x1p-128}, 1<<53 + 2},
		{[]float64{0x1p-128}, 0x1p-128},
		{[]float64{0x1.fffffffffffffp63}, 0x1.fffffffffffffp63},
		{[]float64{0x1p-129, 0x1p-200, math.SmallestNonzeroFloat64}, 0}, // cut
	} {
		var sum Sum
		for _, x := range c.numbers {
			if !sum.Add(x) {
				t.Errorf("%v is not added", x)
			}
		}
		if got := sum.Float64(); got != c.want {
			t.Errorf("%v: %v, want %v", c.numbers, got, c.want)
		}
	}
}

func TestSumRefuses(t *testing.T) {
	for _, x := range []float64{-1, -math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 0x1p64, math.MaxFloat64} {
		sum := Sum{[3]uint64{1, 2, 3}}
		if sum.Add(x) || sum != (Sum{[3]uint64{1, 2, 3}}) {
			t.Errorf("%v is added", x)
		}
	}
	full := Sum{[3]uint64{0, 0, math.MaxUint64}}
	if before := full; full.Add(1) || full != before {
		t.Error("a sum beyond its range is kept")
	}
}

// Divided in any way and merged in any order, the same tokens give the same bytes.
func TestMergeInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	blocks := []int{2, 7}
	const experts, parts = 5, 6
	whole := New(blocks, experts)
	var divided []*Tally
	for range parts {
		divided = append(divided, New(blocks, experts))
	}
	for range 500 {
		part := divided[rng.IntN(parts)]
		for _, tally := range []*Tally{whole, part} {
			tally.Tokens++
		}
		for _, block := range blocks {
			expert := rng.IntN(experts)
			g, norm, energy := rng.Float32(), draw(rng), draw(rng)
			for _, tally := range []*Tally{whole, part} {
				if !tally.Layers[block][expert].Add(g, norm, energy) {
					t.Fatal("not added")
				}
			}
		}
	}
	want := whole.Append(nil)
	for range 50 {
		merged := New(blocks, experts)
		for _, i := range rng.Perm(parts) {
			if err := merged.Merge(divided[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(merged.Append(nil), want) {
			t.Fatal("parts merged in another order give other bytes")
		}
	}
	if err := whole.Check(func(int) int { return 1 }); err != nil {
		t.Error(err)
	}
	if err := whole.Check(func(int) int { return 2 }); err == nil {
		t.Error("half of the pairs are missing, and nothing is said")
	}
}

func TestMergeRefuses(t *testing.T) {
	a := New([]int{1, 2}, 4)
	for name, b := range map[string]*Tally{"other layers": New([]int{1, 3}, 4), "fewer layers": New([]int{1}, 4), "other experts": New([]int{1, 2}, 5)} {
		if a.Merge(b) == nil {
			t.Errorf("%s: merged", name)
		}
	}
}

func TestEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	tally := New([]int{0, 3}, 3)
	tally.Tokens = 17
	for _, block := range []int{0, 3} {
		for i := range tally.Layers[block] {
			tally.Layers[block][i].Add(rng.Float32(), draw(rng), draw(rng))
		}
	}
	data := tally.Append(nil)
	back, err := Decode(data)
	if err != nil || !bytes.Equal(back.Append(nil), data) {
		t.Fatalf("read back: %v", err)
	}
	for n := range data {
		if _, err := Decode(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are read", n, len(data))
		}
	}
	if _, err := Decode(append(data, 0)); err == nil {
		t.Error("a byte too many is read")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(New([]int{1}, 2).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		tally, err := Decode(data)
		if err == nil && !bytes.Equal(tally.Append(nil), data) {
			t.Error("what was read is written otherwise")
		}
	})
}

func BenchmarkExpertAdd(b *testing.B) {
	var e Expert
	for b.Loop() {
		if !e.Add(0.25, 3.5, 12.75) {
			b.Fatal("not added")
		}
	}
}
