package lists

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ggufreap/manifest"
)

// Bounds on a tree listing. One page of the hub has at most 1000 entries.
const (
	maxTreeBytes   = 64 << 20
	maxTreeEntries = 200_000
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
	t := treeReader{json: json.NewDecoder(limited), seen: map[string]bool{}}
	err := t.pages()
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("tree listing: more than %d bytes", maxTreeBytes)
	case err != nil:
		return nil, fmt.Errorf("tree listing: %w", err)
	case len(t.files) == 0:
		return nil, errors.New("tree listing: it lists no files")
	}
	return t.files, nil
}

type treeReader struct {
	json    *json.Decoder
	entries int
	files   Tree
	seen    map[string]bool
}

// pages reads lists until the document ends.
func (t *treeReader) pages() error {
	for {
		token, err := t.json.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if token != json.Delim('[') {
			return fmt.Errorf("want a list of entries, got %v", token)
		}
		for t.json.More() {
			if t.entries++; t.entries > maxTreeEntries {
				return fmt.Errorf("more than %d entries", maxTreeEntries)
			}
			if err := t.entry(); err != nil {
				return fmt.Errorf("entry %d: %w", t.entries, err)
			}
		}
		if _, err := t.json.Token(); err != nil {
			return err
		}
	}
}

// entry reads one file or folder.
func (t *treeReader) entry() error {
	members, err := objectMembers(t.json)
	if err != nil {
		return err
	}
	var kind, path string
	if err := errors.Join(takeMember(members, "type", &kind), takeMember(members, "path", &path)); err != nil {
		return err
	}
	if kind == "directory" {
		return nil
	}
	if kind != "file" {
		return fmt.Errorf("type is %q, want file or directory", kind)
	}
	if err := manifest.CheckFileName(path); err != nil {
		return err
	}
	if t.seen[path] {
		return fmt.Errorf("path %q comes twice", path)
	}
	t.seen[path] = true
	f := TreeFile{Path: path}
	if err := takeMember(members, "size", &f.Size); err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	if err := f.readLFS(members["lfs"]); err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	t.files = append(t.files, f)
	return nil
}

// readLFS reads what is said of a file in large-file storage.
func (f *TreeFile) readLFS(raw json.RawMessage) error {
	if f.Size < 0 {
		return fmt.Errorf("size is %d", f.Size)
	}
	if raw == nil || string(raw) == "null" {
		return nil
	}
	members, err := objectMembers(json.NewDecoder(strings.NewReader(string(raw))))
	if err != nil {
		return fmt.Errorf("lfs: %w", err)
	}
	var oid string
	size := f.Size
	if err := takeMember(members, "oid", &oid); err != nil {
		return fmt.Errorf("lfs: %w", err)
	}
	if members["size"] != nil {
		if err := takeMember(members, "size", &size); err != nil {
			return fmt.Errorf("lfs: %w", err)
		}
	}
	if size != f.Size {
		return fmt.Errorf("size is %d, lfs.size is %d", f.Size, size)
	}
	sum, err := manifest.ParseSum(oid)
	if err != nil {
		return fmt.Errorf("lfs.oid: %w", err)
	}
	f.SHA256 = &sum
	return nil
}

// objectMembers reads an object whose members must have different names.
func objectMembers(d *json.Decoder) (map[string]json.RawMessage, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if token != json.Delim('{') {
		return nil, fmt.Errorf("want an object, got %v", token)
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // what else stands before a colon is an error of Token
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("member %q comes twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		members[name] = raw
	}
	_, err = d.Token()
	return members, err
}

// takeMember decodes a member that must be there.
func takeMember(members map[string]json.RawMessage, name string, into any) error {
	raw, ok := members[name]
	if !ok || string(raw) == "null" {
		return fmt.Errorf("member %q is missing", name)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	return nil
}
