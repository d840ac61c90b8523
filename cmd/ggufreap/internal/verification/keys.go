package verification

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

// keyForms are the keys that state a derivation, with whether a value is such as is written
// there.
var keyForms = map[string]func(v gguf.Value) bool{
	reap.KeySourceStructure: isDigest,
	reap.KeySourceWeights:   isDigest,
	reap.KeySourcePin:       isDigest,
	reap.KeyPlan:            isDigest,
	reap.KeyCriterion:       isText,
	reap.KeyEvidence:        isEvidence,
	reap.KeySourceExperts:   func(v gguf.Value) bool { return v.Type() == gguf.Uint32 },
	edit.KeyEdited:          func(v gguf.Value) bool { return v.TypeName() == "str[]" },
}

func isText(v gguf.Value) bool {
	_, ok := v.Text()
	return ok
}

func isDigest(v gguf.Value) bool {
	text, _ := v.Text()
	_, err := manifest.ParseDigest(text)
	return err == nil
}

func isEvidence(v gguf.Value) bool {
	text, _ := v.Text()
	return slices.Contains([]reap.Evidence{reap.Measured, reap.Proxy, reap.Baseline}, reap.Evidence(text))
}

// checkKeys looks at the keys that state a derivation, whatever they say of a plan: no other
// keys of that name space are written, nor other kinds of values.
func checkKeys(m *gguf.Model, r *verify.Report) {
	sayBases(r)
	for key, value := range m.Metadata().All() {
		if !strings.HasPrefix(key, "reap.") {
			continue
		}
		what := ""
		if form := keyForms[key]; form == nil {
			what = "is none of those that state a derivation"
		} else if !form(value) {
			what = fmt.Sprintf("is %s, which states no derivation", valueText(value))
		}
		if what != "" {
			r.Add(verify.Finding{Kind: verify.KindMetadata, File: filepath.Base(m.Files[0].Name), Expert: manifest.NoExpert, What: fmt.Sprintf("key %q %s", key, what)})
		}
	}
}

// sayBases says which keys name models that the release was made from, and are not the
// source's: anybody can write them.
func sayBases(r *verify.Report) {
	if r.Proof == nil {
		return
	}
	var keys []string
	for _, k := range r.Proof.Metadata {
		if k.Allowed && strings.HasPrefix(k.Key, "general.base_model.") {
			keys = append(keys, strconv.Quote(k.Key))
		}
	}
	if len(keys) == 0 {
		return
	}
	r.Gaps = append(r.Gaps, verify.Gap{
		What:     fmt.Sprintf("what the release says of models that it was made from, in %s: %s", words.Count(len(keys), "key"), text.Names(keys, 3)),
		NotShown: "whether those are its models",
	})
}
