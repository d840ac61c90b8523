package verify

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

// moeRelease writes contents with 4 experts a block as a finished release of three
// shards, with a document and a pin of itself.
func moeRelease(t *testing.T, c gguf.Contents) string {
	t.Helper()
	dir, pin := mustDraft(t, "r", c, modeltest.MoESlabs(4), 3)
	writeFile(t, dir, "plan.json", []byte("{}\n"))
	writeFile(t, dir, manifest.PinName, encodePin(t, manifest.PinName, pin))
	listSums(t, dir)
	return dir
}

// withTokenizer gives contents what a language model needs to be verified.
func withTokenizer(c gguf.Contents) gguf.Contents {
	c.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	c.Metadata.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b"))
	return c
}

// TestVerifyNamesEveryFlippedByte flips bytes of a release at random: in each tensor of
// each shard, in headers and padding, in the documents and in the list of sums.
func TestVerifyNamesEveryFlippedByte(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := moeRelease(t, withTokenizer(modeltest.PrunedMoE()))
	m := modeltest.Open(t, dir)
	if r := mustVerify(t, dir, Options{}); !r.OK() {
		t.Fatalf("before any flip: %+v", r.Findings)
	}
	for _, tensor := range m.Tensors() {
		for range 3 {
			at := rng.Int64N(tensor.Size)
			expert := manifest.NoExpert
			if modeltest.MoESlabs(4)(tensor.Name) > 0 {
				expert = int(at / (tensor.Size / 4))
			}
			name := filepath.Base(tensor.File().Name)
			flipAt(t, rng, filepath.Join(dir, name), tensor.DataOffset()+at, func(r *Report) {
				if !finds(r, name, tensor.Name, expert) || !has(r, KindDigest, name, "sha256 is") {
					t.Errorf("byte %d of %s: no finding names file %s, tensor and expert %d: %+v", at, tensor.Name, name, expert, r.Findings)
				}
			}, dir)
		}
	}
	var flips int
	for _, name := range folderNames(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			at := rng.Int64N(info.Size())
			flips++
			flipAt(t, rng, filepath.Join(dir, name), at, func(r *Report) {
				if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.File == name || name == manifest.SumsName }) || r.OK() {
					t.Errorf("byte %d of %s: no finding names the file: %+v", at, name, r.Findings)
				}
			}, dir)
		}
	}
	if r := mustVerify(t, dir, Options{}); !r.OK() {
		t.Errorf("after %d flips were undone: %+v", flips, r.Findings)
	}
}

// finds reports whether a finding names file, tensor and expert.
func finds(r *Report, file, tensor string, expert int) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Kind == KindDigest && f.File == file && f.Tensor == tensor && f.Expert == expert
	})
}

// flipAt changes bits of one byte, lets look see what Verify says, and undoes it.
func flipAt(t *testing.T, rng *rand.Rand, path string, at int64, look func(r *Report), dir string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(data)
	flipped[at] ^= byte(1 + rng.IntN(255))
	if err := os.WriteFile(path, flipped, 0o666); err != nil {
		t.Fatal(err)
	}
	look(mustVerify(t, dir, Options{}))
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestVerifySaysThatTheListIsWrong flips a digit of the list: the pin has what was read.
func TestVerifySaysThatTheListIsWrong(t *testing.T) {
	dir := moeRelease(t, withTokenizer(modeltest.PrunedMoE()))
	change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte {
		at := bytes.Index(b, []byte("  r-00001")) - 1
		b[at] = "01"[(b[at]^1)&1]
		return b
	})
	r := mustVerify(t, dir, Options{})
	if !has(r, KindDigest, "r-00001-of-00003.gguf", "pin.json.zst says what was measured") {
		t.Errorf("got %+v", r.Findings)
	}
}

