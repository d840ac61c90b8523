package scorefile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"ggufreap/reap"
)

// npy makes an array file with a header that may lie.
func npy(descr, shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	file := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header)))...)
	return append(append(file, header...), data...)
}

func npzOf(t *testing.T, members ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i].(string) + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(members[i+1].([]byte)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNpzRefuses(t *testing.T) {
	good := npy("<f8", "(3, 4)", make([]byte, 96))
	small := func(values ...byte) []byte { return npy("|u1", fmt.Sprintf("(%d,)", len(values)), values) }
	for name, c := range map[string]struct {
		members []any
		want    string
	}{
		"no counts":         {[]any{"saliency", good}, `members "saliency" and "counts" are needed`},
		"twice":             {[]any{"saliency", good, "counts", good, "counts", good}, `member "counts.npy" stands twice`},
		"not npy":           {[]any{"saliency", []byte("hello"), "counts", good}, "saliency: not an npy array"},
		"one dim":           {[]any{"saliency", npy("<f8", "(12,)", make([]byte, 96)), "counts", good}, "saliency: shape [12], want 2 dims that end in [4]"},
		"other experts":     {[]any{"saliency", npy("<f8", "(2, 6)", make([]byte, 96)), "counts", good}, "saliency: shape [2 6], want 2 dims that end in [4]"},
		"other rows":        {[]any{"saliency", good, "counts", npy("<f8", "(2, 4)", make([]byte, 64))}, "counts: shape [2 4], want 2 dims that end in [3 4]"},
		"text":              {[]any{"saliency", npy("<U1", "(3, 4)", make([]byte, 48)), "counts", good}, "saliency: shape [3 4]"},
		"complex":           {[]any{"saliency", npy("<c16", "(3, 4)", make([]byte, 192)), "counts", good}, `npy type "c16" is not read`},
		"object":            {[]any{"saliency", npy("|O8", "(3, 4)", make([]byte, 96)), "counts", good}, `npy type "O8" is not read`},
		"short":             {[]any{"saliency", npy("<f8", "(3, 4)", make([]byte, 95)), "counts", good}, "npy array ends at element 11 of 12"},
		"long":              {[]any{"saliency", npy("<f8", "(3, 4)", make([]byte, 97)), "counts", good}, "more data than the npy header states"},
		"terabytes":         {[]any{"saliency", npy("<f8", "(4000000000, 4)", nil), "counts", good}, "has more than 16384 elements"},
		"product too large": {[]any{"saliency", npy("<f8", "(9000, 9000)", nil), "counts", good}, "has more than 16384 elements"},
		"odd shape":         {[]any{"saliency", npy("<f8", "(3,, 4)", nil), "counts", good}, "npy shape (3,, 4) is not understood"},
		"odd header":        {[]any{"saliency", []byte("\x93NUMPY\x01\x00\x02\x00{}"), "counts", good}, `npy header "{}" is not understood`},
		"header too long":   {[]any{"saliency", []byte("\x93NUMPY\x02\x00\xff\xff\xff\x7f"), "counts", good}, "npy header of 2147483647 bytes"},
		"version 9":         {[]any{"saliency", []byte("\x93NUMPY\x09\x00\x02\x00{}"), "counts", good}, "npy format version 9"},
		"other experts key": {[]any{"saliency", good, "counts", good, "num_experts", small(5)}, "num_experts: 5, want 4"},
		"other top-k":       {[]any{"saliency", good, "counts", good, "top_k", small(3)}, "top_k: 3, want 2"},
		"two top-ks":        {[]any{"saliency", good, "counts", good, "top_k", small(2, 2)}, "top_k: npy shape (2,) has more than 1"},
		"block beyond":      {[]any{"saliency", good, "counts", good, "moe_layers", small(1, 7)}, "moe_layers: layer 7, but there are 3 rows"},
		"block twice":       {[]any{"saliency", good, "counts", good, "moe_layers", small(1, 1)}, "moe_layers: layer 1 stands twice"},
		"half a block":      {[]any{"saliency", good, "counts", good, "moe_layers", npy("<f4", "(1,)", []byte{0, 0, 0, 0x3f})}, "moe_layers: element 0 is 0.5"},
		"numbers elsewhere": {[]any{"saliency", npy("|u1", "(3, 4)", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "counts", good, "moe_layers", small(1, 2)}, "layer 0: has numbers, but is not one of the layers that were measured"},
		"sources of another shape": {[]any{"saliency", good, "counts", good, "per_source", npy("<f8", "(2, 2, 4)", make([]byte, 128)), "per_source_counts", npy("<f8", "(2, 2, 4)", make([]byte, 128)),
			"source_labels", npy("<U1", "(2,)", []byte("a\x00\x00\x00b\x00\x00\x00"))}, "per_source: shape [2 2 4], want 3 dims that end in [2 3 4]"},
		"sources without counts": {[]any{"saliency", good, "counts", good, "per_source", npy("<f8", "(2, 3, 4)", make([]byte, 192)),
			"source_labels", npy("<U1", "(2,)", []byte("a\x00\x00\x00b\x00\x00\x00"))}, "per_source_counts: missing"},
		"label of no character": {[]any{"saliency", good, "counts", good, "per_source", good, "source_labels", npy("<U1", "(1,)", []byte{0, 0xd8, 0, 0})}, "source_labels: npy string holds 0xd800"},
	} {
		data := npzOf(t, c.members...)
		_, err := Read(bytes.NewReader(data), int64(len(data)), model())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// A member that unpacks to far more than its array is given up after the array.
func TestZipBomb(t *testing.T) {
	bomb := npy("<f8", "(3, 4)", make([]byte, 64<<20))
	data := npzOf(t, "saliency", bomb, "counts", npy("<f8", "(3, 4)", make([]byte, 96)))
	bomb = nil
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err := Read(bytes.NewReader(data), int64(len(data)), model())
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more data than the npy header states") {
		t.Errorf("error %v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 4<<20 {
		t.Errorf("%d bytes of memory for an archive of %d", taken, len(data))
	}
}

// What an archive packs tightly is bounded by what it takes itself, for all arrays together.
func TestMemoryOfArchives(t *testing.T) {
	e := &reap.Experts{Architecture: "x", Count: 896, Used: 16, Groups: 1, GroupsUsed: 1}
	for block := range 92 {
		e.Layers = append(e.Layers, &reap.Layer{Block: block + 1})
	}
	array := func(number string, dims ...int) []byte {
		n, shape := 1, ""
		for _, d := range dims {
			n, shape = n*d, shape+fmt.Sprintf("%d, ", d)
		}
		return npy("<f8", "("+strings.TrimSuffix(shape, ", ")+")", bytes.Repeat([]byte(number), n))
	}
	const zero, nan = "\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"
	small := array(zero, 93, 896)
	labels := npy("<U1", "(24,)", bytes.Repeat([]byte("a\x00\x00\x00"), 24))
	for name, c := range map[string]struct {
		members []any
		want    string
	}{
		"rows":    {[]any{"saliency", array(zero, 4000, 896), "counts", small}, "has more than 2097152 elements"},
		"counts":  {[]any{"saliency", array(zero, 2000, 896), "counts", array(zero, 2000, 896)}, "counts: npy shape (2000, 896) has more than 305152 elements"},
		"sources": {[]any{"saliency", small, "counts", small, "source_labels", labels, "per_source", array(zero, 24, 93, 896)}, "per_source: npy shape (24, 93, 896) has more than 1930496 elements"},
		"strings": {[]any{"saliency", npy("<U1", "(1000, 896)", bytes.Repeat([]byte("a\x00\x00\x00"), 896_000)), "counts", small}, "npy array of 896000 strings, at most 64 are read"},
		"empties": {[]any{"saliency", npy("<U0", "(2000, 896)", nil), "counts", small}, "npy array of 1792000 strings, at most 64 are read"},
		"NaNs":    {[]any{"saliency", array(nan, 1000, 896), "counts", array(nan, 1000, 896)}, "layers 0, 93-999: has numbers"},
	} {
		data := npzOf(t, c.members...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(data), int64(len(data)), e)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
			t.Errorf("%s: %d bytes of memory for an archive of %d", name, taken, len(data))
		}
	}
}

// TestManyParts refuses a document with more of something than there can be.
func TestManyParts(t *testing.T) {
	const head = `{"schema":"ggufreap/saliency/v1","source":{"structure_digest":null,"weights_digest":null,"architecture":"x","name":"n"},"engine":null,"tokens":0,`
	layers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":{"count":[1,1,1,1]},`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	many := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	input, source := `{"file":"f","sha256":"s"}`, `{"label":"a","tokens":0,"layers":{}}`
	cache := func(n int) string {
		return `{"format":"llama-moe-prune-importance-cache","version":1,"stats":{"1":[` +
			many(n, `{"selection_count":1,"probability_sum":1,"weighted_output_sum":1}`) + `]}}`
	}
	for text, want := range map[string]string{
		head + `"inputs":[],"sources":[],"layers":{` + layers(4096) + `}}`:                       "",
		head + `"inputs":[],"sources":[],"layers":{` + layers(4097) + `}}`:                       "layers: more than 4096 layers",
		head + `"inputs":[` + many(4096, input) + `],"sources":[],"layers":{` + layers(1) + `}}`: "",
		head + `"inputs":[` + many(4097, input) + `],"sources":[],"layers":{` + layers(1) + `}}`: "inputs: more than 4096",
		head + `"inputs":[],"sources":[` + many(64, source) + `],"layers":{` + layers(1) + `}}`:  "",
		head + `"inputs":[],"sources":[` + many(65, source) + `],"layers":{` + layers(1) + `}}`:  "sources: more than 64",
		cache(4): "",
		cache(5): "stats.1: more than 4 experts, which the model has",
	} {
		_, err := Read(strings.NewReader(text), int64(len(text)), model())
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.120q: error %v, want %q", text, err, want)
		}
	}
}

// Every file cut anywhere is an error or, where the cut is behind all that is needed, the
// same measurements.
func TestCutFiles(t *testing.T) {
	for _, file := range []string{"whole.npz", "deflated.npz", "imatrix.gguf", "sums.reap.gguf", "saliency.json", "expert_stats.json", "importance-cache.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Read(bytes.NewReader(data), int64(len(data)), model())
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			got, err := Read(bytes.NewReader(data[:n]), int64(n), model())
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%s cut to %d of %d bytes reads as %+v", file, n, len(data), got)
			}
		}
	}
}

