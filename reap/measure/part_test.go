package measure

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/reap"
)

// partOf measures one part of a calibration.
func partOf(t testing.TB, e *reap.Experts, kinds []*Kind, number, parts int, change func(*Facts)) *Part {
	t.Helper()
	r := NewRun(e, kinds, 2)
	facts := Facts{
		Source:     Model{StructureDigest: "blake3:1", Architecture: e.Architecture, Name: "m"},
		NumExperts: e.Count, TopK: e.Used, BlockCount: 40, Engine: "llama.cpp",
		Settings: map[string]string{"context": "16"}, Basis: map[string]string{"chunks": "2 side by side"},
	}
	_, facts.AllChunks = r.Chunks()
	r.Only(number, parts)
	m := &meter{e: e}
	for !r.Done() {
		if err := r.Step(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(&facts)
	}
	p, err := r.Part(number, parts, facts, "CPU")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// joined adds parts up and returns the score document.
func joined(t testing.TB, e *reap.Experts, parts ...*Part) []byte {
	t.Helper()
	j := &Join{}
	for _, p := range parts {
		if err := j.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	m, err := j.Measurements()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// However a calibration is divided, and in whatever order the parts are added, the document
// is the same, and each chunk was measured once.
func TestPartsGiveTheSameDocument(t *testing.T) {
	e := experts(t)
	rng := rand.New(rand.NewPCG(1, 9))
	for range 6 {
		var texts []*Text
		for i := range 1 + rng.IntN(3) {
			texts = append(texts, text(string(rune('a'+i)), []float64{1, 1, 0.3}[rng.IntN(3)], long(rng.Uint64(), 20+rng.IntN(400)), long(rng.Uint64(), 2+rng.IntN(50))))
		}
		kinds := func() []*Kind { return cut(t, Rules{Context: 16, BOS: -1}, texts...) }
		whole := joined(t, e, partOf(t, e, kinds(), 1, 1, nil))
		for _, parts := range []int{2, 3, 7, 40} {
			var all []*Part
			chunks := 0
			for i := range parts {
				p := partOf(t, e, kinds(), i+1, parts, nil)
				chunks += p.Chunks
				data, err := p.Encode()
				if err != nil {
					t.Fatal(err)
				}
				back, err := ReadPart(data)
				if err != nil || back.Describes(e) != nil {
					t.Fatalf("read back: %v, %v", err, back.Describes(e))
				}
				all = append(all, back)
			}
			if chunks != all[0].AllChunks {
				t.Errorf("%d parts: %d chunks, want %d", parts, chunks, all[0].AllChunks)
			}
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if !bytes.Equal(joined(t, e, all...), whole) {
				t.Errorf("%d parts give another document", parts)
			}
		}
	}
}

// Parts are balanced: none has more tokens than its share and what is measured at a time.
func TestPartsAreBalanced(t *testing.T) {
	e := experts(t)
	kinds := cut(t, Rules{Context: 16, BOS: -1}, text("a", 1, long(1, 16*50)), text("b", 1, long(2, 16*14)))
	_, all := NewRun(e, kinds, 2).Tokens()
	for _, n := range []int{1, 2, 5, 31} {
		for i := 1; i <= n; i++ {
			r := NewRun(e, kinds, 2)
			r.Only(i, n)
			if _, mine := r.Tokens(); mine > all/n+2*32 || mine < all/n-2*32 {
				t.Errorf("part %d of %d has %d of %d tokens", i, n, mine, all)
			}
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	e := experts(t)
	kinds := func() []*Kind { return kindsOfTwo(t) }
	part := func(i, n int, change func(*Facts)) *Part { return partOf(t, e, kinds(), i, n, change) }
	first := part(1, 3, nil)
	otherText := partOf(t, e, cut(t, Rules{Context: 16, BOS: -1}, text("a", 1, long(1, 200), long(2, 41)), text("b", 0.5, long(3, 130)), text("c", 1, long(4, 90))), 2, 3, nil)
	for name, tc := range map[string]struct {
		second *Part
		want   string
	}{
		"the same part twice":       {part(1, 3, nil), "part 1 comes twice"},
		"another number of parts":   {part(2, 4, nil), "the number of parts: 3, and 4"},
		"another model":             {part(2, 3, func(f *Facts) { f.Source.StructureDigest = "blake3:2" }), "the model"},
		"other weights":             {part(2, 3, func(f *Facts) { f.Source.WeightsDigest = "blake3:3" }), "the model"},
		"another llama.cpp":         {part(2, 3, func(f *Facts) { f.Engine = "other" }), "llama.cpp"},
		"other settings":            {part(2, 3, func(f *Facts) { f.Settings = map[string]string{"context": "32"} }), `context: "16", and "32"`},
		"another formula":           {part(2, 3, func(f *Facts) { f.Settings = map[string]string{"context": "16", "formula": "x"} }), "the settings"},
		"other chunks side by side": {part(2, 3, func(f *Facts) { f.Basis = map[string]string{"chunks": "4 side by side"} }), "chunks"},
		"other texts":               {otherText, "the texts"},
	} {
		j := &Join{}
		if err := j.Add(first); err != nil {
			t.Fatal(err)
		}
		if err := j.Add(tc.second); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	j := &Join{}
	for _, i := range []int{2, 5} {
		if err := j.Add(part(i, 6, nil)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := j.Measurements()
	missing, ok := errors.AsType[*MissingError](err)
	if !ok || !slices.Equal(missing.Missing, []int{1, 3, 4, 6}) || !strings.Contains(err.Error(), "parts 1, 3-4, 6 of 6 are missing") {
		t.Errorf("missing parts: %v", err)
	}
	if _, err := (&Join{}).Measurements(); err == nil {
		t.Error("no parts are enough")
	}
}

func TestReadPartRefuses(t *testing.T) {
	e := experts(t)
	data, err := partOf(t, e, kindsOfTwo(t), 2, 3, nil).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 7 {
		if _, err := ReadPart(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(data))
		}
	}
	for i := 0; i < len(data); i += 11 {
		changed := bytes.Clone(data)
		changed[i] ^= 4
		if _, err := ReadPart(changed); err == nil {
			t.Errorf("byte %d changed is taken", i)
		}
	}
	for name, change := range map[string]func(p *Part){
		"part 0":          func(p *Part) { p.Number = 0 },
		"part 4 of 3":     func(p *Part) { p.Number = 4 },
		"too many parts":  func(p *Part) { p.Parts = maxParts + 1 },
		"too many chunks": func(p *Part) { p.Chunks = p.AllChunks + 1 },
		"no kinds":        func(p *Part) { p.Kinds, p.sums = nil, nil },
		"no weight":       func(p *Part) { p.Kinds[0].Weight = 0 },
		"other experts":   func(p *Part) { p.NumExperts++ },
		"fewer blocks":    func(p *Part) { p.BlockCount = 1 },
		"endless blocks":  func(p *Part) { p.BlockCount = 1 << 30 },
	} {
		p := partOf(t, e, kindsOfTwo(t), 2, 3, nil)
		change(p)
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPart(data); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	p := partOf(t, e, kindsOfTwo(t), 2, 3, nil)
	p.sums[0].Layers[1][0].Tokens++
	if p.Describes(e) == nil {
		t.Error("a token that no layer has is taken")
	}
}

func FuzzReadPart(f *testing.F) {
	e := experts(f)
	data, err := partOf(f, e, kindsOfTwo(f), 1, 2, nil).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(partMark))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPart(data)
		if err != nil {
			return
		}
		p.Describes(e)
		j := &Join{}
		if err := j.Add(p); err != nil {
			t.Error(err)
		}
		j.Measurements()
	})
}
