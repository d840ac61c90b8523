package proof

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// A forgery is a release that somebody changed, and gave a fresh pin and list of sums.
type forgery struct {
	*testing.T
	dir    string
	source *gguf.Model
}

// A forgeryKind is one way to change a release. Contents are changed before its files are
// written, files and documents behind that, before pin and list are made.
type forgeryKind struct {
	name     string
	contents func(f *forgery, c *gguf.Contents)
	files    func(f *forgery)
	unlisted func(f *forgery)                        // behind that
	pin      func(f *forgery, genuine string) string // makes another pin of the source, which is refused
	args     []string                                // of verify beside the source's pin and its digest
	want     string                                  // of what is found
}

// TestForgeries makes a release of every kind of forgery that is known, and proves that
// verify finds each of them. Run with -v it prints how many.
func TestForgeries(t *testing.T) {
	t.Chdir(t.TempDir())
	k3 := newForgeries(t, programtest.SmallK3(), "--keep", "16", "--criterion", "seeded-random")
	ids, err := gguftest.Architecture("deepseek4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	tables := newForgeries(t, ids, "--keep", "8", "--criterion", "seeded-random", "--remap-dropped", "nearest-kept")
	found, all := 0, 0
	for _, suite := range []struct {
		forgeries
		kinds []forgeryKind
	}{
		{k3, slices.Concat(expertForgeries, tensorForgeries, keyForgeries, fileForgeries, byteForgeries, documentForgeries, pinForgeries)},
		{tables, tableForgeries},
	} {
		suite.expectNothing(t)
		for _, kind := range suite.kinds {
			all++
			t.Run(kind.name, func(t *testing.T) {
				if suite.finds(t, kind) {
					found++
				}
			})
		}
	}
	t.Logf("forgeries: found %d of %d", found, all)
}

// forgeries are made of one source and one release of it.
type forgeries struct {
	home, digest string
}

// newForgeries makes a source, its pin, and a release.
func newForgeries(t *testing.T, spec gguftest.Spec, choice ...string) forgeries {
	t.Helper()
	home := t.TempDir()
	if _, err := spec.Write(filepath.Join(home, "source"), gguf.Split{Shards: 9}); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(home, name) }
	programtest.Succeed(t, "pin", "-o", path("source.pin.json"), path("source"))
	programtest.Succeed(t, slices.Concat([]string{"prune"}, choice, []string{"--source-pin", path("source.pin.json"), "--shards", "9", "-o", path("release"), path("source")})...)
	pin, err := manifest.ReadPin(path("source.pin.json"))
	if err != nil {
		t.Fatal(err)
	}
	return forgeries{home, pin.PinDigest.String()}
}

func (s forgeries) verify(t *testing.T, dir string, args ...string) programtest.Result {
	return programtest.Run(t, slices.Concat([]string{"verify", "--source-pin", filepath.Join(s.home, "source.pin.json"), "--source-digest", s.digest}, args, []string{dir})...)
}

