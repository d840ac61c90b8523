package stage

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
)

// A Fact names a thing by its digest, such as the plan that a release is made by.
type Fact = parts.Fact

// newHead describes a release and what it is made from, sources being the files' state.
func newHead(r Release, o Options, sources []fs.FileInfo) (*journalHead, error) {
	h := &journalHead{Schema: journalSchema, Origin: r.Origin}
	for i, info := range sources {
		h.Sources = append(h.Sources, journalSource{Name: jsonText(filepath.Base(o.Sources[i])), Size: info.Size(), Modified: info.ModTime().UTC().Format(time.RFC3339Nano)})
	}
	for _, far := range o.Far {
		h.Sources = append(h.Sources, journalSource{Name: jsonText(far.Name), Size: far.Size, Identity: jsonText(far.Identity)})
	}
	for _, name := range r.Documents {
		h.Documents = append(h.Documents, jsonText(name))
	}
	files := map[io.ReaderAt]int{}
	for i, shard := range r.Layout.Shards {
		header := blake3.New()
		if _, err := gguf.NewWriter(header, shard); err != nil {
			return nil, err
		}
		h.Shards = append(h.Shards, journalShard{
			Name:   jsonText(r.shardName(i)),
			Size:   shard.Size,
			Header: manifest.Sum(header.Sum(nil)),
			Ranges: sumRanges(shard, files),
		})
	}
	return h, nil
}

// jsonText returns a name as JSON can hold it. Names that differ only in bytes that are
// no text are told apart by what else the journal says.
func jsonText(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// sumRanges takes the digest of the source ranges of a shard, in order. Files are
// numbered as they first appear in the release.
func sumRanges(shard *gguf.ShardLayout, files map[io.ReaderAt]int) manifest.Sum {
	h := blake3.New()
	for _, v := range shard.Views {
		for _, e := range v.Extents {
			file := originOf(e.Source)
			number, ok := files[file]
			if !ok {
				number = len(files)
				files[file] = number
			}
			fmt.Fprintf(h, "%d\t%d\t%d\n", number, e.Offset, e.Length)
		}
	}
	return manifest.Sum(h.Sum(nil))
}

// originOf returns the file behind a source that stands between it and its readers, as that
// of a [manifest.Recorder] does.
func originOf(source io.ReaderAt) io.ReaderAt {
	if between, ok := source.(interface{ Origin() io.ReaderAt }); ok {
		return between.Origin()
	}
	return source
}

// difference says in what this release is another than was, or "".
func (h *journalHead) difference(was *journalHead) string {
	return cmp.Or(
		differentSources(h.Sources, was.Sources),
		differentOrigin(h.Origin, was.Origin),
		differentShards(h.Shards, was.Shards),
		differentDocuments(h.Documents, was.Documents),
	)
}

func differentSources(is, was []journalSource) string {
	if len(is) != len(was) {
		return fmt.Sprintf("the source has %s, it had %s", words.Count(len(is), "file"), words.Group(len(was)))
	}
	for i, f := range is {
		switch w := was[i]; {
		case f.Name != w.Name:
			return fmt.Sprintf("source file %d is %q, it was %q", i+1, f.Name, w.Name)
		case f.Size != w.Size:
			return fmt.Sprintf("source file %q has %d bytes, it had %d", f.Name, f.Size, w.Size)
		case f.Identity != w.Identity:
			return fmt.Sprintf("source file %q is %s, it was %s", f.Name, identityText(f), identityText(w))
		case f.Modified != w.Modified:
			return fmt.Sprintf("source file %q was modified at %s, it was at %s", f.Name, f.Modified, w.Modified)
		}
	}
	return ""
}

// identityText says which file a source is.
func identityText(f journalSource) string {
	if f.Identity == "" {
		return "a file of this machine"
	}
	return f.Identity
}

func differentOrigin(is, was []Fact) string {
	const another = "this is another command: the unfinished run had "
	switch {
	case len(was) > len(is):
		return another + "a " + was[0].Name
	case len(was) < len(is):
		return another + "no " + is[0].Name
	}
	for i, f := range is {
		switch w := was[i]; {
		case f.Name != w.Name:
			return fmt.Sprintf("it is made from a %s, it was from a %s", f.Name, w.Name)
		case f.Digest != w.Digest:
			return fmt.Sprintf("the %s is %s, it was %s", f.Name, f.Digest, w.Digest)
		}
	}
	return ""
}

func differentShards(is, was []journalShard) string {
	if len(is) != len(was) {
		return fmt.Sprintf("it has %s, it had %s", words.Count(len(is), "shard"), words.Group(len(was)))
	}
	for i, s := range is {
		switch w := was[i]; {
		case s.Name != w.Name:
			return fmt.Sprintf("shard %d is %q, it was %q", i+1, s.Name, w.Name)
		case s.Size != w.Size:
			return fmt.Sprintf("shard %q has %d bytes, it had %d", s.Name, s.Size, w.Size)
		case s.Header != w.Header:
			return fmt.Sprintf("shard %q has other metadata or another tensor table than it had", s.Name)
		case s.Ranges != w.Ranges:
			return fmt.Sprintf("shard %q is made of other source ranges than it was", s.Name)
		}
	}
	return ""
}

func differentDocuments(is, was []string) string {
	if len(is) != len(was) {
		return fmt.Sprintf("it has %d documents, it had %d", len(is), len(was))
	}
	for i, name := range is {
		if name != was[i] {
			return fmt.Sprintf("document %d is %q, it was %q", i+1, name, was[i])
		}
	}
	return ""
}
