package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ggufreap/gguf/remote/hubtest"
)

// listing answers the hub's question for a listing with these lines, and everything else rightly.
func listing(h *hubtest.Hub, lines string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/tree/") {
			return false
		}
		io.WriteString(w, lines)
		return true
	}
}

// TestListingsThatLie opens repositories whose listings cannot be true.
func TestListingsThatLie(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	entry := func(path, oid string, size int64) string {
		return fmt.Sprintf(`{"type":"file","path":%q,"size":%d,"oid":"c0ffee","lfs":{"oid":%q,"size":%d}}`, path, size, oid, size)
	}
	for name, tc := range map[string]struct{ lines, want string }{
		"a file twice":       {"[" + entry(fileName, sum, 5) + "," + entry(fileName, strings.Repeat("cd", 32), 5) + "]", "twice"},
		"a negative size":    {"[" + entry(fileName, sum, -1) + "]", "of -1 bytes"},
		"a short sum":        {"[" + entry(fileName, "abcd", 5) + "]", `with the sha256 "abcd"`},
		"a sum of secrets":   {"[" + entry(fileName, "hf_abcdefghijk", 5) + "]", "with the sha256"},
		"no sum":             {"[" + entry(fileName, "", 5) + "]", "with the sha256"},
		"an endless path":    {"[" + entry(strings.Repeat("x", 100_000)+".gguf", sum, 5) + "]", "file does not exist"},
		"an object":          {`{"error":"no"}`, "does not answer as the hub does"},
		"null":               {`null`, "no .gguf file"},
		"nothing":            {``, "does not answer as the hub does"},
		"deep nesting":       {strings.Repeat("[", 1<<20), "does not answer as the hub does"},
		"a size with digits": {`[{"type":"file","path":"a.gguf","size":1e999}]`, "does not answer as the hub does"},
		"folders only":       {`[{"type":"directory","path":"a.gguf"}]`, "no .gguf file"},
	} {
		h := hubWith(t, []byte("12345"))
		h.Fault = listing(h, tc.lines)
		_, err := tryOpen(client(t, h, nil), "hf://org/model")
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hf_abc") || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v, want %q", name, err, tc.want)
		}
	}
}

// TestListingWithoutEnd gives up on a listing that always goes on at another address.
func TestListingWithoutEnd(t *testing.T) {
	h := hubWith(t, []byte("12345"))
	var pages atomic.Int64
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/tree/") {
			return false
		}
		n := pages.Add(1)
		w.Header().Set("Link", fmt.Sprintf(`<%s?cursor=%d>; rel="next"`, r.URL.Path, n))
		io.WriteString(w, "[]")
		return true
	}
	if _, err := tryOpen(client(t, h, nil), "hf://org/model"); err == nil || !strings.Contains(err.Error(), "has no end") || pages.Load() > maxPages {
		t.Errorf("after %d pages: %v", pages.Load(), err)
	}
}

// TestHonestOddities reads from servers whose answers are unusual and right.
func TestHonestOddities(t *testing.T) {
	data := randomBytes(300_000)
	for name, do := range map[string]func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request){
		"no length": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) { h.Answer(&chunkedWriter{w}, r) },
		"a weak tag now and then": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			h.Answer(&weakWriter{ResponseWriter: w}, r)
		},
		"the unit in capitals": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			h.Answer(&replaceWriter{w, "Content-Range", "bytes ", "Bytes "}, r)
		},
		"no total": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			h.Answer(&replaceWriter{w, "Content-Range", "/300000", "/*"}, r)
		},
		"the encoding identity": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "identity")
			h.Answer(w, r)
		},
		"hints before the answer": func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</x>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			h.Answer(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubWith(t, data)
			f := open(t, client(t, h, nil), "hf://org/model")
			h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if h.OnStorage(r) {
					do(h, w, r)
				}
				return h.OnStorage(r)
			}
			f.Prefetch(100_000, 100_000)
			got := make([]byte, len(data))
			if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
				t.Error(err)
			}
		})
	}
}

// A chunkedWriter sends a body without saying how long it is.
type chunkedWriter struct{ http.ResponseWriter }