// expectNothing makes the release anew without a change.
func (s forgeries) expectNothing(t *testing.T) {
	t.Helper()
	dir := s.make(t, forgeryKind{contents: func(*forgery, *gguf.Contents) {}})
	if r := s.verify(t, dir, "--strict"); r.Code != programtest.OK {
		t.Fatalf("the release itself: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// finds makes a forgery and reports whether verify finds it and says what it is.
func (s forgeries) finds(t *testing.T, kind forgeryKind) bool {
	if kind.pin != nil {
		return s.refuses(t, kind)
	}
	r := s.verify(t, s.make(t, kind), kind.args...)
	if r.Code != programtest.Differs || !strings.Contains(r.Stdout, kind.want) {
		t.Errorf("exit %d, want %q in\n%s%s", r.Code, kind.want, r.Stdout, r.Stderr)
		return false
	}
	return true
}

// refuses gives verify a forged pin of the source.
func (s forgeries) refuses(t *testing.T, kind forgeryKind) bool {
	f := &forgery{T: t, dir: t.TempDir(), source: programtest.OpenModel(t, filepath.Join(s.home, "source"))}
	genuine, err := os.ReadFile(filepath.Join(s.home, "source.pin.json"))
	if err != nil {
		t.Fatal(err)
	}
	programtest.WriteText(t, f.path("forged.json"), kind.pin(f, string(genuine)))
	r := programtest.Run(t, "verify", "--source-pin", f.path("forged.json"), "--source-digest", s.digest, filepath.Join(s.home, "release"))
	if r.Code != programtest.Failed || !strings.Contains(r.Stderr, kind.want) {
		t.Errorf("exit %d, want %q in\n%s%s", r.Code, kind.want, r.Stdout, r.Stderr)
		return false
	}
	return true
}

func (s forgeries) make(t *testing.T, kind forgeryKind) string {
	t.Helper()
	f := &forgery{T: t, dir: t.TempDir(), source: programtest.OpenModel(t, filepath.Join(s.home, "source"))}
	if err := os.CopyFS(f.dir, os.DirFS(filepath.Join(s.home, "release"))); err != nil {
		t.Fatal(err)
	}
	if kind.contents != nil {
		f.rewrite(filepath.Join(s.home, "release"), kind.contents)
	}
	if kind.files != nil {
		kind.files(f)
	}
	// A folder with a list is a release, which keeps its pin; without one it may hold one artifact
	// only, so that the pin is made of a shard.
	for _, name := range []string{manifest.PinName, manifest.SumsName} {
		os.Remove(f.path(name))
	}
	if first := f.shards(); len(first) > 0 {
		programtest.Run(t, "pin", "-o", f.path(manifest.PinName), first[0])
	}
	f.list()
	if kind.unlisted != nil {
		kind.unlisted(f)
	}
	return f.dir
}

func (f *forgery) path(name string) string { return filepath.Join(f.dir, name) }

func (f *forgery) shards() []string {
	paths, err := filepath.Glob(f.path("*-of-*.gguf"))
	if err != nil {
		f.Fatal(err)
	}
	return paths
}

func (f *forgery) list() {
	programtest.WriteText(f.T, f.path(manifest.SumsName), programtest.ListFolder(f.T, f.dir))
}

// rewrite writes the model of the release anew, edited, in as many shards.
func (f *forgery) rewrite(release string, edit func(f *forgery, c *gguf.Contents)) {
	f.Helper()
	old := f.shards()
	c := programtest.OpenModel(f.T, release).Contents()
	c.Metadata = c.Metadata.Clone()
	c.Views = slices.Clone(c.Views)
	edit(f, &c)
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: len(old)})
	if err != nil {
		f.Fatal(err)
	}
	for i, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(f.Context(), &b, make([]byte, 1<<16), nil); err != nil {
			f.Fatal(err)
		}
		programtest.WriteText(f.T, old[i], b.String())
	}
}

// data returns and set replaces what a tensor holds.
func (f *forgery) data(c *gguf.Contents, tensor string) []byte {
	return viewBytes(f.T, *viewOf(f.T, c, tensor))
}

func (f *forgery) set(c *gguf.Contents, tensor string, data []byte) {
	v := viewOf(f.T, c, tensor)
	v.Extents = nil
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
}

// slab returns expert i of n.
func slab(data []byte, n, i int) []byte { return data[i*len(data)/n : (i+1)*len(data)/n] }

// swapped exchanges two kept experts in tensors.
func swapped(i, j int, tensors ...string) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		for _, tensor := range tensors {
			data := f.data(c, tensor)
			a := bytes.Clone(slab(data, 16, i))
			copy(slab(data, 16, i), slab(data, 16, j))
			copy(slab(data, 16, j), a)
			f.set(c, tensor, data)
		}
	}
}

// edited changes the data of a tensor.
func edited(tensor string, edit func(data []byte)) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		data := f.data(c, tensor)
		edit(data)
		f.set(c, tensor, data)
	}
}

// fromSource puts an expert of the source into place i of a tensor.
func fromSource(tensor string, i int, from string, expert int) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		data := f.data(c, tensor)
		copy(slab(data, 16, i), slab(programtest.TensorData(f.T, f.source, from), 32, expert))
		f.set(c, tensor, data)
	}
}

func flipBit(at int) func(data []byte) { return func(data []byte) { data[at] ^= 1 } }

// routed are the tensors of layer 1 of which each expert has a part.
var routed = []string{"blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias", "blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"}

