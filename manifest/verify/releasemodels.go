package verify

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// checkOne refuses a folder that holds several models, or only what goes beside those in
// folders below, and no list to say what belongs together.
func (v *verifier) checkOne() error {
	if len(v.models) == 0 || slices.Contains(v.files, manifest.SumsName) {
		return nil
	}
	var names []string
	for _, m := range v.models {
		if m.Companion() == "" || v.main().Companion() != "" {
			names = append(names, fmt.Sprintf("%q", v.name(m.Files[0].Name)))
		}
	}
	if folders := gguf.FoldersOfModels(v.dir); v.main().Companion() != "" && len(folders) > 0 {
		return fmt.Errorf("%s: holds no model, only what goes beside one: %s; there are models in %s", v.dir, strings.Join(names, ", "), strings.Join(folders[:min(len(folders), 5)], ", "))
	}
	if len(names) == 1 {
		return nil
	}
	return fmt.Errorf("%s: holds %d models and no %s that lists them, name one of them: %s", v.dir, len(names), manifest.SumsName, strings.Join(names, ", "))
}

// modelFiles returns the model files that belong to the release: those listed, or all
// when there is no list.
func (v *verifier) modelFiles() []string {
	var names []string
	if v.hasList {
		for _, s := range v.listed {
			names = append(names, s.Name)
		}
	} else {
		names = slices.Clone(v.files)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !v.contents[name].model })
	slices.Sort(names)
	return names
}

// openModels opens the artifacts that the named files belong to: models before what goes
// beside one, the largest first.
func (v *verifier) openModels(names []string) error {
	seen := map[string]bool{}     // paths that some opened model has, or could not read
	unusable := map[string]bool{} // messages: each shard of a set gives the same
	for _, name := range names {
		if seen[v.path(name)] {
			continue
		}
		m, err := gguf.Open(v.path(name))
		if gguf.MachineFault(err) {
			return err
		}
		if err != nil {
			if !unusable[err.Error()] {
				v.report.find(KindStructure, name, about(v.path(name), err))
			}
			unusable[err.Error()] = true
			continue
		}
		if seen[filepath.Clean(m.Paths()[0])] { // by a link that is no shard's name
			m.Close()
			continue
		}
		v.addModel(m)
		for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
			seen[filepath.Clean(path)] = true
		}
		v.reportModel(m)
	}
	if len(names) == 0 {
		v.report.find(KindStructure, "", "there is no model file to check"+elsewhere(v.dir))
	}
	slices.SortStableFunc(v.models, func(a, b *gguf.Model) int {
		return cmp.Or(cmp.Compare(beside(a), beside(b)), cmp.Compare(b.TensorBytes(), a.TensorBytes()))
	})
	v.describeMain()
	v.reportUnsettled(slices.Clone(names))
	return nil
}

// elsewhere says where models lie that a folder without any may be about.
func elsewhere(dir string) string {
	folders, broken := gguf.FoldersOfModels(dir), gguf.BrokenPieces(dir)
	switch {
	case len(folders) > 0:
		return "; there are models in " + nameList(folders)
	case broken != "":
		return "; " + broken
	}
	return ""
}

// beside is 1 for what goes beside a model, 0 for a model.
func beside(m *gguf.Model) int { return min(len(m.Companion()), 1) }

// reportModel reports what was found in the headers of a model.
func (v *verifier) reportModel(m *gguf.Model) {
	v.report.problems(m, v.name)
	files := words.Files(m.Shards)
	if m.Shards > 1 {
		files = words.Group(len(m.Files)) + " of " + files
	}
	v.report.checked(fmt.Sprintf("structure of %q: %s, %s, %s, %s", m.Name, files,
		words.Count(len(m.Tensors()), "tensor"), words.Count(m.FileBytes(), "file byte"), words.Count(m.TensorBytes(), "tensor byte")))
	v.noteShardKeys(m)
}

// main returns the largest artifact, which expectations are about, or nil.
func (v *verifier) main() *gguf.Model {
	if len(v.models) == 0 {
		return nil
	}
	return v.models[0]
}

func (v *verifier) describeMain() {
	m := v.main()
	if m == nil {
		return
	}
	v.report.Artifact = describeModel(m)
	for _, other := range v.models[1:] {
		if kind := other.Companion(); kind != "" && m.Companion() == "" {
			v.report.note(v.name(other.Files[0].Name), "set aside, of the kind "+kind+": goes beside a model and is no part of it")
			continue
		}
		v.report.note(v.name(other.Files[0].Name), fmt.Sprintf("begins another model, %q; expectations, pin and plan are about %q, the largest", other.Name, m.Name))
	}
}

// inspect lets the caller look at the main model.
func (v *verifier) inspect() {
	if m := v.main(); m != nil && v.options.Inspect != nil {
		v.options.Inspect(m, v.report)
	}
}

// expect compares the main model with what is expected of it.
func (v *verifier) expect() error {
	var held []string
	for _, e := range v.options.Expect {
		if v.main() == nil {
			v.report.find(KindExpectation, "", fmt.Sprintf("%s is not known: no model could be opened", e.Key))
			continue
		}
		if e.readsData() && (v.options.Fast || v.options.Only != nil) {
			v.report.gap(e.Key+" was expected and data not read", "whether the weights are those expected")
			continue
		}
		wrong, err := e.check(v.measured())
		if err != nil {
			return err
		}
		if wrong != "" {
			v.report.find(KindExpectation, "", wrong)
			continue
		}
		held = append(held, e.Key+"="+e.Want)
	}
	if len(held) > 0 {
		v.report.checked("as expected: " + strings.Join(held, ", "))
	}
	return nil
}

func (v *verifier) measured() measured {
	if v.got == nil {
		return measured{model: v.main()}
	}
	return measured{v.main(), v.report.PinDigest, v.got.WeightsDigest}
}
