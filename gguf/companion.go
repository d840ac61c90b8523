package gguf

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// An Aside is an artifact in the folder of a model that is no rival of it.
type Aside struct {
	File string // the first of its files, without the folder
	Kind string // as [Model.Companion] names it
}

// companions are the kinds of files that go beside a model, by general.type as llama.cpp
// and its converters write it (GGUFType of gguf-py).
var companions = map[string]string{"mmproj": "projector", "imatrix": "imatrix", "adapter": "adapter"}

// companionKeys tell those that were written before they had a general.type: by older tools, or
// by tools of others.
var companionKeys = []struct{ key, kind string }{
	{"adapter.type", "adapter"},
	{"adapter.lora.alpha", "adapter"},
	{"imatrix.datasets", "imatrix"},
	{"imatrix.chunk_count", "imatrix"},
}

// companionArchitectures are those of files that are no models.
var companionArchitectures = map[string]string{"clip": "projector", "controlvector": "control vector"}

// companion names the kind of a file that goes beside a model and is none itself, "" for
// all others. Older ones are told by their architecture, their keys, or, where an adapter has
// neither, by its tensors.
func (f *File) companion() string {
	if kind := cmp.Or(companions[f.Metadata.Text("general.type")], companionArchitectures[f.Metadata.Architecture()]); kind != "" {
		return kind
	}
	for _, known := range companionKeys {
		if _, ok := f.Metadata.Get(known.key); ok {
			return known.kind
		}
	}
	if len(f.Tensors) > 0 && !slices.ContainsFunc(f.Tensors, func(t *Tensor) bool { return !isLowRank(t.Name) }) {
		return companions["adapter"]
	}
	return ""
}

// isLowRank reports whether a tensor is one of the two factors of an adapter (LoRA).
func isLowRank(name string) bool {
	return strings.HasSuffix(name, ".lora_a") || strings.HasSuffix(name, ".lora_b")
}

// Companion names what a model is that goes beside another one: "projector", "imatrix",
// "adapter" or "control vector". It is "" for a model of its own.
func (m *Model) Companion() string { return m.Files[0].companion() }

// companion is that of the first file of a set that can be read.
func (o *opener) companion(set *shardSet) string {
	for _, path := range set.paths {
		if f := o.parsed[path].file; f != nil {
			return f.companion()
		}
	}
	return ""
}

// setAside parts the models of a folder from what goes beside them.
func (o *opener) setAside(sets []*shardSet) (models, beside []*shardSet) {
	for _, set := range sets {
		if o.companion(set) == "" {
			models = append(models, set)
		} else {
			beside = append(beside, set)
		}
	}
	return models, beside
}

// asides describes sets that were set aside.
func (o *opener) asides(sets []*shardSet) []Aside {
	var list []Aside
	for _, set := range sets {
		list = append(list, Aside{filepath.Base(set.paths[0]), o.companion(set)})
	}
	return list
}

// FoldersOfModels lists the folders below a folder that hold models, sorted and named from it. A
// few levels are looked at, and what lies below a folder with models is not.
func FoldersOfModels(dir string) []string {
	budget := lookFolders
	folders := foldersWithModels(dir, "", lookDepth, &budget)
	slices.Sort(folders)
	return folders
}