var expertForgeries = []forgeryKind{
	{name: "up experts swapped", contents: swapped(0, 5, "blk.1.ffn_up_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "gate experts swapped", contents: swapped(0, 5, "blk.1.ffn_gate_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "down experts swapped", contents: swapped(2, 15, "blk.2.ffn_down_exps.weight"), want: "other tensors of the layer have expert"},
	{name: "router rows swapped", contents: swapped(1, 3, "blk.1.ffn_gate_inp.weight"), want: "other tensors of the layer have expert"},
	{name: "biases swapped", contents: swapped(0, 1, "blk.2.exp_probs_b.bias"), want: "other tensors of the layer have expert"},
	{name: "router and bias swapped together", contents: swapped(4, 9, "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias"), want: "other tensors of the layer have expert"},
	{name: "two experts swapped whole", contents: swapped(0, 5, routed...), want: "layer 1: the plan's experts in another order"},
	{name: "a dropped expert's part", contents: func(f *forgery, c *gguf.Contents) {
		own := f.data(c, "blk.1.ffn_up_exps.weight")
		source := programtest.TensorData(f.T, f.source, "blk.1.ffn_up_exps.weight")
		for i := range 32 {
			if !bytes.Contains(own, slab(source, 32, i)) {
				copy(slab(own, 16, 3), slab(source, 32, i))
				break
			}
		}
		f.set(c, "blk.1.ffn_up_exps.weight", own)
	}, want: "other tensors of the layer have expert"},
	{name: "a part of another layer", contents: fromSource("blk.1.ffn_up_exps.weight", 4, "blk.2.ffn_up_exps.weight", 7), want: `is expert 7 of the source's tensor "blk.2.ffn_up_exps.weight"`},
	{name: "a part of another projection", contents: fromSource("blk.1.ffn_up_exps.weight", 4, "blk.1.ffn_gate_exps.weight", 7), want: `is expert 7 of the source's tensor "blk.1.ffn_gate_exps.weight"`},
	{name: "a bit of an expert", contents: edited("blk.1.ffn_up_exps.weight", flipBit(100)), want: "is not among the source's"},
	{name: "the signs of an expert", contents: edited("blk.2.ffn_down_exps.weight", func(data []byte) {
		for i := range slab(data, 16, 3) {
			slab(data, 16, 3)[i] ^= 0x80
		}
	}), want: "is not among the source's"},
	{name: "a bit of a router", contents: edited("blk.2.ffn_gate_inp.weight", flipBit(3)), want: "is not among the source's"},
	{name: "a bit of a bias", contents: edited("blk.2.exp_probs_b.bias", flipBit(3)), want: "is not among the source's"},
	{name: "a hole of zeros", contents: edited("blk.1.ffn_down_exps.weight", func(data []byte) { clear(data[:len(data)/2]) }), want: "experts 0 to 7 are not among the source's"},
	{name: "up experts of all layers moved by one", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range []string{"blk.1.ffn_up_exps.weight", "blk.2.ffn_up_exps.weight"} {
			data := f.data(c, tensor)
			size := len(data) / 16
			f.set(c, tensor, slices.Concat(data[size:], data[:size]))
		}
	}, want: `layers 1 and 2, tensor "ffn_up_exps.weight" of each: experts 0 to 15 do not fit the other tensors of the layer`},
	{name: "an expert twice", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			edited(tensor, func(data []byte) { copy(slab(data, 16, 3), slab(data, 16, 0)) })(f, c)
		}
	}, want: "which is there already"},
	{name: "experts that another plan keeps", contents: func(f *forgery, c *gguf.Contents) {
		own := f.data(c, routed[0])
		for i := range 32 {
			if !bytes.Contains(own, slab(programtest.TensorData(f.T, f.source, routed[0]), 32, i)) {
				for _, tensor := range routed {
					fromSource(tensor, 3, tensor, i)(f, c)
				}
				return
			}
		}
	}, want: "not kept, which the plan keeps"},
	{name: "two layers swapped", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			a, b := viewOf(f.T, c, tensor), viewOf(f.T, c, strings.Replace(tensor, "blk.1", "blk.2", 1))
			a.Extents, b.Extents = b.Extents, a.Extents
		}
	}, want: "of the source's tensor"},
	{name: "an expert less in one tensor", contents: func(f *forgery, c *gguf.Contents) { f.shorten(c, "blk.1.ffn_up_exps.weight") }, want: "15"},
	{name: "an expert less in one layer", contents: func(f *forgery, c *gguf.Contents) {
		for _, tensor := range routed {
			f.shorten(c, tensor)
		}
	}, want: "15"},
}