// TestProofSeesWhatSumsCannot makes releases whose pin and list are right about what is
// there, and whose bytes are not the source's.
func TestProofSeesWhatSumsCannot(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	up := "blk.2.ffn_up_exps.weight"
	for name, test := range map[string]struct {
		edit func(c *gguf.Contents)
		want Finding
	}{
		"nothing":             {func(*gguf.Contents) {}, Finding{}},
		"up slabs swapped":    {func(c *gguf.Contents) { modeltest.SwapSlabs(*c, up, 0, 1) }, Finding{Kind: KindExperts, Tensor: up, What: "other tensors of the layer have expert"}},
		"router rows swapped": {func(c *gguf.Contents) { modeltest.SwapSlabs(*c, "blk.1.ffn_gate_inp.weight", 0, 3) }, Finding{Kind: KindExperts, Tensor: "blk.1.ffn_gate_inp.weight", What: "other tensors"}},
		"slab of another layer": {func(c *gguf.Contents) {
			modeltest.PutSlab(*c, up, 4, 1, modeltest.SlabOf(*c, "blk.1.ffn_up_exps.weight", 4, 2))
		}, Finding{Kind: KindDigest, Tensor: up, What: `is expert 3 of the source's tensor "blk.1.ffn_up_exps.weight"`}},
		"tensor dropped": {func(c *gguf.Contents) {
			c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == "blk.2.attn_norm.weight" })
		}, Finding{Kind: KindMissing, Tensor: "blk.2.attn_norm.weight", What: "a tensor of the source"}},
		"tensor added": {func(c *gguf.Contents) {
			c.Views = append(c.Views, modeltest.DataView("x", gguf.I8, []uint64{1}, []byte{1}))
		}, Finding{Kind: KindExtra, Tensor: "x", What: "no tensor of the source"}},
		"template edited": {func(c *gguf.Contents) { c.Metadata.Set("tokenizer.chat_template", gguf.TextValue("x")) }, Finding{Kind: KindMetadata, What: `"tokenizer.chat_template"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := modeltest.PrunedMoE()
			test.edit(&c)
			dir := moeRelease(t, c)
			r := mustVerify(t, dir, Options{})
			if !r.OK() {
				t.Errorf("without the source's pin: %+v", r.Findings)
			}
			if r.Proof != nil || !says(gapTexts(r), "no pin of the source") {
				t.Errorf("without the source's pin: %+v", r.Gaps)
			}
			r = mustVerify(t, dir, Options{Source: source, Prove: func(*gguf.Model, *manifest.Pin) ProveOptions {
				return ProveOptions{Keep: modeltest.MoEKeep, MayChange: mayAdd}
			}})
			found := r.Findings
			if name == "nothing" {
				if len(found) > 0 || r.Proof.Unproven != 0 || !says(r.Checked, "derivation: ") {
					t.Errorf("got %+v", r)
				}
				return
			}
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Kind == test.want.Kind && f.Tensor == test.want.Tensor && strings.Contains(f.What, test.want.What) && (f.Tensor == "" || f.Kind == KindMissing || strings.HasPrefix(f.File, "r-0000"))
			}) {
				t.Errorf("got %+v, want %+v", found, test.want)
			}
		})
	}
}

// TestVerifyProvesBareSets needs no list, no pin and no plan.
func TestVerifyProvesBareSets(t *testing.T) {
	source := pinContents(t, withTokenizer(modeltest.MoE()), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	paths := modeltest.Write(t, t.TempDir(), "m", withTokenizer(modeltest.PrunedMoE()), gguf.Split{Shards: 3})
	r := mustVerify(t, paths[1], Options{Source: source, Prove: func(*gguf.Model, *manifest.Pin) ProveOptions { return ProveOptions{MayChange: mayAdd} }})
	if !r.OK() || r.Proof == nil || r.Proof.Unproven != 0 || !slices.Equal(r.Proof.Layers[1].Keep, modeltest.MoEKeep[2]) {
		t.Errorf("got %+v", r)
	}
	other := Note{"", "the tensors stand in another order than in the source"}
	if slices.Contains(r.Notes, other) {
		t.Errorf("tensors in the source's order: %+v", r.Notes)
	}
	reversed := withTokenizer(modeltest.PrunedMoE())
	slices.Reverse(reversed.Views)
	path := modeltest.Write(t, t.TempDir(), "m", reversed, gguf.Split{})[0]
	if r := mustVerify(t, path, Options{Source: source, Prove: func(*gguf.Model, *manifest.Pin) ProveOptions { return ProveOptions{MayChange: mayAdd} }}); !r.OK() || !slices.Contains(r.Notes, other) {
		t.Errorf("tensors in another order: %+v, %+v", r.Findings, r.Notes)
	}
	r = mustVerify(t, paths[1], Options{Source: source, Fast: true})
	if !r.OK() || r.Proof != nil || !says(gapTexts(r), "a source's pin was given and data not read") {
		t.Errorf("got %+v", r)
	}
}

func TestVerifyFastComparesHeadersWithThePin(t *testing.T) {
	dir := moeRelease(t, withTokenizer(modeltest.PrunedMoE()))
	r := mustVerify(t, dir, Options{Fast: true})
	if !r.OK() || !says(r.Checked, "tensors: 20 of 20 as pinned") || says(r.Checked, "byte of data") {
		t.Errorf("got %+v", r)
	}
	change(t, filepath.Join(dir, "r-00001-of-00003.gguf"), func(b []byte) []byte {
		return bytes.Replace(b, []byte("{{ x }}"), []byte("{{ y }}"), 1)
	})
	if r := mustVerify(t, dir, Options{Fast: true}); !has(r, KindMetadata, "", `key "tokenizer.chat_template" has another value`) {
		t.Errorf("got %+v", r)
	}
}

func TestVerifyReportsABrokenPin(t *testing.T) {
	dir := moeRelease(t, withTokenizer(modeltest.PrunedMoE()))
	change(t, filepath.Join(dir, manifest.PinName), func(b []byte) []byte { return b[:len(b)/2] })
	r := mustVerify(t, dir, Options{})
	if !has(r, KindList, manifest.PinName, "pin: ") || !has(r, KindDigest, manifest.PinName, "sha256 is") {
		t.Errorf("got %+v", r.Findings)
	}
}

// A model that lacks a tokenizer is as odd as any with a warning, no more: other commands
// take it, and so must verify.
func TestVerifyTokenizer(t *testing.T) {
	const model, tokens = "tokenizer.ggml.model", "tokenizer.ggml.tokens"
	for name, test := range map[string]struct {
		edit          func(md *gguf.Metadata)
		checked, note string
	}{
		"sound":         {func(*gguf.Metadata) {}, "tokenizer: gpt2, 2 tokens", ""},
		"none":          {func(md *gguf.Metadata) { md.Set(model, gguf.TextValue("")) }, "", `key "tokenizer.ggml.model": is missing, so no program can turn text into tokens`},
		"no list":       {func(md *gguf.Metadata) { md.Set(tokens, gguf.Uint32Value(1)) }, "", `key "tokenizer.ggml.tokens": is 1 (u32), want a list of texts`},
		"empty list":    {func(md *gguf.Metadata) { md.Set(tokens, gguf.TextsValue()) }, "", `key "tokenizer.ggml.tokens": is not a list of tokens`},
		"a token a row": {func(md *gguf.Metadata) { md.Set(tokens, gguf.TextsValue(make([]string, 7)...)) }, "tokenizer: gpt2, 7 tokens", ""},
		"too many": {func(md *gguf.Metadata) { md.Set(tokens, gguf.TextsValue(make([]string, 8)...)) }, "",
			`key "tokenizer.ggml.tokens": has 8 tokens, tensor "token_embd.weight" has rows for 7`},
		"stated":          {func(md *gguf.Metadata) { md.Set(model, gguf.TextValue("no_vocab")) }, `tokenizer: "no_vocab", so the model is stated to have no vocabulary`, ""},
		"none, in a word": {func(md *gguf.Metadata) { md.Set(model, gguf.TextValue("none")) }, `tokenizer: "none", so the model is stated to have no vocabulary`, ""},
		"a model by its type": {func(md *gguf.Metadata) {
			md.Set("general.type", gguf.TextValue("model"))
			md.Set(model, gguf.TextValue(""))
		}, "", `key "tokenizer.ggml.model": is missing, so no program can turn text into tokens`},
		"an adapter": {func(md *gguf.Metadata) {
			md.Set("general.type", gguf.TextValue("adapter"))
			md.Set(model, gguf.TextValue(""))
		}, "", ""},
	} {
		c := withTokenizer(modeltest.MoE())
		test.edit(c.Metadata)
		path := modeltest.Write(t, t.TempDir(), "m", c, gguf.Split{})[0]
		r := mustVerify(t, path, Options{})
		var notes []Note
		if test.note != "" {
			notes = []Note{{"m.gguf", test.note}}
		}
		if !r.OK() || !slices.Equal(r.Notes, notes) {
			t.Errorf("%s: findings %+v, notes %+v, want %+v", name, r.Findings, r.Notes, notes)
		}
		if says(r.Checked, "tokenizer:") != (test.checked != "") || !says(append(r.Checked, ""), test.checked) {
			t.Errorf("%s: checked %q, want %q", name, r.Checked, test.checked)
		}
		strict := mustVerify(t, path, Options{Strict: true})
		if strict.OK() != (test.note == "") || test.note != "" && !has(strict, KindNote, "m.gguf", test.note) || len(strict.Notes) > 0 {
			t.Errorf("%s: strict gives %+v, notes %+v", name, strict.Findings, strict.Notes)
		}
	}
}

// TestWarningsOfAFlatEmbedding wants an embedding of one dim taken for one row.
func TestWarningsOfAFlatEmbedding(t *testing.T) {
	c := withTokenizer(modeltest.MoE())
	embedding := modeltest.View(c, "token_embd.weight")
	elements := uint64(1)
	for _, n := range embedding.Shape {
		elements *= n
	}
	embedding.Shape = []uint64{elements}
	list := Warnings(modeltest.New(t, c, gguf.Split{}))
	if !slices.ContainsFunc(list, func(p gguf.Problem) bool {
		return p.What == `has 2 tokens, tensor "token_embd.weight" has rows for 1`
	}) {
		t.Errorf("got %+v", list)
	}
}

func TestVerifyOfAnUnfinishedRelease(t *testing.T) {
	dir := moeRelease(t, withTokenizer(modeltest.PrunedMoE()))
	touch(filepath.Join(dir, manifest.JournalName))
	if r := mustVerify(t, dir, Options{}); !has(r, KindList, manifest.JournalName, "unfinished") {
		t.Errorf("got %+v", r.Findings)
	}
}
