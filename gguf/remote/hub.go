package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cenkalti/backoff/v5"

	"ggufreap/gguf/pattern"
)

// Bounds of what the hub may answer.
const (
	maxAnswer = 32 << 20 // bytes of one answer: a page has at most a thousand files
	maxPages  = 1000
	maxFiles  = 200_000
)

// Facts are what the hub states of a repository. Nothing of it was checked.
type Facts struct {
	Repo    string // OWNER/NAME; "" for a server that is not the hub
	Commit  string
	License string // "" where the hub names none
}

// An entry is what a listing says of one file.
type entry struct {
	Type string `json:"type"` // file or directory
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"` // git's name of the contents, or of the pointer to them
	LFS  *large `json:"lfs"`
	Xet  string `json:"xetHash"` // how the hub's storage names the contents
}

// A large file is one that Git LFS keeps.
type large struct {
	OID  string `json:"oid"` // SHA-256 of the contents
	Size int64  `json:"size"`
}

func (l *large) sha256() string { return strings.ToLower(strings.TrimPrefix(l.OID, "sha256:")) }

var sumPattern = pattern.Lazy(`^[0-9a-f]{64}$`)

// check refuses what a listing cannot truly say of a file.
func (e entry) check() error {
	name := scrub(path.Base(e.Path))
	switch {
	case e.Size < 0 || e.LFS != nil && e.LFS.Size < 0:
		return fmt.Errorf("the hub lists %q as a file of %d bytes", name, min(e.Size, 0))
	case e.LFS != nil && !sumPattern().MatchString(e.LFS.sha256()):
		return fmt.Errorf("the hub lists %q with the sha256 %q, which is none", name, scrub(e.LFS.OID))
	}
	return nil
}

// revision asks which commit a revision is, and what else the hub says of it.
func (c *Client) revision(a *address) (Facts, error) {
	var answer struct {
		SHA      string   `json:"sha"`
		Tags     []string `json:"tags"`
		CardData struct {
			License any `json:"license"`
		} `json:"cardData"`
	}
	revision := a.revision
	if revision == "" {
		revision = defaultRevision
	}
	if _, err := c.ask(a, c.at(a.api()+"/revision/"+url.PathEscape(revision)), &answer); err != nil {
		return Facts{}, err
	}
	if !commitPattern().MatchString(answer.SHA) {
		return Facts{}, fmt.Errorf("%s: the hub names no commit: %q", a, scrub(answer.SHA))
	}
	facts := Facts{Repo: a.repo, Commit: answer.SHA}
	facts.License, _ = answer.CardData.License.(string)
	for _, tag := range answer.Tags {
		if name, ok := strings.CutPrefix(tag, "license:"); ok && facts.License == "" {
			facts.License = name
		}
	}
	facts.License = scrub(facts.License)
	return facts, nil
}

var commitPattern = pattern.Lazy(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// at returns an address of the hub; the path is encoded.
func (c *Client) at(escaped string) *url.URL {
	u := *c.endpoint
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + escaped
	u.Path, _ = url.PathUnescape(u.RawPath) // what was encoded here decodes
	return &u
}

// list asks for all files below a folder of the repository, "" for all of it.
func (c *Client) list(a *address, commit, dir string, below bool) ([]entry, error) {
	where := a.api() + "/tree/" + url.PathEscape(commit)
	if dir != "" {
		where += "/" + escapePath(dir)
	}
	u := c.at(where)
	if below {
		u.RawQuery = "recursive=true"
	}
	var files []entry
	seen := map[string]bool{}
	for range maxPages {
		var page []entry
		header, err := c.ask(a, u, &page)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Type == "file" && fs.ValidPath(e.Path) {
				files = append(files, e)
			}
		}
		seen[u.String()] = true
		if u, err = c.nextPage(u, header); u == nil || err != nil {
			return files, err
		}
		if seen[u.String()] || len(files) > maxFiles {
			break
		}
	}
	return nil, fmt.Errorf("%s: the hub's listing has no end", a)
}

var nextLink = pattern.Lazy(`<([^<>]*)>\s*;[^,]*\brel="?next"?`)

// nextPage reads the address of the following page from the header. Mirrors send that of
// the hub they copy: the page is asked for where the first one came from.
func (c *Client) nextPage(from *url.URL, h http.Header) (*url.URL, error) {
	link := nextLink().FindStringSubmatch(strings.Join(h.Values("Link"), ", "))
	if link == nil {
		return nil, nil
	}
	next, err := from.Parse(link[1])
	if err != nil || next.Path == "" {
		return nil, errors.New("the hub's listing goes on at no address")
	}
	next.Scheme, next.Host, next.User = from.Scheme, from.Host, nil
	return next, nil
}

