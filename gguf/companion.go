package gguf

import (
	"path/filepath"
	"slices"
)

// An Aside is an artifact in the folder of a model that is no rival of it.
type Aside struct {
	File string // the first of its files, without the folder
	Kind string // as [Model.Companion] names it
}

// companions are the kinds of files that go beside a model, by general.type as llama.cpp
// and its converters write it (GGUFType of gguf-py).
var companions = map[string]string{"mmproj": "projector", "imatrix": "imatrix", "adapter": "adapter"}

// companion names the kind of a file that goes beside a model and is none itself, "" for
// all others. Older projectors and adapters are told by the architecture and adapter.type.
func (f *File) companion() string {
	if kind := companions[f.Metadata.Text("general.type")]; kind != "" {
		return kind
	}
	switch {
	case f.Metadata.Architecture() == "clip":
		return companions["mmproj"]
	case f.Metadata.Text("adapter.type") != "":
		return companions["adapter"]
	}
	return ""
}

// Companion names what a model is that goes beside another one: "projector", "imatrix" or
// "adapter". It is "" for a model of its own.
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