func (w *chunkedWriter) WriteHeader(code int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
	w.ResponseWriter.(http.Flusher).Flush()
}

var tags atomic.Int64

// A weakWriter marks every other entity tag as weak.
type weakWriter struct{ http.ResponseWriter }

func (w *weakWriter) WriteHeader(code int) {
	if tags.Add(1)%2 == 0 {
		w.Header().Set("ETag", "W/"+w.Header().Get("ETag"))
	}
	w.ResponseWriter.WriteHeader(code)
}

// A replaceWriter changes a header.
type replaceWriter struct {
	http.ResponseWriter
	name, old, new string
}

func (w *replaceWriter) WriteHeader(code int) {
	w.Header().Set(w.name, strings.Replace(w.Header().Get(w.name), w.old, w.new, 1))
	w.ResponseWriter.WriteHeader(code)
}

// TestMoreLies reads a range from servers that lie in further ways.
func TestMoreLies(t *testing.T) {
	answer := func(code int, header map[string]string, body string) func(*hubtest.Hub, http.ResponseWriter, *http.Request) {
		return func(_ *hubtest.Hub, w http.ResponseWriter, _ *http.Request) {
			for name, value := range header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	span := fmt.Sprintf("bytes %d-%d/%d", faultAt, faultAt+faultLen-1, faultSize)
	for name, tc := range map[string]struct {
		do   func(*hubtest.Hub, http.ResponseWriter, *http.Request)
		want string
		most int64
	}{
		"304":                     {answer(304, nil, ""), "304", 1},
		"204":                     {answer(204, nil, ""), "204", 1},
		"a total beyond all":      {answer(206, map[string]string{"Content-Range": "bytes 1000-200999/99999999999999999999"}, ""), "does not say which range", 1},
		"two ranges":              {answer(206, map[string]string{"Content-Range": span + ", bytes 0-1/300000"}, "x"), "does not say which range", 1},
		"a range in other units":  {answer(206, map[string]string{"Content-Range": strings.Replace(span, "bytes", "lines", 1)}, "x"), "does not say which range", 1},
		"a mark that went":        {answer(206, map[string]string{"Content-Range": span, "Content-Length": strconv.Itoa(faultLen)}, strings.Repeat("x", faultLen)), "mark of it", 1},
		"an encoding of encoding": {answer(206, map[string]string{"Content-Range": span, "Content-Encoding": "identity, br"}, "x"), "encoding", 1},
		"a login page":            {answer(200, map[string]string{"Content-Type": "text/html"}, "<html>log in</html>"), "", 2},
		"a long wait in a date":   {answer(429, map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, ""), "asks for a wait", 1},
		"a wait beyond numbers":   {answer(503, map[string]string{"Retry-After": "99999999999999999999"}, ""), "asks for a wait", 1},
		"a wait among limits":     {answer(429, map[string]string{"RateLimit": `"resolvers";r=0;t=86400, "api";r=10;t=5`}, ""), "asks for a wait", 1},
		"a wait in older form":    {answer(429, map[string]string{"RateLimit": "limit=100, remaining=0, reset=86400"}, ""), "asks for a wait", 1},
		"a wait below nothing":    {answer(503, map[string]string{"Retry-After": "-5"}, ""), "503", maxTries},
		"a limit that is left":    {answer(503, map[string]string{"RateLimit": `"resolvers";r=10;t=86400`}, ""), "503", maxTries},
		"a wait of no number":     {answer(503, map[string]string{"Retry-After": "soon; hf_abcdefgh"}, "hf_abcdefgh?X-Amz-Signature=s3cr3t"), "503", maxTries},
		"endless redirects": {func(_ *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?X-Amz-Signature=s3cr3t"+strconv.Itoa(len(r.URL.RawQuery)), http.StatusTemporaryRedirect)
		}, "in a circle", maxHops},
		"a redirect to another scheme": {func(_ *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "ftp://storage.test/x?sig=s3cr3t")
			w.WriteHeader(302)
		}, "neither https nor http", 1},
		"a redirect to no host": {func(_ *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https:///x?sig=s3cr3t")
			w.WriteHeader(302)
		}, "redirects to no address", 1},
		"a body longer than it says": {func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request) {
			h.Answer(&chunkedWriter{w}, r)
			io.WriteString(w, "and more")
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			data := randomBytes(faultSize)
			h := hubWith(t, data)
			f := open(t, client(t, h, nil), "hf://org/model")
			if _, err := f.ReadAt(make([]byte, 10), 5); err != nil {
				t.Fatal(err)
			}
			var n atomic.Int64
			h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !h.OnStorage(r) {
					return false
				}
				n.Add(1)
				tc.do(h, w, r)
				return true
			}
			p := make([]byte, faultLen)
			got, err := f.ReadAt(p, faultAt)
			switch {
			case err == nil && !bytes.Equal(p, data[faultAt:faultAt+faultLen]):
				t.Error("wrong bytes were believed")
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%d bytes, error is %v, want %q", got, err, tc.want)
			case n.Load() > tc.most:
				t.Errorf("%d requests, want at most %d", n.Load(), tc.most)
			}
			if err != nil && strings.ContainsAny(err.Error(), "?") || err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "hf_abc")) {
				t.Errorf("a secret in %v", err)
			}
		})
	}
}