// A model in place of scores, and scores of another model.
func TestReadGGUFRefuses(t *testing.T) {
	data, err := os.ReadFile("testdata/imatrix.gguf")
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(data, []byte("imatrix"), []byte("modelxx"), 2)
	other = bytes.Replace(other, []byte("imatrix"), []byte("modelxx"), 1)
	if _, err := Read(bytes.NewReader(other), int64(len(other)), model()); err == nil || !strings.Contains(err.Error(), "without scores of routed experts") {
		t.Errorf("a model: error %v", err)
	}
	e := model()
	e.Count = 5
	if _, err := Read(bytes.NewReader(data), int64(len(data)), e); err == nil || !strings.Contains(err.Error(), "shape [1 4], want F32 with 5") {
		t.Errorf("another model's: error %v", err)
	}
}

// Bytes that pass as a score file give scores that can be checked, and measurements that
// survive being written and read again.
func fuzzRead(f *testing.F, files ...string) {
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e := model()
		m, err := Read(bytes.NewReader(data), int64(len(data)), e)
		if err != nil {
			return
		}
		for _, criterion := range m.Criteria() {
			s, err := m.Scores(criterion)
			if err != nil {
				t.Fatal(err)
			}
			s.Check(e, true)
		}
		m.Source.Architecture = e.Architecture
		document, err := m.Encode(e)
		if err != nil {
			return // text that JSON cannot hold
		}
		again, err := Read(bytes.NewReader(document), int64(len(document)), e)
		if err != nil {
			for _, l := range m.Layers {
				if l.Count == nil {
					return // a saliency document needs counts
				}
			}
			t.Fatalf("written again it is refused: %v", err)
		}
		for _, criterion := range again.Criteria() {
			if criterion == reap.ReapMean {
				continue // derived once more
			}
			want, _ := m.Scores(criterion)
			got, _ := again.Scores(criterion)
			if want != nil && !reflect.DeepEqual(got.Layers, want.Layers) {
				t.Errorf("%s: written and read again %v, want %v", criterion, got.Layers, want.Layers)
			}
		}
	})
}

