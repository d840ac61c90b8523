package verify

import (
	"bytes"
	"fmt"
	"path"
	"slices"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// A comparison holds what was measured of an artifact against a pin, and notes the
// differences in a report.
type comparison struct {
	report    *Report
	got, want *manifest.Pin
	quick     bool   // got has no digests of data
	at        placer // of got
	facts     []slabFact
}

// run compares everything and reports whether weights and metadata are those pinned.
func (c *comparison) run() bool {
	before := c.report.Total()
	c.report.compareOrder(c.got, c.want, "the pinned ones")
	c.tensors()
	c.report.noteStored(c.got, c.want, "the pinned ones")
	c.metadata()
	if c.report.Total() > before {
		c.files()
		return false
	}
	c.sameFiles()
	return c.report.Total() == before
}

// tensors compares names, types, shapes and, unless quick, data.
func (c *comparison) tensors() {
	count, size := len(c.want.Tensors), int64(0)
	for _, w := range c.want.Tensors {
		size += w.Size
	}
	for change := range manifest.TensorChanges(c.want, c.got) {
		if c.quick && change.Change == manifest.Changed {
			continue
		}
		c.tensor(change)
		if change.A != nil {
			count--
			size -= change.A.Size
		}
	}
	c.report.tellSlabs(c.facts, c.at)
	what := "names, types and shapes"
	if !c.quick {
		what += ", and every byte of data"
	}
	c.report.checked(fmt.Sprintf("tensors: %s of %s as pinned, %s: %s", words.Group(count), words.Group(len(c.want.Tensors)), words.Count(size, "byte"), what))
}

// tensor reports a tensor that is not as pinned: A is what was pinned, B what was
// measured.
func (c *comparison) tensor(change manifest.TensorChange) {
	switch change.Change {
	case manifest.Added:
		c.find(KindExtra, change.B, change.StructureText())
	case manifest.Removed:
		c.find(KindMissing, change.A, change.StructureText())
	case manifest.Changed:
		if c.slabs(change.B, change.A) == 0 {
			what := fmt.Sprintf("blake3 is %s, the pin says %s", change.B.BLAKE3, change.A.BLAKE3)
			if change.A.BLAKE3 == change.B.BLAKE3 {
				what = "the pin has another order of the experts by nearness"
			}
			c.find(KindDigest, change.B, what)
		}
	default:
		c.find(KindStructure, change.B, change.StructureText())
	}
}

// slabs compares the slabs of a tensor and returns in how many runs they differ. A pin whose tensor digest
// is right and a slab's is not would mislead whoever trusts the slab's.
func (c *comparison) slabs(g, w *manifest.Tensor) int {
	if g.SlabCount() != w.SlabCount() {
		return 0
	}
	f := slabFact{kind: KindDigest, tensors: []*manifest.Tensor{g}, is: "is", are: "are", rest: "not as pinned"}
	for i := range w.SlabCount() {
		if !bytes.Equal(g.Slabs.At(i), w.Slabs.At(i)) {
			f.add(i)
		}
	}
	if len(f.experts) > 0 {
		first := f.experts[0].first
		f.first = fmt.Sprintf("%s, the pin says %x", manifest.SlabText(g, g.Slabs.At(first)), w.Slabs.At(first))
		c.facts = append(c.facts, f)
	}
	return len(f.experts)
}

// find reports a tensor that is not as pinned; of one with other bytes, where they are.
func (c *comparison) find(kind Kind, t *manifest.Tensor, what string) {
	f := Finding{Kind: kind, File: c.at.fileOf(t.Name), Tensor: t.Name, Expert: manifest.NoExpert, What: what}
	if kind == KindDigest {
		f.Parts = c.at.whole(t)
	}
	c.report.Add(f)
}

// metadata compares all keys but split.*.
func (c *comparison) metadata() {
	changes := manifest.ComparePairs(c.want.Metadata, c.got.Metadata)
	for _, change := range changes {
		c.report.find(KindMetadata, "", change.String())
	}
	if len(changes) == 0 {
		c.report.checked(fmt.Sprintf("metadata: %s as pinned, split.* aside", words.Count(len(c.want.Metadata), "key")))
	}
}

// files notes files that are not those pinned, where weights or metadata differ.
func (c *comparison) files() {
	want := map[string]manifest.File{}
	for _, f := range c.want.Files {
		want[f.Name] = f
	}
	for _, g := range c.got.Files {
		if w, ok := want[g.Name]; ok && w.Size == g.Size && w.SHA256 != g.SHA256 && !c.quick && !c.reported(g.Name) {
			c.report.find(KindDigest, g.Name, fmt.Sprintf("sha256 is %s, the pin says %s", g.SHA256, w.SHA256))
		}
	}
}

// reported reports whether the bytes of a file were found wrong already.
func (c *comparison) reported(file string) bool {
	return slices.ContainsFunc(c.report.Findings, func(f Finding) bool {
		return f.Kind == KindDigest && f.Tensor == "" && path.Base(f.File) == file
	})
}

// sameFiles compares the files of an artifact whose weights and metadata are those
// pinned. Another cut is no fault; the same names and sizes with other bytes are.
func (c *comparison) sameFiles() {
	sameBytes := slices.EqualFunc(c.got.Files, c.want.Files, func(g, w manifest.File) bool {
		return g.Size == w.Size && (c.quick || g.SHA256 == w.SHA256)
	})
	sameNames := slices.EqualFunc(c.got.Files, c.want.Files, func(g, w manifest.File) bool { return g.Name == w.Name && g.Size == w.Size })
	switch {
	case sameBytes && sameNames && c.quick:
		c.report.checked(fmt.Sprintf("files: names and sizes of %d as pinned", len(c.want.Files)))
	case sameBytes && sameNames:
		c.report.checked(fmt.Sprintf("files: sha256 of %d as pinned", len(c.want.Files)))
	case sameBytes:
		var names []string
		for _, f := range c.want.Files {
			names = append(names, f.Name)
		}
		c.report.note("", "the files are those pinned under other names: "+nameList(names))
	case sameNames:
		for i, g := range c.got.Files {
			if w := c.want.Files[i]; g.SHA256 != w.SHA256 && !c.reported(g.Name) {
				c.report.find(KindDigest, g.Name, fmt.Sprintf("sha256 is %s, the pin says %s: bytes that belong to no tensor and no key differ, or their order", g.SHA256, w.SHA256))
			}
		}
	default:
		c.report.note("", fmt.Sprintf("%s, the pin is of %s: the same model cut or laid out another way", words.Count(len(c.got.Files), "file"), words.Group(len(c.want.Files))))
	}
}
