package verify

import (
	"fmt"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// Warnings returns what is odd about a model's headers beside what package gguf has found
// in them: names that have no digest, well-known keys with a value of another kind, and a
// language model without a tokenizer.
func Warnings(m *gguf.Model) []gguf.Problem {
	list := manifest.NameWarnings(m)
	if !m.HasMetadata() {
		return list
	}
	list = append(list, misfits(m)...)
	t := readTokenizer(m)
	if t.fault != nil && !slices.ContainsFunc(list, func(p gguf.Problem) bool { return p.Where == t.fault.Where }) {
		list = append(list, *t.fault)
	}
	return list
}

func keyWarning(m *gguf.Model, key, what string) gguf.Problem {
	return gguf.Problem{Where: fmt.Sprintf("%s: key %q", m.Files[0].Name, key), What: what}
}

// A tokenizer is what a model says of how text becomes tokens.
type tokenizer struct {
	stated string        // in words, "" for a model that needs none
	fault  *gguf.Problem // a warning, or nil
}

// readTokenizer reads the tokenizer that a language model should have.
func readTokenizer(m *gguf.Model) (t tokenizer) {
	md, embedding := m.Metadata(), m.Tensor("token_embd.weight")
	if kind := md.Text("general.type"); embedding == nil || kind != "" && kind != "model" {
		return t // a vision part, an adapter, or the like
	}
	const model, tokens = "tokenizer.ggml.model", "tokenizer.ggml.tokens"
	warn := func(key, format string, args ...any) {
		warning := keyWarning(m, key, fmt.Sprintf(format, args...))
		t.fault = &warning
	}
	list, _ := md.Get(tokens)
	rows := int64(1)
	if len(embedding.Shape) > 1 {
		rows = int64(embedding.Shape[1])
	}
	switch name := md.Text(model); {
	case name == "":
		warn(model, "is missing, so no program can turn text into tokens")
	case name == "no_vocab" || name == "none":
		t.stated = fmt.Sprintf("%q, so the model is stated to have no vocabulary", name)
	case list.Type() != gguf.Array || list.Elem() != gguf.Text || list.Len() == 0:
		warn(tokens, "is not a list of tokens")
	case list.Len() > rows:
		warn(tokens, "has %s, tensor %q has rows for %s", words.Count(list.Len(), "token"), embedding.Name, words.Group(rows))
	default:
		t.stated = fmt.Sprintf("%s, %s", name, words.Count(list.Len(), "token"))
	}
	return t
}
