package manifest

import (
	"fmt"
	"iter"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// Warnings returns what is odd about a model's headers beside what package gguf has found
// in them: names that have no digest, well-known keys with a value of another kind, and a
// language model without a tokenizer.
func Warnings(m *gguf.Model) []gguf.Problem {
	list := unnamable(m)
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

// unnamable returns a warning of the tensors, and one of the keys, for whose names no
// digest is defined.
func unnamable(m *gguf.Model) []gguf.Problem {
	list := unnamableTensors(m)
	if key, fault := firstFault(slices.Values(m.Metadata().Keys()), "keys"); fault != "" {
		list = append(list, keyWarning(m, key, fault))
	}
	return list
}

func unnamableTensors(m *gguf.Model) []gguf.Problem {
	name, fault := firstFault(func(yield func(string) bool) {
		for _, t := range m.Tensors() {
			if !yield(t.Name) {
				return
			}
		}
	}, "tensors")
	if fault == "" {
		return nil
	}
	where := fmt.Sprintf("%s: tensor %q", m.Tensor(name).File().Name, name)
	return []gguf.Problem{{Where: where, What: fault, Tensor: name}}
}

// firstFault returns the first name for which no digest is defined, says why, and how
// many of the nouns have such names. The fault is "" when none has.
func firstFault(names iter.Seq[string], nouns string) (first, fault string) {
	faulty := 0
	for name := range names {
		if controlAt(name) < 0 {
			continue
		}
		if faulty++; faulty == 1 {
			first, fault = name, "the name has "+lineFault(name)
		}
	}
	if faulty > 1 {
		fault += fmt.Sprintf("; %s %s have such names", words.Group(faulty), nouns)
	}
	return first, fault
}

// checkNames returns an error when there are warnings of names.
func checkNames(unnamable []gguf.Problem) error {
	if len(unnamable) == 0 {
		return nil
	}
	return &NameError{unnamable[0].Where + ": " + unnamable[0].What}
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
