package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// A wrongSum is what is known of a file whose sum is wrong.
type wrongSum struct {
	size   int64
	before int64 // bytes before its tensor data
	pinned bool  // its tensors were held against a pin of just this file
}

// placeSums says of every file whose sum is wrong which bytes that can be. Where findings
// name parts of the file, they are those, and its header where that differs too.
func (r *Report) placeSums(look func(file string) wrongSum) {
	placed, header := map[string]bool{}, false
	for _, f := range r.Findings {
		header = header || f.Kind == KindMetadata || f.Kind == KindStructure
		for _, part := range f.Parts {
			placed[part.File] = true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Kind != KindDigest || f.Tensor != "" || f.File == "" || len(f.Parts) > 0 {
			continue
		}
		file := look(f.File)
		switch before := words.Count(file.before, "byte"); {
		case file.size == 0:
		case file.pinned && !placed[f.File]:
			f.Parts = []Part{{File: f.File, Length: file.before}}
			f.What += fmt.Sprintf("; all tensor data is as pinned, so what differs lies in the %s before it, or between tensors", before)
		case file.pinned && header:
			f.Parts = []Part{{File: f.File, Length: file.before}}
			f.What += fmt.Sprintf("; the %s before the tensor data differ too", before)
		case !placed[f.File]:
			f.Parts = []Part{{File: f.File, Length: file.size}}
			f.What += fmt.Sprintf("; no pin tells its parts, so it can be any of its %s", words.Count(file.size, "byte"))
		}
	}
}

// placeSums looks at the files of the folder. One whose measured sum is the pinned one has no
// wrong bytes: the list has.
func (v *verifier) placeSums() {
	v.report.placeSums(func(name string) wrongSum {
		var file wrongSum
		if v.pinSays(name, v.taken[name]) != "" {
			return file
		}
		if info, err := os.Stat(v.path(name)); err == nil {
			file.size = info.Size()
		}
		if m := v.main(); m != nil && v.pin != nil && v.got != nil {
			for _, f := range m.Files {
				if v.name(f.Name) == name {
					file = pinnedSum(f, v.pin)
				}
			}
		}
		return file
	})
}

// pinnedSum is what is known of a file of a model that was held against a pin.
func pinnedSum(f *gguf.File, p *manifest.Pin) wrongSum {
	return wrongSum{f.Size, f.DataOffset, slices.ContainsFunc(p.Files, func(pinned manifest.File) bool {
		return pinned.Name == filepath.Base(f.Name) && pinned.Size == f.Size
	})}
}
