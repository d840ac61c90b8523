package proof

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

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
	{name: "a pickle that calls a program", files: putFile("x.bin", "csubprocess\ncheck_output\n(S'id'\ntR."), want: "x.bin: is a Python pickle"},
	{name: "a pickle of protocol 0 that makes an object", files: putFile("x.bin", "(ibuiltins\neval\n(S'1'\no."), want: "x.bin: is a Python pickle"},
	{name: "a pickle that begins with nothing", files: putFile("x.bin", "\x80\x02N0cos\nsystem\n(S'id'\ntR."), want: "x.bin: is a Python pickle"},
	{name: "a pickle of an older protocol", files: putFile("x", "\x80\x00cos\nsystem\n."), want: "x: is a Python pickle"},
	{name: "a list in a pickle", files: putFile("x", "]q\x00cos\nsystem\n."), want: "x: is a Python pickle"},
	{name: "a model of Paddle", files: putFile("x.pdparams", "anything"), want: "x.pdparams: is a Python pickle"},
	{name: "a model of Flax", files: putFile("flax_model.msgpack", "\x81\xa1a\x01"), want: "flax_model.msgpack: is a model of Flax"},
	{name: "a model of TensorFlow", files: putFile("saved_model.pb", "\x08\x01"), want: "saved_model.pb: is a model of TensorFlow"},
	{name: "a zip archive", files: putFile("x.txt", "PK\x03\x04\x14\x00\x00\x00\x00\x00"), args: []string{"--strict"}, want: "x.txt: is a zip archive, and what is in it was not looked at"},
	{name: "a compressed model", files: putFile("model.gguf.zst", "\x28\xb5\x2f\xfd\x04\x00"), args: []string{"--strict"}, want: "model.gguf.zst: is compressed (zstd), and what is in it was not looked at"},
	{name: "a compressed model under another name", files: putFile("notes", "\x1f\x8b\x08\x00"), args: []string{"--strict"}, want: "notes: is compressed (gzip)"},
	{name: "a tar archive", files: putFile("more", strings.Repeat("x", 257)+"ustar\x0000"+strings.Repeat("x", 500)), args: []string{"--strict"}, want: "more: is a tar archive"},
	{name: "a model of an older format", files: putFile("old.bin", "tjgg\x03\x00\x00\x00"), want: "old.bin: is a model in a format older than GGUF"},
	{name: "arrays", files: putFile("w.npy", "\x93NUMPY\x01\x00"), want: "w.npy: is a NumPy array"},
	{name: "Python code", files: putFile("modeling_k3.py", "import os\n"), args: []string{"--strict"}, want: "modeling_k3.py: can run code when it is loaded or opened: Python code"},
	{name: "a library", files: putFile("plugin.so", "\x7fELF\x02\x01\x01"), args: []string{"--strict"}, want: "plugin.so: can run code when it is loaded or opened: a program or library (ELF)"},
	{name: "a program without a suffix", files: putFile("run", "\x7fELF\x02\x01\x01"), args: []string{"--strict"}, want: "run: can run code when it is loaded or opened"},
	{name: "a program for Windows", files: putFile("setup", "MZ\x90\x00"), args: []string{"--strict"}, want: "setup: can run code when it is loaded or opened"},
	{name: "a script", files: putFile("install", "#!/bin/sh\nid\n"), args: []string{"--strict"}, want: "install: can run code when it is loaded or opened: a script"},
	{name: "a file that only the list vouches for", files: putFile("README.md", "trust me\n"), args: []string{"--complete"}, want: `1 file is checked against an unsigned list alone: "README.md"`},
	{name: "a page with scripts", files: putFile("README.html", "<script>"), args: []string{"--strict"}, want: "README.html: can run code when it is loaded or opened: a page with scripts"},
	{name: "a shortcut", files: putFile("README.lnk", "L"), args: []string{"--strict"}, want: "README.lnk: can run code when it is loaded or opened: a shortcut"},
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
