package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// scriptModels are the models of scripts.
var scriptModels = map[string]func() gguftest.Spec{
	"small":     smallMoE,
	"small32":   smallK3,
	"changed":   changedMoE,
	"differing": differingMoE,
	"edited":    editedMoE,
	"partial":   func() gguftest.Spec { return withName("partial", bare(vector("a", 8), vector("b", 8))) },
	"broken":    func() gguftest.Spec { return withName("broken", smallMoE()) },
	"other": func() gguftest.Spec {
		return gguftest.K3(gguftest.K3Options{Name: "other", Experts: 32, Used: 4, Layers: 4})
	},
	"k3":              func() gguftest.Spec { return gguftest.K3(gguftest.K3Options{}) },
	"dense":           func() gguftest.Spec { return bare(vector("a", 8)) },
	"no-tensors":      func() gguftest.Spec { return bare() },
	"endless":         func() gguftest.Spec { return bare(vectors("w%02d", 12)...) },
	"endless-experts": smallMoE,
	"repeated-key":    repeatedKey,
	"many-problems":   func() gguftest.Spec { return bare(vectors(strings.Repeat("n", 64)+"-%d", 30)...) },
	"hostile":         hostile,
	"unknown-type": func() gguftest.Spec {
		return bare(vector("a", 8), gguftest.Tensor{Name: "b", Type: 64, Shape: []uint64{256, 2}, Data: make([]byte, 92)}, vector("c", 3))
	},
	"reordered": func() gguftest.Spec {
		s := withName("reordered", smallMoE())
		s.Tensors[0], s.Tensors[1] = s.Tensors[1], s.Tensors[0]
		return s
	},
	"grouped": func() gguftest.Spec {
		s := smallMoE()
		s.Metadata.Set("kimi-k3.expert_group_count", gguf.Uint32Value(2))
		s.Metadata.Set("kimi-k3.expert_group_used_count", gguf.Uint32Value(1))
		return s
	},
	"not-prunable": func() gguftest.Spec {
		s := smallMoE()
		s.Tensors = slices.DeleteFunc(s.Tensors, func(x gguftest.Tensor) bool { return x.Name == "blk.1.exp_probs_b.bias" })
		return s
	},
}

// scriptChanges are what is changed in the files of some of them.
var scriptChanges = map[string]func(file []byte) []byte{
	"repeated-key":  func(file []byte) []byte { return bytes.Replace(file, []byte("x.other"), []byte("x.count"), 1) },
	"many-problems": func(file []byte) []byte { return append(file, make([]byte, 4096)...) },
	"endless": func(file []byte) []byte { // 2^60 elements of I8 in place of 8 of F32
		for _, x := range scriptModels["endless"]().Tensors {
			at := bytes.Index(file, []byte(x.Name)) + len(x.Name) + 4
			binary.LittleEndian.PutUint64(file[at:], 1<<60)
			binary.LittleEndian.PutUint32(file[at+8:], uint32(gguf.I8))
		}
		return file
	},
	"endless-experts": func(file []byte) []byte { // as many rows as make 2^59 elements
		for _, x := range smallMoE().Tensors {
			if x.Type == gguf.Q8_0 {
				at := bytes.Index(file, []byte(x.Name)) + len(x.Name) + 4
				binary.LittleEndian.PutUint64(file[at+8:], 1<<59/x.Shape[0]/append(x.Shape, 1)[2])
			}
		}
		return file
	},
}

// withName is a copy of a model with another name.
func withName(name string, s gguftest.Spec) gguftest.Spec {
	s = s.Clone()
	s.Name = name
	return s
}

// vectors are n tensors whose names have their numbers.
func vectors(format string, n int) []gguftest.Tensor {
	list := make([]gguftest.Tensor, n)
	for i := range list {
		list[i] = vector(fmt.Sprintf(format, i), 8)
	}
	return list
}

// editedMoE is smallMoE with keys that were changed, added, removed and given another type.
func editedMoE() gguftest.Spec {
	s := withName("edited", smallMoE())
	s.Metadata.Set("general.name", gguf.TextValue("another \x1b name"))
	s.Metadata.Set("kimi-k3.expert_used_count", gguf.Int32Value(2))
	s.Metadata.Set("general.license", gguf.TextValue("mit"))
	s.Metadata = s.Metadata.Without(func(key string) bool { return key == "general.type" })
	return s
}

// differingMoE is smallMoE with tensors that differ in their bytes, names, types and shapes.
func differingMoE() gguftest.Spec {
	s := withName("changed", smallMoE())
	changeBytes(&s, "blk.1.ffn_up_exps.weight", 5*32*34+7) // 32 rows of a block of 34 bytes
	changeBytes(&s, "output.weight", 0)
	s.Tensor("blk.0.attn_norm.weight").Name = "blk.0.renamed.weight"
	s.Tensor("blk.0.ffn_norm.weight").Type = gguf.F16
	s.Tensor("token_embd.weight").Shape = []uint64{384, 32}
	return s
}

// repeatedKey is a model in whose file a key stands twice.
func repeatedKey() gguftest.Spec {
	s := bare(vector("a", 8))
	s.Metadata.Set("x.count", gguf.Uint32Value(8))
	s.Metadata.Set("x.other", gguf.Uint32Value(4))
	return s
}

// hostile is a model whose names and values act on terminals and readers.
func hostile() gguftest.Spec {
	s := bare(vector("blk.0.\x1b]52;c;aGk=\x07attn_q.weight", 8), vector("a\nb\u202egnp.weight", 8), vector("\xff\xfe", 8))
	s.Name = "hostile"
	set := func(key, value string) { s.Metadata.Set(key, gguf.TextValue(value)) }
	set("general.name", "name \x1b[2J\r\n\x00 end")
	set("general.license", "\u202emit\u200b")
	set("general.author", "\x80\xff")
	set("tokenizer.ggml.model", "\x1b[31m")
	set("general.source.\x1b[2J", "x\ty")
	set("key \xff", "value")
	set("base64:key", "value")
	set("template", "line one\n\tline two \x1b[0m\n")
	s.Metadata.Set("list", gguf.TextsValue("\x1b", "\xff", "a\nb", "fine"))
	s.Metadata.Set("deep", gguf.ArrayValue(gguf.Array, gguf.TextsValue("\x1b"), gguf.Int32sValue(1, -1)))
	return s
}
