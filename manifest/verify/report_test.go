package verify

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

// TestReportCounts has more findings than are listed: all are counted, by kind.
func TestReportCounts(t *testing.T) {
	r := newReport("")
	for i := range 150 {
		r.find(KindMissing, fmt.Sprint(i), "is not there")
	}
	r.find(KindExtra, "x", "is not listed")
	if found := r.Found(); len(r.Findings) != 101 || r.Total() != 151 || found[KindMissing] != 150 || found[KindExtra] != 1 {
		t.Errorf("%d listed, %d in all, %v", len(r.Findings), r.Total(), found)
	}
}

// TestReportBoundsParts lists no more parts than it may, and says so.
func TestReportBoundsParts(t *testing.T) {
	r := newReport("")
	r.Add(Finding{Kind: KindDigest, Parts: make([]Part, maxParts-1)})
	r.Add(Finding{Kind: KindDigest, What: "x", Parts: make([]Part, 3)})
	r.Add(Finding{Kind: KindDigest, What: "y", Parts: make([]Part, 1)})
	for i, want := range []struct {
		parts int
		what  string
	}{{maxParts - 1, ""}, {1, "x; 2 parts are too many to be listed"}, {0, "y; 1 part is too many to be listed"}} {
		if f := r.Findings[i]; len(f.Parts) != want.parts || f.What != want.what {
			t.Errorf("finding %d: %d parts, %q, want %d, %q", i, len(f.Parts), f.What, want.parts, want.what)
		}
	}
}

// TestZeroTail has zeros at the end that reach over the parts in which a file is read.
func TestZeroTail(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 20, 1<<20 + 1, 5 << 19} {
		data := append(bytes.Repeat([]byte{0, 7}, 1<<19), make([]byte, n)...)
		if got := zeroTail(bytes.NewReader(data), int64(len(data))); got != int64(n) {
			t.Errorf("%d zeros: got %d", n, got)
		}
	}
	if got := zeroTail(bytes.NewReader(make([]byte, 3<<20)), 3<<20); got != 3<<20 {
		t.Errorf("zeros alone: got %d", got)
	}
}

// TestOldFormats are told by how they begin.
func TestOldFormats(t *testing.T) {
	for _, magic := range oldModels {
		if c := sniff("x.bin", []byte(magic+"........")); c.weights != "a model in a format older than GGUF" || c.model {
			t.Errorf("%q: %+v", magic, c)
		}
	}
	if c := sniff("x.bin", []byte("nothing known")); c.weights != "" {
		t.Errorf("%+v", c)
	}
}

// TestVerifyNotesOtherOrder proves a release whose tensors stand in another order than its
// source's.
func TestVerifyNotesOtherOrder(t *testing.T) {
	const other = "the tensors stand in another order than in the source"
	c := modeltest.PrunedMoE()
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	for _, moved := range []bool{false, true} {
		if moved {
			c.Views[0], c.Views[1] = c.Views[1], c.Views[0]
		}
		dir := t.TempDir()
		modeltest.Write(t, dir, "m", c, gguf.Split{})
		r := mustVerify(t, dir, Options{Source: source, Prove: func(*gguf.Model, *manifest.Pin) ProveOptions {
			return ProveOptions{Keep: modeltest.MoEKeep, MayChange: mayAdd}
		}})
		noted := false
		for _, n := range r.Notes {
			noted = noted || strings.Contains(n.What, other)
		}
		if noted != moved {
			t.Errorf("moved %v: notes %q", moved, r.Notes)
		}
	}
}

// TestOneLineForAKey changes a key that the release's own pin and its source's both have: it is
// told once.
func TestOneLineForAKey(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	c := modeltest.PrunedMoE()
	c.Metadata.Set("tokenizer.chat_template", gguf.TextValue("another"))
	dir := t.TempDir()
	modeltest.Write(t, dir, "m", c, gguf.Split{})
	own := pinContents(t, modeltest.PrunedMoE(), gguf.Split{}, modeltest.MoESlabs(4))
	var text bytes.Buffer
	if err := manifest.EncodePin(&text, manifest.PinName, own); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, manifest.PinName, text.Bytes())
	r := mustVerify(t, dir, Options{Source: source, Prove: func(*gguf.Model, *manifest.Pin) ProveOptions {
		return ProveOptions{Keep: modeltest.MoEKeep, MayChange: mayAdd}
	}})
	if n := r.Found()[KindMetadata]; n != 1 || r.Proof == nil {
		t.Errorf("%d findings about keys, want 1: %+v", n, r.Findings)
	}
}

