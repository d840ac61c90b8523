package verification

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap/loadable"
)

// checkLoading holds the headers against what llama.cpp asks for when it loads a model. What
// it finds takes the place of notes about the same keys.
func (v *Job) checkLoading(m *gguf.Model, r *verify.Report) {
	refused := false
	for _, p := range loadable.Check(m) {
		f := loadingFinding(m, p)
		r.Notes = slices.DeleteFunc(r.Notes, func(n verify.Note) bool { return n.File == f.File && sameKey(n.What, f.What) })
		if p.Severity == gguf.Error {
			r.Add(f)
			refused = true
			continue
		}
		if f.Tensor != "" {
			f.What = fmt.Sprintf("tensor %q: %s", f.Tensor, f.What)
		}
		r.AddNote(f.File, f.What)
	}
	switch architecture := m.Metadata().Architecture(); {
	case refused:
	case loadable.Known(architecture):
		r.Checked = append(r.Checked, fmt.Sprintf("loading: keys, tensors and shapes are those that llama.cpp asks for in %s", architecture))
	default:
		r.Checked = append(r.Checked, "loading: the headers have what llama.cpp asks for in every architecture")
	}
	if v.Judge != nil {
		v.Err = errors.Join(v.Err, v.Judge(m, r))
		return
	}
	r.Gaps = append(r.Gaps, verify.Gap{
		What:     "whether an engine loads it: only headers were looked at, and no engine was asked",
		NotShown: "whether it runs, and what it says",
	})
}

// loadingFinding names file and tensor of a problem that is about one.
func loadingFinding(m *gguf.Model, p gguf.Problem) verify.Finding {
	f := verify.Finding{Kind: verify.KindLoading, Tensor: p.Tensor, Expert: manifest.NoExpert, What: p.What}
	if t := m.Tensor(p.Tensor); t != nil {
		f.File = filepath.Base(t.File().Name)
		return f
	}
	first := m.Files[0].Name
	if place, found := strings.CutPrefix(p.Where, first+": "); found {
		f.File, f.What = filepath.Base(first), place+": "+p.What
	}
	return f
}

// sameKey reports whether two messages begin with the same key: `key "general.name": `.
func sameKey(a, b string) bool {
	place, _, named := strings.Cut(a, `": `)
	return named && strings.HasPrefix(a, "key ") && strings.HasPrefix(b, place+`": `)
}