// TestTokenAndRedirects follows redirects of the hub to itself, as for a renamed repository,
// with the token, and to any other host, to a name below its own too, without.
func TestTokenAndRedirects(t *testing.T) {
	data := randomBytes(5000)
	h := hubWith(t, data)
	below := strings.Replace(h.Endpoint(), "hub.test", "cdn.hub.test", 1)
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.Host, "cdn."):
			if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
				t.Errorf("%s got %v", r.Host, r.Header)
			}
			return false
		case strings.HasPrefix(r.URL.Path, "/org/model/resolve/"):
			http.Redirect(w, r, strings.Replace(r.URL.Path, "/org/model/", "/org/renamed/", 1), http.StatusTemporaryRedirect)
			return true
		case strings.HasPrefix(r.URL.Path, "/org/renamed/"):
			if r.Header.Get("Authorization") != "Bearer "+token {
				t.Errorf("the renamed repository got %q", r.Header.Get("Authorization"))
			}
			http.Redirect(w, r, below+"/plain/"+fileName, http.StatusFound)
			return true
		}
		return false
	}
	got := make([]byte, len(data))
	if _, err := open(t, client(t, h, nil), "hf://org/model").ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Error(err)
	}
}

// TestNamesThatLead reads nothing whose name leads out of a folder or hides something, and
// prints no name that a terminal acts on.
func TestNamesThatLead(t *testing.T) {
	h := hubWith(t, randomBytes(100))
	long := strings.Repeat("n", 5000) + ".gguf"
	h.Add("org/model", long, strings.NewReader("x"), 1)
	c := client(t, h, nil)
	for _, address := range []string{
		"hf://org/model/../x.gguf", "hf://org/../../x.gguf", "hf://../model", "hf://org/model@..", "hf://org/model@./x.gguf", "hf://org/model//x.gguf",
		h.Endpoint() + "/org/model/resolve/main/%2e%2e/x.gguf", h.Endpoint() + "/org/model/resolve/main/..%2fx.gguf", h.Endpoint() + "/org%2fmodel",
		h.Endpoint() + "/%2e%2e/model", h.Endpoint() + "/org/model/resolve/%2e%2e/x.gguf", h.File("%2e%2e"), h.File("a%2fb.gguf"), h.File("a%5cb.gguf"), h.File("%00.gguf"),
		"https://", "http:///x.gguf", "https://[::1/x.gguf", "https://%zz/x.gguf", "hf://", "hf://a", "hf:///a/b",
	} {
		if _, err := tryOpen(c, address); err == nil {
			t.Errorf("%s is opened", address)
		}
	}
	if f, err := tryOpen(c, "hf://org/model/"+long); err != nil || f.Size() != 1 {
		t.Errorf("a long name: %v", err)
	}
	if _, err := tryOpen(c, h.File(long+"x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestWhenToAskAgain waits by the clock of the server that names a date, and does not ask six times
// within a moment where a server names no wait.
func TestWhenToAskAgain(t *testing.T) {
	const date, later40 = "Tue, 01 Dec 2026 10:00:00 GMT", "Tue, 01 Dec 2026 10:00:40 GMT"
	c, err := NewClient(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		header map[string]string
		want   time.Duration // 0 where the usual waits are kept to
	}{
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": later40, "Date": date}, 40 * time.Second},
		{map[string]string{"Retry-After": date, "Date": later40}, 0},
		{map[string]string{"Retry-After": date, "Date": date}, 0},
		{map[string]string{"Retry-After": "Tue, 01 Dec 2020 10:00:40 GMT"}, 0},
		{map[string]string{"Retry-After": "0"}, 0},
		{map[string]string{"Retry-After": "-7"}, 0},
		{map[string]string{"Retry-After": "7 seconds", "Date": "yesterday"}, 0},
		{map[string]string{"RateLimit": `"resolvers";r=0;t=0`}, time.Second},
	} {
		h := http.Header{}
		for name, value := range tc.header {
			h.Set(name, value)
		}
		for _, code := range []int{429, 503} {
			wait := time.Duration(0)
			if e, ok := errors.AsType[*backoff.RetryAfterError](c.judge(later(&StatusError{Code: code}, h, clock(h)))); ok {
				if wait = e.Duration; wait <= 0 {
					t.Errorf("%v: asked again at once", tc.header)
				}
			}
			if wait != tc.want {
				t.Errorf("%v: a wait of %s, want %s", tc.header, wait, tc.want)
			}
		}
	}
}

// TestRedirectsOfPlainServers keeps user and password on the server they are for, and follows
// nothing but http and https.
func TestRedirectsOfPlainServers(t *testing.T) {
	data := randomBytes(5000)
	h := hubWith(t, data)
	h.Add("plain/files", fileName, bytes.NewReader(data), int64(len(data)))
	withUser := strings.Replace(h.File(""), "://", "://u:s3cr3t@", 1)
	for where, want := range map[string]string{
		fileName:                   "",
		"/plain/" + fileName:       "",
		h.File(fileName) + "#part": "",
		strings.TrimPrefix(h.File(""), "https:") + fileName: "",
		"ftp://files.test/" + fileName:                      "ftp",
		"file:///etc/passwd":                                "redirects to no address",
		"javascript:alert(1)":                               "redirects to no address",
		"":                                                  "redirects to no address",
		"http://[::1/":                                      "redirects to no address",
	} {
		h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if user, password, _ := r.BasicAuth(); user != "u" || password != "s3cr3t" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			if !strings.HasSuffix(r.URL.Path, "/old.gguf") {
				return false
			}
			w.Header().Set("Location", where)
			w.WriteHeader(http.StatusMovedPermanently)
			return true
		}
		got := make([]byte, len(data))
		f, err := tryOpen(client(t, h, nil), withUser+"old.gguf")
		if err == nil {
			_, err = f.ReadAt(got, 0)
		}
		switch {
		case want == "" && (err != nil || !bytes.Equal(got, data)):
			t.Errorf("%q: %v", where, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", where, err, want)
		case err != nil && strings.Contains(err.Error(), "s3cr3t"):
			t.Errorf("%q: a secret in %v", where, err)
		}
	}
}

// TestEntryOfXetOnly reads a file that the listing names by Xet's name of it alone: what git calls
// the pointer to it is not held against the entity tag of the contents.
func TestEntryOfXetOnly(t *testing.T) {
	data := randomBytes(5000)
	h := hubWith(t, data)
	h.Fault = listing(h, fmt.Sprintf(`[{"type":"file","path":%q,"size":5000,"oid":"c0ffee","xetHash":"beef"}]`, fileName))
	f := open(t, client(t, h, nil), "hf://org/model")
	got := make([]byte, len(data))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) || f.Identity().SHA256+f.Identity().ETag != "" {
		t.Errorf("%v, %+v", err, f.Identity())
	}
}
