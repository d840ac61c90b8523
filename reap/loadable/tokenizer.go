package loadable

import (
	"hash/maphash"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// Keys of the tokenizer (llama-vocab.cpp).
const (
	keyTokenizer = "tokenizer.ggml.model"
	keyTokens    = "tokenizer.ggml.tokens"
	keyScores    = "tokenizer.ggml.scores"
	keyTypes     = "tokenizer.ggml.token_type"
	keyMerges    = "tokenizer.ggml.merges"
	keyPre       = "tokenizer.ggml.pre"
)

// tokenizers are the kinds of tokenizer that llama.cpp has.
var tokenizers = []string{"llama", "bert", "gpt2", "hybriddna", "whitespace", "t5", "rwkv", "plamo2", "gemma4"}

// merging are those that join pairs of a list.
var merging = []string{"gpt2", "hybriddna", "whitespace", "gemma4"}

// preTokenizers are the ways of those that join pairs to cut a text before.
var preTokenizers = strings.Fields(`
kimi-k2 default minicpm5 llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2
jina-v5-nano deepseek-llm deepseek-coder deepseek-v3 youtu falcon mpt starcoder gpt-2 phi-2
jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jais-2 gemma4
granite-embed-multi-311m sarvam-moe jina-v1-en jina-v2-code roberta-bpe whitespace refact
command-r qwen2 deepseek-r1-qwen kormo f2llmv2 qwen35 stablelm2 olmo dbrx smaug-bpe poro-chat
glm4 chatglm-bpe viking jais tekken smollm codeshell bloom gpt3-finnish exaone exaone4
exaone-moe chameleon minerva-7b megrez gpt-4o llama4 kanana2 talkie granite-embed-multi-97m
tiny_aya cohere2moe superbpe trillion granite-docling bailingmoe bailingmoe2 llada-moe
seed-coder hunyuan hunyuan-dense joyai-llm grok-2 afmoe laguna minimax-m2 solar-open ufakzeka
mellum2`)

// noVocabulary reports whether the metadata says that the model has no vocabulary.
func (c *check) noVocabulary() bool {
	name := c.md.Text(keyTokenizer)
	return name == "no_vocab" || name == "none"
}

// checkTokenizer looks at the tokenizer's keys and the lengths of its lists.
func (c *check) checkTokenizer() {
	model, there := c.md.Get(keyTokenizer)
	name, isText := model.Text()
	switch {
	case !there:
		if len(c.m.Tensors()) > 0 && c.known() && !c.draftAlone() {
			c.refuse(c.keyPlace(keyTokenizer), "is not there, llama.cpp loads no model without it")
		}
		return
	case !isText:
		c.refuse(c.keyPlace(keyTokenizer), "is %s, llama.cpp reads a text only", model.TypeName())
		return
	}
	c.checkTypes(vocabularyKeys)
	if c.noVocabulary() {
		return
	}
	if !slices.Contains(tokenizers, name) && c.known() {
		c.tell(c.keyPlace(keyTokenizer), "names a tokenizer that is not known, %.60q: llama.cpp loads no model with one that it does not know", name)
	}
	c.checkTypes(tokenizerKeys)
	c.checkElements("tokenizer.ggml.suppress_tokens", gguf.Int32)
	if name == "t5" {
		c.checkElements("tokenizer.ggml.precompiled_charsmap", gguf.Int8, gguf.Uint8)
	}
	c.checkMerges(name)
	c.checkPre(name)
	tokens, ok := c.textList(keyTokens, slices.Contains(tokenizers, name))
	if !ok {
		return
	}
	c.checkRepeated(tokens)
	c.checkTokenList(keyScores, gguf.Float32, tokens.Len())
	c.checkTokenList(keyTypes, gguf.Int32, tokens.Len())
}

// vocabularyKeys are read of every model, each with one type of value.
var vocabularyKeys = map[gguf.ValueType][]string{
	gguf.Text:   {"pre"},
	gguf.Uint32: {"token_type_count"},
}

// tokenizerKeys are read besides where there are tokens.
var tokenizerKeys = map[gguf.ValueType][]string{
	gguf.Bool: {
		"add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix", "remove_extra_whitespaces",
		"normalizer.lowercase", "normalizer.strip_accents",
	},
	gguf.Uint32: {
		"bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id", "unknown_token_id",
		"seperator_token_id", "padding_token_id", "mask_token_id", "fim_pre_token_id", "fim_suf_token_id",
		"fim_mid_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id",
		"prefix_token_id", "suffix_token_id", "middle_token_id",
	},
}

// checkTypes wants keys of the tokenizer that are there to have their types.
func (c *check) checkTypes(keys map[gguf.ValueType][]string) {
	for _, typ := range []gguf.ValueType{gguf.Text, gguf.Bool, gguf.Uint32} {
		for _, name := range keys[typ] {
			key := "tokenizer.ggml." + name
			if v, there := c.md.Get(key); there && v.Type() != typ {
				c.refuse(c.keyPlace(key), "is %s, llama.cpp reads %s only", v.TypeName(), typ)
			}
		}
	}
}

// checkElements wants a list that is there to have elements of one of some types.
func (c *check) checkElements(key string, elems ...gguf.ValueType) {
	if v, there := c.md.Get(key); there && (v.Type() != gguf.Array || !slices.Contains(elems, v.Elem())) {
		c.refuse(c.keyPlace(key), "is %s, llama.cpp reads a list of %s only", v.TypeName(), elems[0])
	}
}

// checkPre tells a way to cut text that is not known; without any llama.cpp takes a usual one.
func (c *check) checkPre(tokenizer string) {
	pre := c.md.Text(keyPre)
	if pre != "" && slices.Contains(merging, tokenizer) && tokenizer != "gemma4" && c.known() && !slices.Contains(preTokenizers, pre) {
		c.tell(c.keyPlace(keyPre), "is not known, %.60q: llama.cpp loads no model with a pre-tokenizer that it does not know", pre)
	}
}

// checkMerges wants the list of pairs, which Kimi's tokenizer alone does without.
func (c *check) checkMerges(tokenizer string) {
	if slices.Contains(merging, tokenizer) {
		c.textList(keyMerges, tokenizer == "gemma4" || c.md.Text(keyPre) != "kimi-k2")
	}
}

// textList returns the list of texts at a key.
func (c *check) textList(key string, required bool) (gguf.Value, bool) {
	v, there := c.md.Get(key)
	switch {
	case !there && required && c.known():
		c.refuse(c.keyPlace(key), "is not there, llama.cpp does not load the tokenizer %q without it", c.md.Text(keyTokenizer))
	case there && (v.Type() != gguf.Array || v.Elem() != gguf.Text):
		c.refuse(c.keyPlace(key), "is %s, llama.cpp reads a list of texts only", v.TypeName())
		return v, false
	}
	return v, there
}

// checkTokenList wants a value for each token, where there are any. llama.cpp leaves those
// at the end alone.
func (c *check) checkTokenList(key string, elem gguf.ValueType, tokens int64) {
	v, there := c.md.Get(key)
	switch {
	case !there:
	case v.Type() != gguf.Array || v.Elem() != elem:
		c.refuse(c.keyPlace(key), "is %s, llama.cpp reads a list of %s only", v.TypeName(), elem)
	case v.Len() < tokens:
		c.refuse(c.keyPlace(key), "has %s, %q has %s", entries(v.Len()), keyTokens, words.Count(tokens, "token"))
	}
}

// checkRepeated wants no token twice (the assertion at the end of llama-vocab.cpp's load).
// Tokens are compared by hashes of 64 bits, of which two are never equal by chance.
func (c *check) checkRepeated(tokens gguf.Value) {
	seed := maphash.MakeSeed()
	hashes := make([]uint64, 0, tokens.Len())
	tokens.Each(func(i int64, v gguf.Value) error {
		if s, _ := v.Text(); s != "" { // llama.cpp gives empty ones names of their own
			hashes = append(hashes, maphash.String(seed, s))
		}
		return nil
	})
	slices.Sort(hashes)
	if repeated := len(hashes) - len(slices.Compact(hashes)); repeated > 0 {
		c.refuse(c.keyPlace(keyTokens), "%s %s more than once", words.Count(repeated, "token"), words.Verb(repeated, "stands", "stand"))
	}
}

// vocabulary returns the number of tokens, and the key that states it; none when that is
// not known.
func (c *check) vocabulary() (n uint64, key string, ok bool) {
	if c.noVocabulary() {
		key = c.md.ArchKey("vocab_size")
		return c.number("vocab_size"), key, true
	}
	v, there := c.md.Get(keyTokens)
	if !there || v.Type() != gguf.Array {
		return 0, "", false
	}
	return uint64(v.Len()), keyTokens, true
}

// checkEmbedding wants the embedding, and a row of it and of the output for each token.
func (c *check) checkEmbedding() {
	if c.draftAlone() {
		return
	}
	const embedding, output = "token_embd.weight", "output.weight"
	if c.m.Tensor(embedding) == nil {
		if len(c.traits) > 0 && c.known() && c.arch != "codeshell" { // which takes it from the output
			c.refuse(c.m.Name, "has no tensor %q", embedding)
		}
		return
	}
	n, key, known := c.vocabulary()
	if !known {
		return
	}
	for _, name := range []string{embedding, output} {
		t := c.m.Tensor(name)
		if t == nil {
			continue
		}
		if rows := dim(t, 1); rows != n {
			c.refuseTensor(t, "has %s, %q states %s: llama.cpp wants one for each", words.Count(rows, "row"), key, words.Count(n, "token"))
		}
	}
}
