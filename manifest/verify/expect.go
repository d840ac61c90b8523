package verify

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// An Expectation is a fact that somebody wants an artifact to have.
type Expectation struct {
	Key, Want string
}

// measured is what expectations are compared with. Digests are zero unless data was read.
type measured struct {
	model        *gguf.Model
	pin, weights manifest.Digest
}

// The expectations that need the data read.
const (
	pinKey     = "pin_digest"
	weightsKey = "weights_digest"
)

// readsData reports whether an expectation needs the data.
func (e Expectation) readsData() bool { return e.Key == pinKey || e.Key == weightsKey }

// A fact is what can be expected of an artifact. It says how a wanted value is written
// and what the artifact's own is; ok is false when the artifact has none.
type fact struct {
	key   string
	parse func(want string) (string, error)
	value func(m measured) (got string, ok bool, err error)
}

var facts = []fact{
	{"architecture", anyText, func(m measured) (string, bool, error) {
		name := m.model.Metadata().Architecture()
		return name, name != "", nil
	}},
	{"experts", wholeNumber, archNumber("expert_count")},
	{"experts_used", wholeNumber, archNumber("expert_used_count")},
	{"shards", wholeNumber, number(func(m *gguf.Model) int64 { return int64(m.Shards) })},
	{"tensors", wholeNumber, number(func(m *gguf.Model) int64 { return int64(len(m.Tensors())) })},
	{"file_bytes", wholeNumber, number((*gguf.Model).FileBytes)},
	{"tensor_bytes", wholeNumber, number((*gguf.Model).TensorBytes)},
	{"structure_digest", blake3Text, func(m measured) (string, bool, error) {
		d, err := manifest.StructureDigest(m.model)
		return d.String(), err == nil, err
	}},
	{"metadata_digest", blake3Text, func(m measured) (string, bool, error) {
		d, err := manifest.MetadataDigest(m.model.Metadata())
		return d.String(), err == nil, err
	}},
	{pinKey, blake3Text, func(m measured) (string, bool, error) {
		return m.pin.String(), !m.pin.IsZero(), nil
	}},
	{weightsKey, blake3Text, func(m measured) (string, bool, error) {
		return m.weights.String(), !m.weights.IsZero(), nil
	}},
}

// ParseExpectations reads "experts=568,shards=14". Keys are architecture, experts,
// experts_used, shards, tensors, file_bytes, tensor_bytes, structure_digest,
// metadata_digest, pin_digest and weights_digest.
func ParseExpectations(s string) ([]Expectation, error) {
	var list []Expectation
	seen := map[string]bool{}
	for item := range strings.SplitSeq(s, ",") {
		key, want, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found {
			return nil, fmt.Errorf("expectation %q is not key=value", item)
		}
		f, err := factNamed(key)
		if err != nil {
			return nil, err
		}
		if want, err = f.parse(want); err != nil {
			return nil, fmt.Errorf("expectation %q: %w", key, err)
		}
		if seen[key] {
			return nil, fmt.Errorf("expectation %q is given twice", key)
		}
		seen[key] = true
		list = append(list, Expectation{key, want})
	}
	return list, nil
}

func factNamed(key string) (fact, error) {
	keys := make([]string, len(facts))
	for i, f := range facts {
		if f.key == key {
			return f, nil
		}
		keys[i] = f.key
	}
	return fact{}, fmt.Errorf("expectation %q is not known, want one of %s", key, strings.Join(keys, ", "))
}

func anyText(want string) (string, error) {
	if want == "" {
		return "", fmt.Errorf("value is empty")
	}
	return want, nil
}

func wholeNumber(want string) (string, error) {
	n, err := strconv.ParseUint(want, 10, 63)
	if err != nil {
		return "", fmt.Errorf("value is %q, want a whole number", want)
	}
	return strconv.FormatUint(n, 10), nil
}

// blake3Text reads a digest, with or without the name of the only algorithm it can have.
func blake3Text(want string) (string, error) {
	d, err := manifest.ParseDigest(manifest.BLAKE3.String() + ":" + strings.TrimPrefix(want, manifest.BLAKE3.String()+":"))
	return d.String(), err
}

func number(of func(*gguf.Model) int64) func(measured) (string, bool, error) {
	return func(m measured) (string, bool, error) { return strconv.FormatInt(of(m.model), 10), true, nil }
}

func archNumber(suffix string) func(measured) (string, bool, error) {
	return func(m measured) (string, bool, error) {
		n, ok := m.model.Metadata().ArchUint(suffix)
		return strconv.FormatUint(n, 10), ok, nil
	}
}

// check compares one expectation with what was measured and returns what is wrong, or "".
func (e Expectation) check(m measured) (string, error) {
	f, err := factNamed(e.Key)
	if err != nil {
		return "", err
	}
	got, ok, err := f.value(m)
	switch {
	case err != nil:
		return fmt.Sprintf("%s is not known: %v", e.Key, err), nil
	case !ok:
		return fmt.Sprintf("%s is not stated, want %s", e.Key, e.Want), nil
	case got != e.Want:
		return fmt.Sprintf("%s is %s, want %s", e.Key, got, e.Want), nil
	}
	return "", nil
}