// shorten drops the last of 16 experts of a tensor.
func (f *forgery) shorten(c *gguf.Contents, tensor string) {
	v := viewOf(f.T, c, tensor)
	data := f.data(c, tensor)
	v.Shape = slices.Clone(v.Shape)
	v.Shape[len(v.Shape)-1] = 15
	f.set(c, tensor, data[:len(data)/16*15])
}

const attention = "blk.1.attn_norm.weight"

var tensorForgeries = []forgeryKind{
	{name: "a tensor dropped", contents: func(f *forgery, c *gguf.Contents) {
		c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == "blk.1.ffn_routed_norm.weight" })
	}, want: "is a tensor of the source, and not there"},
	{name: "a tensor added", contents: func(f *forgery, c *gguf.Contents) {
		v := gguf.View{Name: "blk.1.attn_extra.weight", Type: gguf.I8, Shape: []uint64{3}}
		v.Append(gguf.Extent{Source: strings.NewReader("abc"), Length: 3})
		c.Views = append(c.Views, v)
	}, want: "is no tensor of the source"},
	{name: "an empty tensor added", contents: func(f *forgery, c *gguf.Contents) {
		c.Views = append(c.Views, gguf.View{Name: "blk.1.attn_extra.weight", Type: gguf.F32, Shape: []uint64{0}})
	}, want: "is no tensor of the source"},
	{name: "a tensor renamed", contents: func(f *forgery, c *gguf.Contents) { viewOf(f.T, c, attention).Name = "blk.1.attn_normal.weight" }, want: "is no tensor of the source"},
	{name: "a bit of a tensor", contents: edited(attention, flipBit(2)), want: "the source has"},
	{name: "a bit of the embedding", contents: edited("token_embd.weight", flipBit(2)), want: "the source has"},
	{name: "a bit of the output", contents: edited("output.weight", flipBit(2)), want: "the source has"},
	{name: "a bit of a shared expert", contents: edited("blk.1.ffn_up_shexp.weight", flipBit(2)), want: "the source has"},
	{name: "a tensor of another layer", contents: func(f *forgery, c *gguf.Contents) {
		f.set(c, attention, f.data(c, "blk.2.attn_norm.weight"))
	}, want: "the source has"},
	{name: "a tensor retyped", contents: func(f *forgery, c *gguf.Contents) { viewOf(f.T, c, attention).Type = gguf.I32 }, want: "type is I32, the source has F32"},
	{name: "a tensor reshaped", contents: func(f *forgery, c *gguf.Contents) {
		v := viewOf(f.T, c, "blk.1.ffn_up_shexp.weight")
		v.Shape = []uint64{v.Shape[0], v.Shape[1] / 2, 2}
	}, want: "shape is"},
	{name: "a dim of 1 inside", contents: func(f *forgery, c *gguf.Contents) {
		v := viewOf(f.T, c, "blk.1.ffn_up_shexp.weight")
		v.Shape = []uint64{v.Shape[0], 1, v.Shape[1]}
	}, want: "shape is"},
}

// said sets a key of the release.
func said(key string, value gguf.Value) func(f *forgery, c *gguf.Contents) {
	return func(_ *forgery, c *gguf.Contents) { c.Metadata.Set(key, value) }
}

var noDigest = gguf.TextValue("blake3:" + strings.Repeat("0", 64))