// TestCutOffBytes cuts a file: the bytes that it lacks are told.
func TestCutOffBytes(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{})
	size := modeltest.Open(t, paths[0]).Files[0].Size
	if err := os.Truncate(paths[0], size-1000); err != nil {
		t.Fatal(err)
	}
	r := mustVerify(t, paths[0], Options{})
	var parts []Part
	for _, f := range r.Findings {
		parts = append(parts, f.Parts...)
	}
	if len(parts) != 1 || parts[0].File != "m.gguf" || parts[0].Offset != size-1000 || parts[0].Length < 900 || parts[0].Length > 1000 {
		t.Errorf("parts %+v of %+v, want the last of %d bytes", parts, r.Findings, size)
	}
}

// TestPlaceSums tells of files with a wrong sum which bytes that can be.
func TestPlaceSums(t *testing.T) {
	sum := Finding{Kind: KindDigest, File: "m.gguf", Expert: manifest.NoExpert, What: "sum"}
	tensor := Finding{Kind: KindDigest, File: "m.gguf", Tensor: "a", Expert: manifest.NoExpert, Parts: []Part{{"m.gguf", "a", 500, 7}}}
	key := Finding{Kind: KindMetadata, Expert: manifest.NoExpert, What: "key"}
	header, all := []Part{{File: "m.gguf", Length: 100}}, []Part{{File: "m.gguf", Length: 900}}
	for name, test := range map[string]struct {
		beside []Finding
		file   wrongSum
		parts  []Part
		what   string
	}{
		"no pin":               {nil, wrongSum{size: 900, before: 100}, all, "any of its 900 bytes"},
		"no pin, a key":        {[]Finding{key}, wrongSum{size: 900, before: 100}, all, "any of its 900 bytes"},
		"a pin, nothing wrong": {nil, wrongSum{900, 100, true}, header, "lies in the 100 bytes before it"},
		"a pin, a tensor":      {[]Finding{tensor}, wrongSum{900, 100, true}, nil, "sum"},
		"a pin, both":          {[]Finding{tensor, key}, wrongSum{900, 100, true}, header, "before the tensor data differ too"},
		"a source, a tensor":   {[]Finding{tensor}, wrongSum{size: 900}, nil, "sum"},
		"a list that is wrong": {nil, wrongSum{}, nil, "sum"},
	} {
		r := newReport("")
		for _, f := range append([]Finding{sum}, test.beside...) {
			r.Add(f)
		}
		r.placeSums(func(file string) wrongSum { return test.file })
		if f := r.Findings[0]; !slices.Equal(f.Parts, test.parts) || !strings.HasSuffix(f.What, test.what) && !strings.Contains(f.What, test.what) {
			t.Errorf("%s: %+v, want %v and %q", name, f, test.parts, test.what)
		}
	}
}

// TestPinnedSum wants a pin of just this file.
func TestPinnedSum(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{})
	pin := mustPin(t, m, manifest.BuildOptions{})
	if got := pinnedSum(m.Files[0], pin); !got.pinned || got.size != m.Files[0].Size || got.before != m.Files[0].DataOffset {
		t.Errorf("got %+v", got)
	}
	for _, change := range []func(f *manifest.File){func(f *manifest.File) { f.Size++ }, func(f *manifest.File) { f.Name = "x.gguf" }} {
		other := *pin
		other.Files = slices.Clone(pin.Files)
		change(&other.Files[0])
		if pinnedSum(m.Files[0], &other).pinned {
			t.Errorf("a pin of %+v is taken for one of this file", other.Files)
		}
	}
}
