package lists

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
	"ggufreap/manifest"
)

// Bounds on a tree listing. One page of the hub has at most 1000 entries.
const (
	maxTreeBytes   = 64 << 20
	maxTreeEntries = 200_000
	maxTreeEntry   = 1 << 20 // bytes of one; those of the hub have less than a thousand
)

// A Tree is a listing of a repository's files as the Hugging Face hub answers
// GET /api/models/REPO/tree/REVISION?recursive=true: a JSON list of entries, or several
// such lists one after the other when the answer came in pages. It names neither the
// repository nor the revision.
type Tree []TreeFile

// A TreeFile is one file of a Tree. Its git object name and its Xet hash are not kept:
// the one is a SHA-1 over the file or its pointer with a header before it, the other the
// root of a tree of chunks, and neither is a hash of the file's bytes.
type TreeFile struct {
	Path string
	Size int64 // bytes
	// SHA256 is that of the content, which the hub tells of files in large-file storage
	// only; nil for others.
	SHA256 *manifest.Sum
}

// ReadTree reads a tree listing. Members that it does not know are passed over; one that
// comes twice in an object, a path that leaves the repository or comes twice, a content
// hash that is no SHA-256 and sizes that contradict each other are errors.
func ReadTree(r io.Reader) (Tree, error) {
	limited := &io.LimitedReader{R: r, N: maxTreeBytes + 1}
	entry := &io.LimitedReader{R: limited}
	t := treeReader{entry: entry, json: jsontext.NewDecoder(entry), seen: map[string]bool{}}
	err := t.pages()
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("tree listing: more than %d bytes", maxTreeBytes)
	case err != nil && entry.N == 0:
		return nil, fmt.Errorf("tree listing: entry %d has more than %d bytes", t.entries, maxTreeEntry)
	case err != nil:
		return nil, fmt.Errorf("tree listing: %w", err)
	case len(t.files) == 0:
		return nil, errors.New("tree listing: it lists no files")
	}
	return t.files, nil
}

type treeReader struct {
	entry   *io.LimitedReader // what may be read for one entry
	json    *jsontext.Decoder
	entries int
	files   Tree
	seen    map[string]bool
}

// pages reads lists until the document ends.
func (t *treeReader) pages() error {
	for {
		t.entry.N = maxTreeEntry
		begin, err := t.json.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return jsondoc.ReadError(err)
		}
		if begin.Kind() != '[' {
			return fmt.Errorf("want a list of entries, got %v", begin)
		}
		for t.json.PeekKind() != ']' {
			if t.entries++; t.entries > maxTreeEntries {
				return fmt.Errorf("more than %d entries", maxTreeEntries)
			}
			t.entry.N = maxTreeEntry
			if err := t.readEntry(); err != nil {
				return fmt.Errorf("entry %d: %w", t.entries, err)
			}
		}
		if _, err := t.json.ReadToken(); err != nil {
			return jsondoc.ReadError(err)
		}
	}
}

// A treeEntry is a file or folder as the hub tells it. Fields are nil where it does not.
type treeEntry struct {
	Type *string `json:"type"`
	Path *string `json:"path"`
	Size *int64  `json:"size"`
	LFS  *struct {
		OID  *string `json:"oid"`
		Size *int64  `json:"size"`
	} `json:"lfs"`
}

func (t *treeReader) readEntry() error {
	var e treeEntry
	if err := json.UnmarshalDecode(t.json, &e); err != nil {
		return jsondoc.ReadError(err)
	}
	switch {
	case e.Type == nil:
		return errMissing("type")
	case e.Path == nil:
		return errMissing("path")
	case *e.Type == "directory":
		return nil
	case *e.Type != "file":
		return fmt.Errorf("type is %q, want file or directory", *e.Type)
	}
	if err := manifest.CheckFileName(*e.Path); err != nil {
		return err
	}
	if t.seen[*e.Path] {
		return fmt.Errorf("path %q comes twice", *e.Path)
	}
	t.seen[*e.Path] = true
	f, err := e.file()
	if err != nil {
		return fmt.Errorf("path %q: %w", *e.Path, err)
	}
	t.files = append(t.files, f)
	return nil
}

func errMissing(member string) error { return fmt.Errorf("member %q is missing", member) }

// file returns what is told of a file.
func (e *treeEntry) file() (TreeFile, error) {
	f := TreeFile{Path: *e.Path}
	if e.Size == nil {
		return f, errMissing("size")
	}
	f.Size = *e.Size
	lfs := e.LFS
	switch {
	case f.Size < 0:
		return f, fmt.Errorf("size is %d", f.Size)
	case lfs == nil:
		return f, nil
	case lfs.OID == nil:
		return f, fmt.Errorf("lfs: %w", errMissing("oid"))
	case lfs.Size != nil && *lfs.Size != f.Size:
		return f, fmt.Errorf("size is %d, lfs.size is %d", f.Size, *lfs.Size)
	}
	sum, err := manifest.ParseSum(*lfs.OID)
	if err != nil {
		return f, fmt.Errorf("lfs.oid: %w", err)
	}
	f.SHA256 = &sum
	return f, nil
}