var keyForgeries = []forgeryKind{
	{name: "a template", contents: said("tokenizer.chat_template", gguf.TextValue("evil")), want: `key "tokenizer.chat_template"`},
	{name: "a key added", contents: said("x.y", gguf.Uint8Value(1)), want: `key "x.y" (u8) was added`},
	{name: "a key removed", contents: func(f *forgery, c *gguf.Contents) {
		c.Metadata = c.Metadata.Without(func(key string) bool { return key == "kimi-k3.expert_weights_scale" })
	}, want: `key "kimi-k3.expert_weights_scale" (f32) is missing`},
	{name: "a key retyped", contents: said("kimi-k3.expert_used_count", gguf.Uint64Value(4)), want: "has type u64, was u32"},
	{name: "fewer experts used", contents: said("kimi-k3.expert_used_count", gguf.Uint32Value(3)), want: `key "kimi-k3.expert_used_count" has another value`},
	{name: "another frequency", contents: said("kimi-k3.rope.freq_base", gguf.Float32Value(12345)), want: `key "kimi-k3.rope.freq_base"`},
	{name: "another architecture", contents: said("general.architecture", gguf.TextValue("kimi-linear")), want: `key "general.architecture" has another value`},
	{name: "another name", contents: said("general.name", gguf.TextValue("forged")), want: `key "general.name"`},
	{name: "the source's expert count", contents: said("kimi-k3.expert_count", gguf.Uint32Value(32)), want: "32"},
	{name: "another expert count", contents: said("kimi-k3.expert_count", gguf.Uint32Value(17)), want: "17"},
	{name: "the expert count retyped", contents: said("kimi-k3.expert_count", gguf.Uint64Value(16)), want: "has type u64, was u32"},
	{name: "weights digest claimed", contents: said("reap.source_weights_digest", noDigest), want: "does not fit the source's pin"},
	{name: "pin digest claimed", contents: said("reap.source_pin_digest", noDigest), want: "does not fit the source's pin"},
	{name: "structure digest claimed", contents: said("reap.source_structure_digest", noDigest), want: "does not fit the source's pin"},
	{name: "another count of the source claimed", contents: said("reap.source_expert_count", gguf.Uint32Value(64)), want: "does not fit the source's pin"},
	{name: "the source's count as text", contents: said("reap.source_expert_count", gguf.TextValue("32")), want: "does not fit the source's pin"},
	{name: "evidence claimed", contents: said("reap.criterion_evidence", gguf.TextValue("measured")), want: `key "reap.criterion_evidence" is measured, the plan says baseline`},
	{name: "a criterion claimed", contents: said("reap.criterion", gguf.TextValue("reap-mean")), want: `key "reap.criterion" is reap-mean, the plan says seeded-random`},
	{name: "another plan claimed", contents: said("reap.plan_digest", noDigest), want: `key "reap.plan_digest" is blake3:0000`},
	{name: "a key of our name space", contents: said("reap.certified", gguf.BoolValue(true)), want: `key "reap.certified"`},
	{name: "a key of the split", contents: said("split.payload", gguf.TextValue(strings.Repeat("x", 1<<20))), args: []string{"--strict"}, want: `"split.payload", 1,048,584 bytes of values`},
}

// putFile adds a listed file.
func putFile(name, data string) func(f *forgery) {
	return func(f *forgery) { programtest.WriteText(f.T, f.path(name), data) }
}

// secondModel puts another model beside the release.
func secondModel(name string) func(f *forgery) {
	return func(f *forgery) {
		spec := gguftest.Mixed(7)
		file, err := spec.File()
		if err != nil {
			f.Fatal(err)
		}
		programtest.WriteText(f.T, f.path(name), string(file))
	}
}

