// Package edit changes metadata of models: it makes values from text and knows which keys
// may be changed. Writing what comes of it is for others.
package edit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// KeyEdited names the keys that were changed, set, renamed or removed, sorted. It is what a
// model says of itself, and lets a proof tell stated changes from others.
const KeyEdited = "reap.edited_keys"

// A Change is one thing to do to a model's metadata.
type Change struct {
	Key    string
	Value  *Text  // to set; nil to remove the key or to rename it
	Rename string // the new key, or ""
}

// A Text is a value that is to be set, as it was typed.
type Text struct {
	Type string // "u32", "str[]"; "" for that of the value that is there, or of a well-known key
	Data string // of a list: a JSON list
}

// ErrMissing says that a key that is to be changed is not there.
var ErrMissing = errors.New("is not there")

// ErrComputes says that a key decides how an engine computes.
var ErrComputes = errors.New("decides how an engine computes, so that the same weights may give other answers")

// Apply returns metadata with the changes made in order. All else keeps its bytes and its
// place. Unless leave is set, keys that decide how an engine computes are refused with
// [ErrComputes]. Keys of the split and those that state a release's making are refused.
func Apply(md *gguf.Metadata, changes []Change, leave bool) (*gguf.Metadata, error) {
	md = md.Clone()
	for _, c := range changes {
		for _, key := range []string{c.Key, c.Rename} {
			if err := check(md.Architecture(), key, leave); err != nil {
				return nil, err
			}
		}
		var err error
		if md, err = c.apply(md); err != nil {
			return nil, fmt.Errorf("key %q: %w", c.Key, err)
		}
	}
	return md, nil
}

// typeOf returns the type that the value is to have: as it was typed, else that of the value
// that is there, else the one that everybody gives the key, else "".
func (c Change) typeOf(md *gguf.Metadata, old gguf.Value, there bool) string {
	switch {
	case c.Value.Type != "":
		return c.Value.Type
	case there:
		return old.TypeName()
	}
	return knownType(md.Architecture(), c.Key)
}

func (c Change) apply(md *gguf.Metadata) (*gguf.Metadata, error) {
	old, there := md.Get(c.Key)
	switch {
	case c.Value != nil:
		v, err := c.Value.value(c.typeOf(md, old, there))
		if err != nil {
			return nil, err
		}
		md.Set(c.Key, v)
		return md, nil
	case !there:
		return nil, ErrMissing
	case c.Rename == "":
		return md.Without(func(key string) bool { return key == c.Key }), nil
	}
	if _, taken := md.Get(c.Rename); taken {
		return nil, fmt.Errorf("%q is there already", c.Rename)
	}
	renamed := gguf.NewMetadata()
	for key, v := range md.All() {
		if key == c.Key {
			key = c.Rename
		}
		renamed.Set(key, v)
	}
	return renamed, nil
}

// State adds to the keys that metadata names as edited.
func State(md *gguf.Metadata, changes []Change) {
	keys := Edited(md)
	for _, c := range changes {
		keys = append(keys, c.Key)
		if c.Rename != "" {
			keys = append(keys, c.Rename)
		}
	}
	if slices.Sort(keys); len(keys) > 0 {
		md.Set(KeyEdited, gguf.TextsValue(slices.Compact(keys)...))
	}
}

// Edited returns the keys that metadata names as edited, sorted.
func Edited(md *gguf.Metadata) []string {
	v, ok := md.Get(KeyEdited)
	if !ok || v.TypeName() != editedType {
		return nil
	}
	named := map[string]bool{}
	v.Each(func(_ int64, e gguf.Value) error { // what cannot be read is not named
		key, _ := e.Text()
		named[key] = true
		return nil
	})
	return slices.Sorted(maps.Keys(named))
}

// editedType is the type of [KeyEdited].
const editedType = "str[]"

// Harmless reports whether a key may be changed without a second thought: not how the model is
// cut, how it was made, or how an engine computes.
func Harmless(architecture, key string) bool { return check(architecture, key, false) == nil }

// check refuses a key that is not to be changed.
func check(arch, key string, leave bool) error {
	switch {
	case key == "":
		return nil
	case strings.HasPrefix(key, "split."):
		return fmt.Errorf("key %q says how the model is cut, which is for writing it to say", key)
	case strings.HasPrefix(key, "reap."):
		return fmt.Errorf("key %q states how the model was made", key)
	case computes(arch, key) && !leave:
		return fmt.Errorf("key %q %w", key, ErrComputes)
	}
	return nil
}

// computing are the beginnings of keys without the architecture's name that llama.cpp computes
// with: how strong an adapter is, which models of diffusion shift their logits, the activation of
// apertus, the words of RWKV's tokenizer.
var computing = []string{"adapter.", "diffusion.", "xielu.", "tokenizer.rwkv."}

// computes reports whether an engine reads more from a key than a name or a text: all that
// stands below the architecture, and what makes tokens of a text.
func computes(arch, key string) bool {
	switch key {
	case gguf.KeyArchitecture, gguf.KeyAlignment, "general.quantization_version":
		return true
	}
	if slices.ContainsFunc(computing, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return true
	}
	rest, tokenizer := strings.CutPrefix(key, "tokenizer.ggml.")
	special := strings.HasSuffix(rest, "_token_id") || strings.HasSuffix(rest, "_token_ids") || strings.HasPrefix(rest, "add_")
	return arch != "" && strings.HasPrefix(key, arch+".") || tokenizer && !special
}
