package remote

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// IsAddress reports whether s names something to be fetched, and not a path.
func IsAddress(s string) bool {
	for _, scheme := range []string{"hf://", "https://", "http://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}

// An address is a place on the hub, or that of a file on another server.
type address struct {
	kind     string // models, datasets or spaces; "" for another server
	repo     string // OWNER/NAME
	revision string // "" for the default one
	path     string // in the repository; "" for all of it

	url *url.URL // on another server
}

// defaultRevision is the branch that is meant where none is named.
const defaultRevision = "main"

// parse reads hf://[KIND/]OWNER/REPO[@REVISION][/PATH], the web addresses of the hub that
// people paste, and addresses of files on other servers.
func (c *Client) parse(s string) (*address, error) {
	scheme, rest, _ := strings.Cut(s, "://")
	if strings.EqualFold(scheme, "hf") {
		return parseHub(rest)
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not an address", bare(s))
	}
	u.Scheme, u.Fragment = strings.ToLower(u.Scheme), ""
	if !c.isHub(u) {
		if name := path.Base(u.Path); name == "/" || name == "." || strings.HasSuffix(u.Path, "/") {
			return nil, fmt.Errorf("%s: names no file; a server that is not the hub cannot be asked what it has: give the address of a file, of a split model that of any shard", show(u))
		}
		return &address{url: u}, nil
	}
	return parseWeb(u)
}

// isHub reports whether an address leads to the hub's pages.
func (c *Client) isHub(u *url.URL) bool {
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+port) // what is meant without one
	}
	return strings.EqualFold(u.Host, c.endpoint.Host) || host == strings.ToLower(c.endpoint.Host) || host == "huggingface.co" || host == "www.huggingface.co" || host == "hf.co"
}

// kinds are the repositories' kinds, as they begin addresses; models have none there.
var kinds = map[string]bool{"models": true, "datasets": true, "spaces": true}

func parseHub(s string) (*address, error) {
	parts := strings.Split(strings.TrimSuffix(s, "/"), "/")
	a := &address{kind: "models"}
	if kinds[parts[0]] {
		a.kind, parts = parts[0], parts[1:]
	}
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return nil, fmt.Errorf("hf://%s: want hf://OWNER/REPO[@REVISION][/PATH]", s)
	}
	name, revision, at := strings.Cut(parts[1], "@")
	a.repo, parts = parts[0]+"/"+name, parts[2:]
	if at {
		if parts = append([]string{revision}, parts...); revision == "" {
			return nil, fmt.Errorf("hf://%s: the revision after @ is empty", s)
		}
		a.revision, parts = takeRevision(parts)
		if decoded, err := url.PathUnescape(a.revision); err == nil {
			a.revision = decoded
		}
	}
	a.path = strings.Join(parts, "/")
	return a, a.check()
}

// takeRevision takes a revision off the front: some have slashes.
func takeRevision(parts []string) (string, []string) {
	if len(parts) >= 3 && parts[0] == "refs" && (parts[1] == "pr" || parts[1] == "convert") {
		return strings.Join(parts[:3], "/"), parts[3:]
	}
	return parts[0], parts[1:]
}

// parseWeb reads https://HUB/[KIND/]OWNER/REPO[/(blob|resolve|...)/REVISION[/PATH]].
func parseWeb(u *url.URL) (*address, error) {
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not well encoded", show(u), part)
		}
		parts = append(parts, decoded)
	}
	a := &address{kind: "models"}
	if kinds[parts[0]] {
		a.kind, parts = parts[0], parts[1:]
	}
	if len(parts) < 2 || parts[0] == "" {
		return nil, fmt.Errorf("%s: names no repository: want https://HOST/OWNER/REPO, with or without /resolve/REVISION/PATH", show(u))
	}
	a.repo, parts = parts[0]+"/"+parts[1], parts[2:]
	if len(parts) == 0 {
		return a, a.check()
	}
	switch parts[0] {
	case "blob", "resolve", "tree", "raw", "blame":
	default:
		return nil, fmt.Errorf("%s: %q is no page of files: want /resolve/, /blob/ or /tree/ with a revision", show(u), parts[0])
	}
	if len(parts) < 2 {
		return nil, fmt.Errorf("%s: names no revision after /%s/", show(u), parts[0])
	}
	a.revision, parts = takeRevision(parts[1:])
	a.path = strings.Join(parts, "/")
	return a, a.check()
}

// check refuses what would lead elsewhere when it is put into an address.
func (a *address) check() error {
	if !fs.ValidPath(a.repo) || a.path != "" && !fs.ValidPath(a.path) || strings.ContainsAny(a.repo, "?#%\\") {
		return fmt.Errorf("%s: is not a place in a repository", a)
	}
	for part := range strings.SplitSeq(a.revision, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("%s: %q is not a revision", a, a.revision)
		}
	}
	return nil
}

// String returns the address as it is shown, in the form that can be typed.
func (a *address) String() string {
	if a.kind == "" {
		return show(a.url)
	}
	s := "hf://"
	if a.kind != "models" {
		s += a.kind + "/"
	}
	s += a.repo
	if a.revision != "" {
		s += "@" + strings.ReplaceAll(a.revision, "/", "%2F")
	}
	if a.path != "" {
		s += "/" + a.path
	}
	return s
}

// api is the path of the hub's API for the repository.
func (a *address) api() string { return "/api/" + a.kind + "/" + escapePath(a.repo) }

// resolve is the path under which the hub serves a file.
func (a *address) resolve(commit, file string) string {
	prefix := "/"
	if a.kind != "models" {
		prefix += a.kind + "/"
	}
	return prefix + escapePath(a.repo) + "/resolve/" + url.PathEscape(commit) + "/" + escapePath(file)
}

// escapePath encodes each part of a path.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// show returns an address without user, password, query and fragment, its path as people
// read it.
func show(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// Redacted returns an address that can be shown: without user and password, and with the
// word SIGNATURE in place of a query.
func Redacted(s string) string {
	shown := bare(s)
	if scheme, _, _ := strings.Cut(s, "://"); !strings.EqualFold(scheme, "hf") && strings.Contains(s, "?") {
		shown += "?SIGNATURE"
	} else if strings.EqualFold(scheme, "hf") {
		return s
	}
	return shown
}

// bare cuts what may be secret off a text that may be an address.
func bare(s string) string {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		host, tail, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			s = scheme + "://" + host[at+1:] + "/" + tail
		}
	}
	return s
}