var fileForgeries = []forgeryKind{
	{name: "a second model", files: secondModel("other.gguf"), want: `other.gguf: belongs to another model, "other", which is not proven`},
	{name: "a second model under another name", files: secondModel("ggml-model.bin"), want: "ggml-model.bin: belongs to another model"},
	{name: "a second model without a suffix", files: secondModel("weights"), want: "weights: belongs to another model"},
	{name: "a tampered copy of a shard", files: func(f *forgery) {
		data, err := os.ReadFile(f.shards()[2])
		if err != nil {
			f.Fatal(err)
		}
		data[len(data)-100] ^= 1
		programtest.WriteText(f.T, f.path("small-REAP16.gguf"), string(data))
	}, want: "small-REAP16.gguf: belongs to another model"},
	{name: "a second model that is not listed", unlisted: secondModel("other.gguf"), want: "other.gguf: is a model file that MANIFEST.sha256 does not list"},
	{name: "a second model of another name, not listed", unlisted: secondModel("README.md.bin"), want: "README.md.bin: is a model file that MANIFEST.sha256 does not list"},
	{name: "a pickle", files: putFile("pytorch_model.bin", "\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s."), want: "pytorch_model.bin: is a Python pickle, which may hold a model"},
	{name: "a checkpoint", files: putFile("x.bin", "PK\x03\x04\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00archive/data.pkl"), want: "x.bin: is a Python pickle"},
	{name: "safetensors", files: putFile("model.safetensors", "\x10\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}        "), want: "model.safetensors: is a safetensors file"},
	{name: "a model of an older format", files: putFile("old.bin", "tjgg\x03\x00\x00\x00"), want: "old.bin: is a model in a format older than GGUF"},
	{name: "arrays", files: putFile("w.npy", "\x93NUMPY\x01\x00"), want: "w.npy: is a NumPy array"},
	{name: "Python code", files: putFile("modeling_k3.py", "import os\n"), args: []string{"--strict"}, want: "modeling_k3.py: can run code when it is loaded or opened: Python code"},
	{name: "a library", files: putFile("plugin.so", "\x7fELF\x02\x01\x01"), args: []string{"--strict"}, want: "plugin.so: can run code when it is loaded or opened: a program or library (ELF)"},
	{name: "a program without a suffix", files: putFile("run", "\x7fELF\x02\x01\x01"), args: []string{"--strict"}, want: "run: can run code when it is loaded or opened"},
	{name: "a program for Windows", files: putFile("setup", "MZ\x90\x00"), args: []string{"--strict"}, want: "setup: can run code when it is loaded or opened"},
	{name: "a script", files: putFile("install", "#!/bin/sh\nid\n"), args: []string{"--strict"}, want: "install: can run code when it is loaded or opened: a script"},
	{name: "a file that only the list vouches for", files: putFile("README.md", "trust me\n"), args: []string{"--complete"}, want: `1 file is checked against MANIFEST.sha256 alone: "README.md"`},
	{name: "a link that leads out", files: func(f *forgery) {
		elsewhere := filepath.Join(f.TempDir(), "elsewhere.txt")
		programtest.WriteText(f.T, elsewhere, "x")
		if err := os.Symlink(elsewhere, f.path("notes.txt")); err != nil {
			f.Fatal(err)
		}
	}, args: []string{"--strict"}, want: "notes.txt: is a link that leads out of the folder"},
	{name: "a download that goes on", unlisted: func(f *forgery) { programtest.WriteText(f.T, f.shards()[1]+".aria2", "x") }, args: []string{"--strict"}, want: ".aria2"},
}

// inFile changes the bytes of a shard.
func inFile(shard int, edit func(f *forgery, file *gguf.File, data []byte) []byte) func(f *forgery) {
	return func(f *forgery) {
		path := f.shards()[shard]
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		file, err := gguf.NewFile(path, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			f.Fatal(err)
		}
		programtest.WriteText(f.T, path, string(edit(f, file, data)))
	}
}

// withPair puts a pair before all others, and fills the padding that comes behind the table.
func withPair(key string, v gguf.Value, alignment int64, filler byte) func(f *forgery, file *gguf.File, data []byte) []byte {
	return func(f *forgery, file *gguf.File, data []byte) []byte {
		raw, err := v.Raw()
		if err != nil {
			f.Fatal(err)
		}
		pair := binary.LittleEndian.AppendUint64(nil, uint64(len(key)))
		pair = binary.LittleEndian.AppendUint32(append(pair, key...), uint32(v.Type()))
		head := slices.Concat(data[:16], binary.LittleEndian.AppendUint64(nil, uint64(file.Metadata.Len())+1), pair, raw, data[24:file.HeaderSize])
		if alignment == 0 {
			alignment = file.Alignment
		}
		for int64(len(head))%alignment != 0 {
			head = append(head, filler)
		}
		return append(head, data[file.DataOffset:]...)
	}
}

// lonely returns the index of a later shard with one tensor, whose alignment can be any.
func lonely(f *forgery) int {
	for i, path := range f.shards() {
		if m := programtest.OpenModel(f.T, path); i > 0 && len(m.Files[i].Tensors) == 1 {
			return i
		}
	}
	f.Fatal("no later shard has one tensor")
	return 0
}

