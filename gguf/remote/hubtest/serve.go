package hubtest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

func joinPath(dir, name string) string { return strings.TrimPrefix(path.Join(dir, name), "/") }

// serve answers one request.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.log = append(h.log, Request{r.Host, r.URL.Path, r.URL.RawQuery, r.Header.Get("Range"), r.Header.Get("Authorization"), r.Header.Get("Referer")})
	h.mu.Unlock()
	time.Sleep(h.Delay)
	if h.Fault != nil && h.Fault(w, r) {
		return
	}
	h.Answer(w, r)
}

// Answer answers as if there were no faults.
func (h *Hub) Answer(w http.ResponseWriter, r *http.Request) {
	escaped := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(escaped, "/store/"):
		h.serveStored(w, r)
	case strings.HasPrefix(escaped, "/plain/"):
		h.servePlain(w, r)
	case strings.HasPrefix(escaped, "/api/models/"):
		h.serveAPI(w, r, strings.Split(strings.TrimPrefix(escaped, "/api/models/"), "/"))
	default:
		h.serveResolve(w, r, strings.Split(strings.TrimPrefix(escaped, "/"), "/"))
	}
}

// Refuse answers as the hub does.
func Refuse(w http.ResponseWriter, code int, reason, words string) {
	if reason != "" {
		w.Header().Set("X-Error-Code", reason)
	}
	w.Header().Set("X-Error-Message", words)
	w.WriteHeader(code)
}

func unescape(parts []string) string {
	text, _ := url.PathUnescape(strings.Join(parts, "/"))
	return text
}

// repo returns the files of a repository.
func (h *Hub) repo(name string) map[string]*content {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repos[name]
}

func (h *Hub) serveAPI(w http.ResponseWriter, r *http.Request, parts []string) {
	if len(parts) < 4 {
		Refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return
	}
	files := h.repo(unescape(parts[:2]))
	revision := unescape(parts[3:4])
	switch {
	case files == nil:
		Refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case revision != h.Commit && revision != "main" && revision != "refs/pr/1":
		Refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
	case parts[2] == "revision":
		w.Header().Set("Content-Type", "application/json")
		json.MarshalWrite(w, map[string]any{"id": unescape(parts[:2]), "sha": h.Commit, "cardData": map[string]any{"license": h.License}})
	default:
		h.serveTree(w, r, files, unescape(parts[4:]))
	}
}

// serveTree answers with a page of the listing.
func (h *Hub) serveTree(w http.ResponseWriter, r *http.Request, files map[string]*content, dir string) {
	var list []map[string]any
	for _, name := range slices.Sorted(maps.Keys(files)) {
		rest, inside := strings.CutPrefix(name, dir+"/")
		if dir == "" {
			rest, inside = name, true
		}
		if !inside || strings.Contains(rest, "/") && r.URL.Query().Get("recursive") == "" {
			continue
		}
		f := files[name]
		e := map[string]any{"type": "file", "path": name, "size": f.size, "oid": gitName(name)}
		if f.large {
			e["lfs"] = map[string]any{"oid": f.sha256, "size": f.size, "pointerSize": 135}
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	end := len(list)
	if h.Page > 0 && from+h.Page < end {
		end = from + h.Page
		query := r.URL.Query()
		query.Set("cursor", strconv.Itoa(end))
		// As the hub does behind a mirror: with its own name.
		w.Header().Set("Link", fmt.Sprintf(`<https://huggingface.co%s?%s>; rel="next"`, r.URL.EscapedPath(), query.Encode()))
	}
	w.Header().Set("Content-Type", "application/json")
	json.MarshalWrite(w, list[min(from, end):end])
}

func gitName(name string) string {
	sum := sha1.Sum([]byte(name))
	return hex.EncodeToString(sum[:])
}

// serveResolve answers with the way to a file.
func (h *Hub) serveResolve(w http.ResponseWriter, r *http.Request, parts []string) {
	if len(parts) < 5 || parts[2] != "resolve" {
		http.NotFound(w, r)
		return
	}
	file := h.repo(unescape(parts[:2]))[unescape(parts[4:])]
	w.Header().Set("X-Repo-Commit", h.Commit)
	if file == nil {
		Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	w.Header().Set("X-Linked-Size", strconv.FormatInt(file.size, 10))
	w.Header().Set("X-Linked-Etag", strconv.Quote(file.sha256))
	w.Header().Set("RateLimit", `"resolvers";r=2999;t=12`)
	http.Redirect(w, r, h.Sign(file), http.StatusFound)
}

// Sign returns a fresh signed address of a file.
func (h *Hub) Sign(file *content) string {
	id := fmt.Sprintf("%d", h.serial.Add(1))
	s := &signed{file: file, ever: h.Life == 0}
	s.left.Store(h.Life)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signed[id] = s
	return h.scheme + "://" + h.store + "/store/" + file.sha256 + "?X-Amz-Expires=3600&X-Amz-Signature=" + Secret + id
}

// Secret begins every signature.
const Secret = "s3cr3t"

// serveStored answers with bytes, as the storage does.
func (h *Hub) serveStored(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "two ways of authorization", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	s := h.signed[strings.TrimPrefix(r.URL.Query().Get("X-Amz-Signature"), Secret)]
	h.mu.Unlock()
	if s == nil || !s.ever && s.left.Add(-1) < 0 {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
		return
	}
	w.Header().Set("ETag", storageTag(s.file))
	h.serveContent(w, r, s.file)
}

// servePlain answers as any server with files does: /plain/ and the path in a repository
// that is called plain/files.
func (h *Hub) servePlain(w http.ResponseWriter, r *http.Request) {
	file := h.repo("plain/files")[strings.TrimPrefix(r.URL.Path, "/plain/")]
	if file == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+file.sha256[:16]+`"`)
	h.serveContent(w, r, file)
}

func (h *Hub) serveContent(w http.ResponseWriter, r *http.Request, file *content) {
	out := &slowWriter{ResponseWriter: w, hub: h, begin: time.Now()}
	http.ServeContent(out, r, "", time.Time{}, io.NewSectionReader(file.r, 0, file.size))
}

// A slowWriter counts bytes and keeps to the rate.
type slowWriter struct {
	http.ResponseWriter
	hub   *Hub
	begin time.Time
	bytes int64
}

func (w *slowWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.hub.Written.Add(int64(n))
	if rate := w.hub.Rate; rate > 0 {
		time.Sleep(time.Until(w.begin.Add(time.Duration(float64(w.bytes) / rate * float64(time.Second)))))
	}
	return n, err
}
