package gguftest

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf"
)

// smallVocab is the size of the fixture's vocabulary.
const smallVocab = 384

// addVocabulary adds a small vocabulary in the form of Kimi's: byte-level BPE with a few
// merges, special tokens, and unused ones up to smallVocab.
func addVocabulary(md *gguf.Metadata) {
	merges := []string{"t h", "th e", "Ġ the", "i n", "e r", "a n", "o n", "Ġ a", "e n", "o r", "a t", "Ġ t"}
	const normal, control, unused = 1, 3, 5 // llama.cpp's token types
	var tokens []string
	var types []int32
	add := func(token string, kind int32) {
		tokens = append(tokens, token)
		types = append(types, kind)
	}
	for _, r := range byteAlphabet() {
		add(string(r), normal)
	}
	for _, merge := range merges {
		var left, right string
		fmt.Sscan(merge, &left, &right)
		add(left+right, normal)
	}
	bos := len(tokens)
	for _, special := range []string{"[BOS]", "[EOS]", "<|im_end|>", "[PAD]"} {
		add(special, control)
	}
	for len(tokens) < smallVocab {
		add(fmt.Sprintf("<|unused_%d|>", len(tokens)), unused)
	}
	md.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	md.Set("tokenizer.ggml.pre", gguf.TextValue("kimi-k2"))
	md.Set("tokenizer.ggml.tokens", gguf.TextsValue(tokens...))
	md.Set("tokenizer.ggml.token_type", gguf.Int32sValue(types...))
	md.Set("tokenizer.ggml.merges", gguf.TextsValue(merges...))
	md.Set("tokenizer.ggml.bos_token_id", gguf.Uint32Value(uint32(bos)))
	md.Set("tokenizer.ggml.eos_token_id", gguf.Uint32Value(uint32(bos+1)))
	md.Set("tokenizer.ggml.padding_token_id", gguf.Uint32Value(uint32(bos+3)))
}

// byteAlphabet returns the character that byte-level BPE writes for each byte: the byte
// itself where it is a visible Latin-1 character, else the next character from U+0100 on.
func byteAlphabet() []rune {
	alphabet := make([]rune, 256)
	next := rune(256)
	for b := range alphabet {
		r := rune(b)
		if r < '!' || r > '~' && r < '¡' || r == 0xad {
			r = next
			next++
		}
		alphabet[b] = r
	}
	return alphabet
}

// WithVocabulary returns the same model with as many tokens as large ones have, about so many
// bytes long, the first ones shorter, and what goes with them: types, and merges ("gpt2") or
// scores ("llama"), and a chat template. The tokens are no text: it is for who reads headers.
func (s Spec) WithVocabulary(model string, n, long int) Spec {
	var tokens, merges []string
	types := make([]int32, n)
	for i := range n {
		token := strconv.FormatInt(int64(i), 36)
		token += strings.Repeat("T", max(0, 1+long/2+long*i/n-len(token)))
		tokens = append(tokens, token)
		merges = append(merges, token[:len(token)/2]+" "+token[len(token)/2:])
		types[i] = 1
	}
	s.Metadata = s.Metadata.Clone()
	s.Metadata.Set("tokenizer.ggml.model", gguf.TextValue(model))
	s.Metadata.Set("tokenizer.ggml.tokens", gguf.TextsValue(tokens...))
	s.Metadata.Set("tokenizer.ggml.token_type", gguf.Int32sValue(types...))
	switch model {
	case "gpt2":
		s.Metadata.Set("tokenizer.ggml.merges", gguf.TextsValue(merges...))
	case "llama":
		s.Metadata.Set("tokenizer.ggml.scores", gguf.Int32sValue(types...))
	}
	s.Metadata.Set("tokenizer.chat_template", gguf.TextValue(strings.Repeat("{% if x %}", 900)))
	return s
}