// ask makes a request of the hub's API and decodes the answer, which is JSON.
func (c *Client) ask(a *address, u *url.URL, answer any) (http.Header, error) {
	var header http.Header
	err := c.retry(c.ctx, func() error {
		ctx, watch := c.watched(c.ctx)
		defer watch.stop()
		resp, at, err := c.follow(ctx, u, http.Header{"Accept": {"application/json"}}, func(from *url.URL, resp *http.Response) error {
			if next, err := from.Parse(resp.Header.Get("Location")); err == nil && !strings.EqualFold(next.Host, from.Host) {
				return backoff.Permanent(fmt.Errorf("%s: the hub sends its listing to another host, %s: not followed", a, next.Host))
			}
			return nil
		})
		if err != nil {
			return cause(ctx, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return c.refuse(a, resp)
		}
		header = resp.Header
		return c.decode(ctx, watch, a, at, resp.Body, answer)
	})
	if err != nil && !strings.HasPrefix(err.Error(), a.String()) {
		if _, access := errors.AsType[*AccessError](err); !access {
			err = fmt.Errorf("%s: %w", a, err)
		}
	}
	return header, err
}

// decode reads one answer of the API.
func (c *Client) decode(ctx context.Context, watch *watch, a *address, at *url.URL, body io.Reader, answer any) error {
	var text bytes.Buffer
	_, err := io.Copy(&text, io.LimitReader(watchedBody{body, watch}, maxAnswer+1))
	switch {
	case err != nil:
		return cause(ctx, err)
	case text.Len() > maxAnswer:
		return backoff.Permanent(fmt.Errorf("%s: the hub answers with more than %d bytes", a, maxAnswer))
	}
	if err := json.Unmarshal(text.Bytes(), answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return backoff.Permanent(fmt.Errorf("%s: %s does not answer as the hub does: %w", a, at.Host, err))
	}
	return nil
}

// A watchedBody counts what comes.
type watchedBody struct {
	io.Reader
	watch *watch
}

func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.watch.bytes.Add(int64(n))
	return n, err
}

// refuse says what an answer of the API without a listing means.
func (c *Client) refuse(a *address, resp *http.Response) error {
	status := statusError(resp)
	if temporary(status.Code) {
		return later(status, resp.Header, clock(resp.Header))
	}
	return backoff.Permanent(c.explain(a, status))
}

// explain turns the hub's refusals into words.
func (c *Client) explain(a *address, e *StatusError) error {
	token := c.sendsToken(c.endpoint)
	switch {
	case e.Code == http.StatusUnauthorized && strings.Contains(e.Words, "Invalid credentials"):
		return fmt.Errorf("%s: the hub does not know this token: %w", a, e)
	case e.Reason == "GatedRepo":
		return &AccessError{Repo: a.place(), Gated: true, Token: token, err: e}
	case e.Reason == "RevisionNotFound":
		revision := a.revision
		if revision == "" {
			revision = defaultRevision
		}
		return fmt.Errorf("%s: has no revision %q: %w", a.place(), revision, e)
	case e.Reason == "EntryNotFound":
		return fmt.Errorf("%s: is not in the repository: %w", a, e)
	case e.Reason == "RepoNotFound", e.Code == http.StatusUnauthorized:
		return &AccessError{Repo: a.place(), Token: token, err: e}
	case e.Code == http.StatusForbidden && token:
		return fmt.Errorf("%s: the token has no right to read this: %w", a, e)
	}
	return e
}

// place names the repository.
func (a *address) place() string {
	return (&address{kind: a.kind, repo: a.repo}).String()
}

// explain turns a refusal of a file into words.
func (f *Folder) explain(e *StatusError) error { return f.client.explain(f.hub, e) }

// modelFolder settles in which folder of a repository the model is that an address names:
// the only one that has models. What is named as files are that go beside a model does not
// count, unless there is nothing else.
func modelFolder(a *address, files []entry) (string, error) {
	if models := slices.DeleteFunc(slices.Clone(files), func(e entry) bool { return !isModel(e.Path) || isBeside(e.Path) }); len(models) > 0 {
		files = models
	}
	var folders []string
	seen := map[string]bool{}
	for _, e := range files {
		if dir := path.Dir(e.Path); isModel(e.Path) && !seen[dir] {
			seen[dir] = true
			folders = append(folders, dir)
		}
	}
	top := a.path
	if top == "" {
		top = "."
	}
	switch {
	case seen[top]:
		return top, nil
	case len(folders) == 1:
		return folders[0], nil
	case len(folders) == 0:
		return "", fmt.Errorf("%s: no .gguf file there%s", a, inPieces(files))
	}
	return "", fmt.Errorf("%s: models are in several folders, name one of them: %s", a, scrub(someOf(folders)))
}

// inPieces says of a listing without models that one lies there in pieces, as hosts once wanted:
// a header and experts are not where the numbers in it say.
func inPieces(files []entry) string {
	var pieces []string
	for _, e := range files {
		if piecePattern().MatchString(path.Base(e.Path)) {
			pieces = append(pieces, e.Path)
		}
	}
	if len(pieces) == 0 {
		return ""
	}
	return fmt.Sprintf(", but what looks like pieces of one, %s: %s", scrub(someOf(pieces)), joinedHere)
}

const joinedHere = "a model in pieces is read once they are on this machine: download them all and name their folder"

// piecePattern is what follows the name of a model in those of its pieces.
var piecePattern = pattern.Lazy(`(?i)\.gguf[ ._-]*\(?(?:(?:part|split)[ ._-]?[a-z]{1,3}|(?:part|split)?[ ._-]?(?:[0-9]{1,4}|a[a-z])|part[ ._-]?[0-9]+[ ._-]?of[ ._-]?[0-9]+)\)?$`)

// isPiece reports whether an address names a piece. On another server a number alone may be part
// of the name of a whole file.
func (a *address) isPiece() bool {
	if a.kind != "" {
		return piecePattern().MatchString(path.Base(a.path))
	}
	name := strings.ToLower(path.Base(a.url.Path))
	return piecePattern().MatchString(name) && (strings.Contains(name, "part") || strings.Contains(name, "split"))
}

// someOf joins a few names for a message.
func someOf(names []string) string {
	const most = 8
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}

// isBeside reports whether a file is named as llama.cpp's converters and tools name projectors
// and importance matrices.
func isBeside(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasPrefix(base, "mmproj") || strings.HasPrefix(base, "imatrix")
}

// isModel reports whether a file may be a model by its name.
func isModel(name string) bool {
	base := path.Base(name)
	return strings.EqualFold(path.Ext(base), ".gguf") && !strings.HasPrefix(base, ".")
}