var byteForgeries = []forgeryKind{
	{name: "padding behind the table", files: inFile(0, func(f *forgery, file *gguf.File, data []byte) []byte {
		if file.HeaderSize == file.DataOffset {
			f.Fatal("no padding there")
		}
		data[file.DataOffset-1] = 'x'
		return data
	}), want: "in no key and no tensor, and not zero"},
	{name: "padding between tensors", files: func(f *forgery) {
		for i := range f.shards() {
			done := false
			inFile(i, func(f *forgery, file *gguf.File, data []byte) []byte {
				for _, t := range file.Tensors {
					if t.Span > t.Size && !done {
						data[t.DataOffset()+t.Size] = 'x'
						done = true
					}
				}
				return data
			})(f)
			if done {
				return
			}
		}
		f.Fatal("no padding")
	}, want: "in no key and no tensor, and not zero"},
	{name: "bytes behind the last tensor", files: inFile(3, func(_ *forgery, _ *gguf.File, data []byte) []byte {
		return append(data, strings.Repeat("payload ", 1000)...)
	}), want: "in no key and no tensor, and not zero"},
	{name: "a wide alignment that hides bytes", files: func(f *forgery) {
		inFile(lonely(f), withPair("general.alignment", gguf.Uint32Value(1<<20), 1<<20, 'x'))(f)
	}, want: "in no key and no tensor, and not zero"},
	{name: "a wide alignment", files: func(f *forgery) {
		inFile(lonely(f), withPair("general.alignment", gguf.Uint32Value(1<<20), 1<<20, 0))(f)
	}, args: []string{"--strict"}, want: `of a later shard, in no digest: "general.alignment"`},
	{name: "a key of a later shard", files: inFile(2, withPair("tokenizer.chat_template", gguf.TextValue("evil"), 0, 0)), args: []string{"--strict"}, want: `of a later shard, in no digest: "tokenizer.chat_template"`},
	{name: "a split key of a later shard", files: inFile(2, withPair("split.payload", gguf.TextValue("evil"), 0, 0)), args: []string{"--strict"}, want: `of a later shard, in no digest: "split.payload"`},
	{name: "another version", files: func(f *forgery) {
		for i := range f.shards() {
			inFile(i, func(_ *forgery, _ *gguf.File, data []byte) []byte { data[4] = 2; return data })(f)
		}
	}, args: []string{"--strict"}, want: "are of GGUF version 2"},
	{name: "another version of one shard", files: inFile(4, func(_ *forgery, _ *gguf.File, data []byte) []byte { data[4] = 2; return data }), args: []string{"--strict"}, want: "is of GGUF version 2, the first shard of 3"},
	{name: "a shard cut short", files: inFile(5, func(_ *forgery, _ *gguf.File, data []byte) []byte { return data[:len(data)-200] }), want: "truncated"},
	{name: "a shard of another model", files: func(f *forgery) {
		spec := gguftest.K3(gguftest.K3Options{Name: "small", Experts: 16, Used: 4, Layers: 3, Seed: 9})
		paths, err := spec.Write(f.TempDir(), gguf.Split{Shards: 9})
		if err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(paths[4])
		if err != nil {
			f.Fatal(err)
		}
		programtest.WriteText(f.T, f.shards()[4], string(data))
	}, want: "source"},
}

var documentForgeries = []forgeryKind{
	{name: "a plan that keeps others", files: func(f *forgery) {
		text, err := os.ReadFile(f.path("plan.json"))
		if err != nil {
			f.Fatal(err)
		}
		at := bytes.Index(text, []byte(`"keep"`))
		list := text[at:][:bytes.IndexByte(text[at:], ']')]
		last := list[bytes.LastIndexByte(list, ',')+1:]
		for i := 31; i >= 0; i-- {
			if !bytes.Contains(list, fmt.Appendf(nil, " %d,", i)) && !bytes.Contains(list, fmt.Appendf(nil, "\n        %d,", i)) && strings.TrimSpace(string(last)) != fmt.Sprint(i) {
				edited := bytes.Replace(list, last, bytes.Replace(last, bytes.TrimSpace(last), fmt.Append(nil, i), 1), 1)
				programtest.WriteText(f.T, f.path("plan.json"), strings.Replace(string(text), string(list), string(edited), 1))
				return
			}
		}
	}, want: "plan"},
	{name: "a plan of another criterion", files: func(f *forgery) { f.replace("plan.json", "seeded-random", "router-mass") }, want: "plan"},
	{name: "no plan", files: func(f *forgery) { os.Remove(f.path("plan.json")) }, args: []string{"--strict"}, want: "is not there; key"},
	{name: "the pin of another model", unlisted: func(f *forgery) {
		os.Remove(f.path(manifest.PinName))
		os.Remove(f.path(manifest.SumsName))
		programtest.Succeed(f.T, "pin", "-o", f.path(manifest.PinName), filepath.Dir(f.source.Paths()[0]))
		f.list()
	}, want: "the pin says"},
	{name: "no list", unlisted: func(f *forgery) { os.Remove(f.path(manifest.SumsName)) }, args: []string{"--complete"}, want: "there is no MANIFEST.sha256"},
	{name: "a list without a shard", unlisted: func(f *forgery) {
		text, err := os.ReadFile(f.path(manifest.SumsName))
		if err != nil {
			f.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "-00004-of-") {
				lines = append(lines, line)
			}
		}
		programtest.WriteText(f.T, f.path(manifest.SumsName), strings.Join(lines, ""))
	}, want: "is a model file that MANIFEST.sha256 does not list"},
	{name: "another list that disagrees", unlisted: func(f *forgery) {
		programtest.WriteText(f.T, f.path("SHA256SUMS"), strings.Repeat("0", 64)+"  "+filepath.Base(f.shards()[0])+"\n")
	}, want: "SHA256SUMS says 0000"},
	{name: "a sum beside a shard that disagrees", unlisted: func(f *forgery) {
		programtest.WriteText(f.T, f.shards()[0]+".sha256", strings.Repeat("0", 64)+"\n")
	}, want: ".sha256 says 0000"},
}

