package verify

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// splitKeys are what the format knows of a split.
var splitKeys = []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors}

// noteShardKeys says what keys of a model are neither the model's nor say its place in a
// split: no digest counts them, and programs that load the model read them all.
func (v *verifier) noteShardKeys(m *gguf.Model) {
	for i, f := range m.Files {
		var odd []string
		var size int64
		for key, value := range f.Metadata.All() {
			if slices.Contains(splitKeys, key) || key == gguf.KeyAlignment && f.Alignment == m.Files[0].Alignment || i == 0 && !strings.HasPrefix(key, "split.") {
				continue
			}
			odd = append(odd, key)
			size += value.Size()
		}
		if len(odd) == 0 {
			continue
		}
		what := "of a later shard"
		if i == 0 {
			what = "that no split has"
		}
		v.report.note(v.name(f.Name), fmt.Sprintf("%s %s, in no digest: %s, %s of values",
			words.Count(len(odd), "key"), what, nameList(odd), words.Count(size, "byte")))
	}
	for _, f := range m.Files[1:] {
		if f.Version != m.Files[0].Version {
			v.report.note(v.name(f.Name), fmt.Sprintf("is of GGUF version %d, the first shard of %d", f.Version, m.Files[0].Version))
		}
	}
}