func FuzzReadNpz(f *testing.F) {
	fuzzRead(f, "whole.npz", "deflated.npz", "types.npz", "observations.pt")
}
func FuzzReadGGUF(f *testing.F)     { fuzzRead(f, "imatrix.gguf", "sums.reap.gguf") }
func FuzzReadHotness(f *testing.F)  { fuzzRead(f, "hotness.csv") }
func FuzzReadStats(f *testing.F)    { fuzzRead(f, "expert_stats.json", "nemotron_stats.json") }
func FuzzReadCache(f *testing.F)    { fuzzRead(f, "importance-cache.json") }
func FuzzReadSaliency(f *testing.F) { fuzzRead(f, "saliency.json", "legacy.dat") }

// FuzzReadArray reads arrays without the archive around them.
func FuzzReadArray(f *testing.F) {
	f.Add(npy("<f8", "(3, 4)", make([]byte, 96)))
	f.Add(npy("<U3", "(2,)", make([]byte, 24)))
	f.Add(npy("|u1", "()", []byte{7}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readArray(bytes.NewReader(data), 1000)
		if err != nil {
			return
		}
		count := 1
		for _, n := range a.shape {
			count *= n
		}
		if len(a.values)+len(a.texts) != count {
			t.Errorf("%d numbers and %d strings for shape %v", len(a.values), len(a.texts), a.shape)
		}
	})
}