func (f *forgery) replace(name, old, new string) {
	text, err := os.ReadFile(f.path(name))
	if err != nil || !bytes.Contains(text, []byte(old)) {
		f.Fatalf("%s: no %q (%v)", name, old, err)
	}
	programtest.WriteText(f.T, f.path(name), strings.Replace(string(text), old, new, 1))
}

const idTable = "blk.1.ffn_gate_tid2eid.weight"

var tableForgeries = []forgeryKind{
	{name: "a table of ids replaced", contents: edited(idTable, func(ids []byte) {
		for i := 0; i < len(ids); i += 4 {
			ids[i] = 7 - ids[i]
		}
	}), want: "are not what pruning makes of the source's table"},
	{name: "an id replaced", contents: edited(idTable, func(ids []byte) { ids[0], ids[4] = ids[4], ids[0] }), want: "are not what pruning makes of the source's table"},
	{name: "ids of another token", contents: edited(idTable, func(ids []byte) { copy(ids[len(ids)-16:], ids[:16]) }), want: "are not what pruning makes of the source's table"},
	{name: "the source's table", contents: func(f *forgery, c *gguf.Contents) { f.set(c, idTable, programtest.TensorData(f.T, f.source, idTable)) }, want: idTable},
}

// other returns the text of the pin of a model like the source with other experts.
func (f *forgery) other() string {
	spec := programtest.SmallK3()
	programtest.ChangeBytes(&spec, "blk.1.ffn_up_exps.weight", 0)
	if _, err := spec.Write(f.path("other"), gguf.Split{Shards: 9}); err != nil {
		f.Fatal(err)
	}
	programtest.Succeed(f.T, "pin", "-o", f.path("other.json"), f.path("other"))
	text, err := os.ReadFile(f.path("other.json"))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// field returns the first text that follows a name behind a place in a document.
func field(text, place, name string) string {
	_, rest, _ := strings.Cut(text, place)
	_, rest, _ = strings.Cut(rest, `"`+name+`": "`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

const expertsPlace = `"blk.1.ffn_up_exps.weight"`

var pinForgeries = []forgeryKind{
	{name: "the pin of another source", pin: func(f *forgery, _ string) string { return f.other() }, want: "it is another pin"},
	{name: "a pin with other experts under the genuine digest", pin: func(f *forgery, genuine string) string {
		experts := func(text string) string {
			_, rest, _ := strings.Cut(text, expertsPlace)
			return field(rest, `"slabs"`, "blake3")
		}
		return strings.Replace(genuine, experts(genuine), experts(f.other()), 1)
	}, want: "weights, slabs and metadata give"},
	{name: "a pin with another tensor", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, field(genuine, expertsPlace, "blake3"), field(f.other(), expertsPlace, "blake3"), 1)
	}, want: "the tensors give"},
	{name: "a pin with another value", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, field(genuine, `"metadata": [`, "blake3"), strings.Repeat("0", 64), 1)
	}, want: "the keys give"},
	{name: "a pin of another architecture", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, `"architecture": "kimi-k3"`, `"architecture": "llama"`, 1)
	}, want: "has the digest of another"},
	{name: "a pin under the genuine digest, in capitals", pin: func(f *forgery, genuine string) string {
		digest := field(genuine, "{", "pin_digest")
		return strings.Replace(genuine, digest, "blake3:"+strings.ToUpper(strings.TrimPrefix(digest, "blake3:")), 1)
	}, want: "lower-case"},
}
