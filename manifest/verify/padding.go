package verify

import (
	"context"
	"fmt"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// readPadding reads the padding of a model whose data nothing is said of.
func (v *verifier) readPadding(ctx context.Context, m *gguf.Model) error {
	if m.Err() != nil {
		return nil
	}
	var padding paddings
	for _, f := range m.Files {
		p, err := manifest.ReadPadding(ctx, f)
		switch {
		case ctx.Err() != nil || gguf.MachineFault(err):
			return err
		case err != nil:
			v.report.find(KindUnreadable, "", err.Error())
			return nil
		}
		padding.add(v, f, p)
	}
	padding.tell(v, m)
	return nil
}

// paddings is the padding of a model's files.
type paddings struct {
	bytes  int64
	filled bool
}

func (all *paddings) add(v *verifier, f *gguf.File, p manifest.Padding) {
	all.bytes += p.Bytes
	all.filled = all.filled || len(p.Filled) > 0
	v.findPadding(f, p)
}

// tell notes padding in which nothing was found.
func (all *paddings) tell(v *verifier, m *gguf.Model) {
	if !all.filled {
		v.report.checked(fmt.Sprintf("padding of %q: %s, all zero", m.Name, words.Count(all.bytes, "byte")))
	}
}

// findPadding reports what lies in no key and no tensor and is not zero.
func (v *verifier) findPadding(f *gguf.File, p manifest.Padding) {
	for _, r := range p.Filled {
		v.report.Add(Finding{Kind: KindPadding, File: v.name(f.Name), Expert: manifest.NoExpert, Parts: []Part{{File: v.name(f.Name), Offset: r.Offset, Length: r.Length}},
			What: fmt.Sprintf("%s at byte %s %s in no key and no tensor, and not zero", words.Count(r.Length, "byte"), words.Group(r.Offset), words.Verb(r.Length, "lies", "lie"))})
	}
	if p.More > 0 {
		v.report.find(KindPadding, v.name(f.Name), fmt.Sprintf("%s more of padding %s not zero", words.Count(p.More, "place"), words.Verb(p.More, "is", "are")))
	}
}
