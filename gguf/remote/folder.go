package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Folder is the place of a file that has an address, and of those beside it: a folder of
// a repository on the hub, or the part of another server's address before the last slash.
type Folder struct {
	client *Client
	name   string // as it is shown

	hub   *address // nil for another server
	dir   string   // in the repository; "." for its top
	facts Facts
	files map[string]entry // of the repository's folder, by base name

	url *url.URL // on another server, of the file that was named

	mu    sync.Mutex
	known map[string]*File // asked for already
}

// Open finds what an address names: hf://OWNER/REPO[@REVISION][/PATH], a page of the hub, or
// the http or https address of a file. It returns the folder and the file's name in it, ""
// where the address names the folder. Of the hub it asks which commit the revision is, and
// what that holds; the files are those of that commit from then on.
func (c *Client) Open(s string) (*Folder, string, error) {
	a, err := c.parse(s)
	if err != nil {
		return nil, "", err
	}
	if a.isPiece() {
		return nil, "", fmt.Errorf("%s: is named like a piece of a model: %s", a, joinedHere)
	}
	if a.kind == "" {
		name, err := lastName(a.url)
		if err != nil {
			return nil, "", err
		}
		shown := *a.url
		shown.Path = strings.TrimSuffix(a.url.Path, name)
		return &Folder{client: c, name: show(&shown), url: a.url, known: map[string]*File{}}, name, nil
	}
	return c.openHub(a)
}

// lastName returns the decoded last part of an address.
func lastName(u *url.URL) (string, error) {
	escaped := u.EscapedPath()
	name, err := url.PathUnescape(escaped[strings.LastIndexByte(escaped, '/')+1:])
	if err != nil || !plainName(name) {
		return "", fmt.Errorf("%s: does not end in a file name", show(u))
	}
	return name, nil
}

// plainName reports whether a name is that of a file in a folder, and leads nowhere else.
func plainName(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, `/\`)
}

func (c *Client) openHub(a *address) (*Folder, string, error) {
	facts, err := c.revision(a)
	if err != nil {
		return nil, "", err
	}
	name, dir := "", a.path
	if isModel(a.path) {
		if name, dir = path.Base(a.path), path.Dir(a.path); dir == "." {
			dir = ""
		}
	}
	files, err := c.list(a, facts.Commit, dir, name == "")
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		if dir, err = modelFolder(a, files); err != nil {
			return nil, "", err
		}
	}
	pinned := &address{kind: a.kind, repo: a.repo, revision: facts.Commit, path: strings.TrimPrefix(dir, ".")}
	f := &Folder{client: c, name: pinned.String() + "/", hub: a, dir: path.Clean(dir), facts: facts, files: map[string]entry{}, known: map[string]*File{}}
	for _, e := range files {
		base := path.Base(e.Path)
		if path.Dir(e.Path) != f.dir || !plainName(base) {
			continue
		}
		if err := e.check(); err != nil {
			return nil, "", fmt.Errorf("%s: %w", a, err)
		}
		if _, twice := f.files[base]; twice {
			return nil, "", fmt.Errorf("%s: the hub lists %q twice", a, scrub(base))
		}
		f.files[base] = e
	}
	if _, there := f.files[name]; name != "" && !there {
		return nil, "", fmt.Errorf("%s: is not in the repository at commit %s: %w", a, facts.Commit, fs.ErrNotExist)
	}
	return f, name, nil
}

// Name returns the address of the folder as it is shown.
func (f *Folder) Name() string { return f.name }

// Facts returns what the hub states; nothing for another server.
func (f *Folder) Facts() Facts { return f.facts }

// Names lists the files, sorted. A server that is not the hub cannot be asked:
// [errors.ErrUnsupported].
func (f *Folder) Names() ([]string, error) {
	if f.hub == nil {
		return nil, fmt.Errorf("%s: a server that is not the hub has no listing: %w", f.name, errors.ErrUnsupported)
	}
	var names []string
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Identities returns what the hub's listing states of the files, sorted by name.
func (f *Folder) Identities() ([]Identity, error) {
	names, err := f.Names()
	if err != nil {
		return nil, err
	}
	list := make([]Identity, len(names))
	for i, name := range names {
		list[i] = f.identity(name)
	}
	return list, nil
}

func (f *Folder) identity(name string) Identity {
	e := f.files[name]
	id := Identity{Name: name, Size: e.Size, Repo: f.facts.Repo, Commit: f.facts.Commit, Path: e.Path, ETag: e.OID}
	switch {
	case e.LFS != nil:
		id.SHA256, id.Size, id.ETag = e.LFS.sha256(), e.LFS.Size, ""
	case e.Xet != "":
		id.ETag = "" // git's name is then that of a pointer
	}
	return id
}

// front is how much of a file is asked for to learn its size, where no listing tells it.
const front = 512

// Open returns a file of the folder. That there is none is an [fs.ErrNotExist]. Of a server
// that is not the hub it asks for the first bytes, to learn the size.
func (f *Folder) Open(name string) (*File, error) {
	f.mu.Lock()
	known := f.known[name]
	f.mu.Unlock()
	if known != nil {
		return known, nil
	}
	file, err := f.open(name)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", f.name, name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[name] = file
	return file, nil
}

func (f *Folder) open(name string) (*File, error) {
	if !plainName(name) {
		return nil, fmt.Errorf("is not a file name")
	}
	file := &File{client: f.client, name: f.name + name}
	if f.hub != nil {
		e, there := f.files[name]
		if !there {
			return nil, fs.ErrNotExist
		}
		file.hub, file.id = f, f.identity(name)
		file.origin = f.client.at(f.hub.resolve(f.facts.Commit, e.Path))
		return file, nil
	}
	u := *f.url
	escaped := u.EscapedPath()
	u.RawPath = escaped[:strings.LastIndexByte(escaped, '/')+1] + url.PathEscape(name)
	if own, _ := lastName(f.url); own == name {
		u.RawPath = escaped
	}
	u.Path, _ = url.PathUnescape(u.RawPath)
	file.origin, file.id = &u, Identity{Name: name, Size: -1}
	return file, file.learn(f.client.ctx)
}

// learn finds out the size of a file, and keeps the bytes that come with it.
func (f *File) learn(ctx context.Context) error {
	first := &slice{make([]byte, front), 0}
	if err := f.fetch(ctx, 0, front, first); err != nil {
		return err
	}
	f.front = first.p[:first.n]
	return nil
}
