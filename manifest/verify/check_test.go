package verify

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

func mustCheck(t *testing.T, m *gguf.Model, e Evidence, o CheckOptions) *Report {
	t.Helper()
	r, err := Check(context.Background(), m, e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// says reports whether some line of a list holds the text.
func says(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, text) })
}

func gapTexts(r *Report) []string {
	var list []string
	for _, g := range r.Gaps {
		list = append(list, g.What)
	}
	return list
}

func TestCheckAgainstAPin(t *testing.T) {
	pin := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3}), manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	const slab = 64 * 50 / 32 * 34 // bytes of an expert of ffn_up_exps
	for name, test := range map[string]struct {
		edit   func(c *gguf.Contents)
		shards int
		want   []Finding // What is a part of it
	}{
		"same":        {func(*gguf.Contents) {}, 3, nil},
		"seven files": {func(*gguf.Contents) {}, 7, nil},
		"one file":    {func(*gguf.Contents) {}, 1, nil},
		"reordered":   {func(c *gguf.Contents) { slices.Reverse(c.Views) }, 2, nil},
		"an expert": {func(c *gguf.Contents) {
			modeltest.ChangedData(modeltest.View(*c, "blk.1.ffn_up_exps.weight"), 4*slab+9)
		}, 1,
			[]Finding{finding(KindDigest, "m.gguf", "blk.1.ffn_up_exps.weight", 4, "blake3 is")}},
		"a bias": {func(c *gguf.Contents) { modeltest.ChangedData(modeltest.View(*c, "blk.1.exp_probs_b.bias"), 4*5) }, 1,
			[]Finding{finding(KindDigest, "m.gguf", "blk.1.exp_probs_b.bias", 5, "bytes are")}},
		"a tensor": {func(c *gguf.Contents) { modeltest.ChangedData(modeltest.View(*c, "output.weight"), 0) }, 2,
			[]Finding{finding(KindDigest, "m-00002-of-00002.gguf", "output.weight", manifest.NoExpert, "blake3 is")}},
		"another type": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Type = gguf.BF16 }, 1,
			[]Finding{finding(KindStructure, "m.gguf", "token_embd.weight", manifest.NoExpert, "has type BF16, the pin says F16")}},
		"another shape": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Shape = []uint64{7, 33} }, 1,
			[]Finding{finding(KindStructure, "m.gguf", "token_embd.weight", manifest.NoExpert, "has shape [7 33], the pin says [33 7]")}},
		"another name": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Name = "tok" }, 1,
			[]Finding{finding(KindMissing, "", "token_embd.weight", manifest.NoExpert, "not there"), finding(KindExtra, "m.gguf", "tok", manifest.NoExpert, "is not pinned")}},
		"metadata": {func(c *gguf.Contents) {
			c.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("llama"))
			c.Metadata.Set("test.expert_count", gguf.Uint64Value(gguftest.MixedExperts))
			c.Metadata.Set("z", gguf.Uint8Value(1))
			c.Metadata = c.Metadata.Without(func(key string) bool { return key == "tokenizer.ggml.tokens" })
		}, 1, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "test.expert_count" has type u64, was u32`),
			finding(KindMetadata, "", "", manifest.NoExpert, `key "tokenizer.ggml.model" has another value`),
			finding(KindMetadata, "", "", manifest.NoExpert, `key "tokenizer.ggml.tokens" (arr) is missing`),
			finding(KindMetadata, "", "", manifest.NoExpert, `key "z" (u8) was added`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := modeltest.Contents(1)
			test.edit(&c)
			r := mustCheck(t, modeltest.New(t, c, gguf.Split{Shards: test.shards}), pin, CheckOptions{})
			checkFindings(t, r.Findings, test.want)
			if r.OK() != says(r.Checked, "the same model: pin digest "+pin.PinDigest.String()) {
				t.Errorf("checked %q", r.Checked)
			}
		})
	}
}

// checkFindings wants each finding, in order, What being a part of what is said.
func checkFindings(t *testing.T, got, want []Finding) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d findings %+v, want %d", len(got), got, len(want))
		return
	}
	for i, w := range want {
		g := got[i]
		if !strings.Contains(g.What, w.What) {
			t.Errorf("finding %d says %q, want %q", i, g.What, w.What)
		}
		g.What = w.What
		if w.Parts == nil {
			g.Parts = nil
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("finding %d is %+v, want %+v", i, got[i], w)
		}
	}
}

// TestCheckNamesRangesOfBytes changes experts that follow each other, and one alone.
func TestCheckNamesRangesOfBytes(t *testing.T) {
	const exps, size = "blk.1.ffn_up_exps.weight", 64 * 50 / 32 * 34
	pin := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3}), manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	c := modeltest.Contents(1)
	for _, expert := range []int{1, 2, 3, 5} {
		modeltest.ChangedData(modeltest.View(c, exps), expert*size)
	}
	m := modeltest.New(t, c, gguf.Split{})
	at := m.Tensor(exps).DataOffset()
	checkFindings(t, mustCheck(t, m, pin, CheckOptions{}).Findings, []Finding{
		{Kind: KindDigest, File: "m.gguf", Tensor: exps, Expert: manifest.NoExpert, What: "experts 1 to 3 and 5 are not as pinned; expert 1 blake3 is ",
			Parts: []Part{{"m.gguf", exps, at + size, 3 * size}, {"m.gguf", exps, at + 5*size, size}}},
	})
}

// TestCheckSeesBytesOfNoTensor flips a byte of padding: no tensor and no key differs.
func TestCheckSeesBytesOfNoTensor(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{})
	pin := mustPin(t, modeltest.Open(t, paths[0]), manifest.BuildOptions{})
	change(t, paths[0], flipLast)
	r := mustCheck(t, modeltest.Open(t, paths[0]), pin, CheckOptions{})
	checkFindings(t, r.Findings, []Finding{finding(KindDigest, "m.gguf", "", manifest.NoExpert, "bytes that belong to no tensor and no key")})
}

// TestCheckNotesOtherNames renames the file, which makes no other artifact of it.
func TestCheckNotesOtherNames(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{})
	pin := mustPin(t, modeltest.Open(t, paths[0]), manifest.BuildOptions{})
	other := filepath.Join(t.TempDir(), "other.gguf")
	if err := os.Rename(paths[0], other); err != nil {
		t.Fatal(err)
	}
	r := mustCheck(t, modeltest.Open(t, other), pin, CheckOptions{})
	if !r.OK() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0].What, `under other names: "m.gguf"`) {
		t.Errorf("got %+v, %+v", r.Findings, r.Notes)
	}
}

// TestCheckSeesAForgedSlabDigest gives the pin a slab digest that does not belong to the
// tensor whose digest it states.
func TestCheckSeesAForgedSlabDigest(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{})
	pin := mustPin(t, m, manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	manifest.ByName(pin)["blk.1.ffn_up_exps.weight"].Slabs.BLAKE3[2*32] ^= 1
	r := mustCheck(t, m, pin, CheckOptions{})
	checkFindings(t, r.Findings, []Finding{finding(KindDigest, "m.gguf", "blk.1.ffn_up_exps.weight", 2, "the pin says")})
}

func TestCheckQuick(t *testing.T) {
	pin := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{}), manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	data := modeltest.Contents(1)
	modeltest.ChangedData(modeltest.View(data, "output.weight"), 0)
	reads := false
	r := mustCheck(t, modeltest.New(t, data, gguf.Split{}), pin, CheckOptions{Quick: true, Progress: func(int64, int64) { reads = true }})
	if !r.OK() || reads || !says(gapTexts(r), "only headers were read") || says(r.Checked, "the same model") || says(r.Checked, "byte of data") {
		t.Errorf("got %+v", r)
	}
	data.Metadata.Set("z", gguf.Uint8Value(1))
	modeltest.View(data, "output.weight").Shape = []uint64{101 * 32}
	r = mustCheck(t, modeltest.New(t, data, gguf.Split{}), pin, CheckOptions{Quick: true})
	checkFindings(t, r.Findings, []Finding{finding(KindStructure, "m.gguf", "output.weight", manifest.NoExpert, "has shape"), finding(KindMetadata, "", "", manifest.NoExpert, `key "z"`)})
}

func TestCheckOfAnUnsoundModel(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	pin := mustPin(t, modeltest.Open(t, paths[0]), manifest.BuildOptions{})
	os.Remove(paths[1])
	os.Truncate(paths[2], 1200)
	m, err := gguf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r := mustCheck(t, m, pin, CheckOptions{})
	if !has(r, KindStructure, "", "incomplete") || !has(r, KindStructure, "m-00003-of-00003.gguf", "truncated") || !says(gapTexts(r), "compared with nothing") {
		t.Errorf("got %+v", r)
	}
	for _, f := range r.Findings {
		if strings.Contains(f.What, "truncated") && f.Tensor == "" {
			t.Errorf("%+v names no tensor", f)
		}
	}
}

// TestOpaqueTensorsAreMeasuredAsWritten pins a release whose expert tensor has a type of
// which only the writer knew the size, and reads it again.
func TestOpaqueTensorsAreMeasuredAsWritten(t *testing.T) {
	const unknown = gguf.Type(4000)
	c := modeltest.Contents(1)
	data := bytes.Repeat([]byte("seven b"), gguftest.MixedExperts*5)
	v := modeltest.View(c, "blk.1.ffn_up_exps.weight")
	*v = gguf.View{Name: v.Name, Type: unknown, Shape: []uint64{3, 5, gguftest.MixedExperts}}
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
	dir, pin := mustDraft(t, "out", c, gguftest.MixedSlabs, 1)
	m := modeltest.Open(t, dir)
	if r := mustCheck(t, m, pin, CheckOptions{}); !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
	if tensor := m.Tensor(v.Name); !tensor.Opaque || tensor.Size == int64(len(data)) {
		t.Errorf("the tensor of an unknown type has %d bytes as if its type were known", tensor.Size)
	}
}

func TestReadEvidenceTellsFormsApart(t *testing.T) {
	dir := t.TempDir()
	_, pin := mustRelease(t)
	for name, test := range map[string]struct{ text, want string }{
		"pin.json":     {string(encodePin(t, "p.json", pin)), "*manifest.Pin"},
		"pin.json.zst": {string(encodePin(t, "p.zst", pin)), "*manifest.Pin"},
		"tree.json":    {` [{"type":"file","path":"a","size":0,"oid":"x"}]`, "lists.Tree"},
		"sums":         {hexA + "  a.gguf\n", "verify.sumsFile"},
		"tagged":       {"SHA256 (sha256 x) = " + hexA + "\n", "verify.sumsFile"},
		"hashes":       {"sha256    " + hexA + "  a.gguf\n", "lists.GGUFHashes"},
		"uuid":         {"uuid      ef001206-dadc-5f6d-a15f-3359e577d4e5  a.gguf\n", "lists.GGUFHashes"},
		"model":        {"GGUF\x03", "a model, want a pin"},
		"empty":        {"", "no entries"},
		"plan":         {`{"schema": "ggufreap/plan/v1"}`, `schema is "ggufreap/plan/v1"`},
		"page":         {"<!DOCTYPE html>\n", "line 1"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(test.text), 0o666); err != nil {
			t.Fatal(err)
		}
		e, err := ReadEvidence(path)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%s: got %v, want %s", name, err, test.want)
			}
			continue
		}
		if got := typeName(e); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// TestCheckLeavesOuterOnesOut writes a tensor with the dims that another program gives it.
func TestCheckLeavesOuterOnesOut(t *testing.T) {
	pin := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3}), manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	c := modeltest.Contents(1)
	for _, name := range []string{"token_embd.weight", "blk.1.ffn_up_exps.weight"} {
		v := modeltest.View(c, name)
		v.Shape = append(slices.Clone(v.Shape), 1)
	}
	m := modeltest.New(t, c, gguf.Split{})
	r := mustCheck(t, m, pin, CheckOptions{})
	if !r.OK() || r.PinDigest != pin.PinDigest || !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.Contains(n.What, "2 tensors have other dims of 1 at the outer end") }) {
		t.Errorf("got %+v", r)
	}
	o := manifest.BuildOptions{}
	o.Follow(m, pin)
	if proof, findings := Prove(mustPin(t, m, o), pin, ProveOptions{}); len(findings) > 0 || proof.Unproven > 0 {
		t.Errorf("the proof: %+v, %+v", proof, findings)
	}
}
