package remote

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/remote/hubtest"
)

// A fault is what a server does in place of the right thing.
type fault struct {
	name  string
	do    func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool // n counts its requests from 1
	plain bool                                                                       // on the server that is not the hub
	want  string                                                                     // in the error; "" when the bytes come all the same
	most  int                                                                        // requests of the storage
}

// ranged answers with a range of the wrong kind.
func ranged(from, to, total int64, header map[string]string) func(*hubtest.Hub, http.ResponseWriter, *http.Request, int64) bool {
	return func(h *hubtest.Hub, w http.ResponseWriter, _ *http.Request, _ int64) bool {
		w.Header().Set("ETag", h.Mark("org/model", fileName))
		w.Header().Set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to-1, 10)+"/"+strconv.FormatInt(total, 10))
		w.Header().Set("Content-Length", strconv.FormatInt(to-from, 10))
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusPartialContent)
		w.Write(make([]byte, to-from))
		return true
	}
}

// status answers with a status the first few times.
func status(times int64, code int, header map[string]string) func(*hubtest.Hub, http.ResponseWriter, *http.Request, int64) bool {
	return func(_ *hubtest.Hub, w http.ResponseWriter, _ *http.Request, n int64) bool {
		if n > times {
			return false
		}
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		io.WriteString(w, "<Error><Code>Odd</Code><Message>words of the server at https://x.test/y?X-Amz-Signature=s3cr3t9 hf_abcdefgh</Message></Error>")
		return true
	}
}

// broken sends the beginning of the right answer and then cuts the connection.
func broken(times, bytes int64) func(*hubtest.Hub, http.ResponseWriter, *http.Request, int64) bool {
	return func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
		if n > times {
			return false
		}
		h.Answer(&cutWriter{w, bytes}, r)
		return true
	}
}

// A cutWriter cuts the connection after some bytes of a body.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		w.ResponseWriter.Write(p[:w.left])
		w.ResponseWriter.(http.Flusher).Flush()
		conn, _, _ := w.ResponseWriter.(http.Hijacker).Hijack()
		conn.Close()
		return int(w.left), errors.New("cut")
	}
	w.left -= int64(len(p))
	return w.ResponseWriter.Write(p)
}

const (
	faultSize = 300_000
	faultAt   = 1000
	faultLen  = 200_000
)

func faults() []fault {
	whole := func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
		r.Header.Del("Range")
		h.Answer(w, r)
		return true
	}
	return []fault{
		{name: "whole 200 to a range", do: whole, want: "whole file", most: 1},
		{name: "whole 200 without a length", do: func(h *hubtest.Hub, w http.ResponseWriter, _ *http.Request, _ int64) bool {
			for range 1000 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					break
				}
			}
			return true
		}, want: "whole file", most: 1},
		{name: "200 with a fitting range", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			h.Answer(&okWriter{w}, r)
			return true
		}, most: 1},
		{name: "206 that is short", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
			var from, last int64
			parts := strings.Split(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-")
			from, _ = strconv.ParseInt(parts[0], 10, 64)
			last, _ = strconv.ParseInt(parts[1], 10, 64)
			if n < 4 {
				last = from + (last-from)*3/4
			}
			r.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(last, 10))
			h.Answer(w, r)
			return true
		}, most: 4},
		{name: "206 of a byte each time", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
			from, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-")
			r.Header.Set("Range", "bytes="+from+"-"+from)
			h.Answer(w, r)
			return true
		}, want: "sends 1 bytes of a range", most: maxTries},
		{name: "206 that is shifted", do: ranged(faultAt+1, faultAt+faultLen, faultSize, nil), want: "sends bytes 1001 to", most: 1},
		{name: "206 that begins earlier", do: ranged(0, faultAt+faultLen, faultSize, nil), want: "sends bytes 0 to", most: 1},
		{name: "206 that is longer", do: ranged(faultAt, faultAt+faultLen+1, faultSize, nil), want: "sends bytes 1000 to 201000", most: 1},
		{name: "206 of another total", do: ranged(faultAt, faultAt+faultLen, faultSize+1, nil), want: "it has 300001 bytes, had 300000", most: 1},
		{name: "206 without a range", do: ranged(faultAt, faultAt+faultLen, faultSize, map[string]string{"Content-Range": ""}), want: "does not say which range", most: 1},
		{name: "206 of an impossible range", do: ranged(faultAt, faultAt+faultLen, faultSize, map[string]string{"Content-Range": "bytes 9-1/3"}), want: "impossible range", most: 1},
		{name: "206 with gzip", do: ranged(faultAt, faultAt+faultLen, faultSize, map[string]string{"Content-Encoding": "gzip"}), want: `encoding "gzip"`, most: 1},
		{name: "multipart", do: ranged(faultAt, faultAt+faultLen, faultSize, map[string]string{"Content-Range": "", "Content-Type": "multipart/byteranges; boundary=x"}), want: "does not say which range", most: 1},
		{name: "416", do: status(99, 416, map[string]string{"Content-Range": "bytes */77"}), want: "it has 77 bytes, had 300000", most: 1},
		{name: "416 without a size", do: status(99, 416, nil), want: "416", most: 1},
		{name: "body that ends early", do: broken(3, 100_000), most: 4},
		{name: "body that ends at once, always", do: broken(99, 0), want: "EOF", most: maxTries},
		{name: "a stall", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
			if n == 1 {
				<-r.Context().Done()
			}
			return n == 1
		}, most: 2},
		{name: "a stall in a body", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
			if n > 2 {
				return false
			}
			h.Answer(&stallWriter{w, r, 90_000}, r)
			return true
		}, most: 3},
		{name: "a trickle", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, n int64) bool {
			if n > 1 {
				return false
			}
			h.Answer(&trickleWriter{w, r}, r)
			return true
		}, most: 2},
		{name: "403 that is no expiry", do: status(99, 403, nil), want: "words of the server", most: 2},
		{name: "one 403", do: status(1, 403, nil), most: 2},
		{name: "429 with Retry-After", do: status(2, 429, map[string]string{"Retry-After": "0"}), most: 3},
		{name: "429 with RateLimit", do: status(1, 429, map[string]string{"RateLimit": `"resolvers";r=0;t=0`}), most: 2},
		{name: "503 with a date", do: status(2, 503, map[string]string{"Retry-After": "Mon, 02 Jan 2006 15:04:05 GMT"}), most: 3},
		{name: "429 for an hour", do: status(99, 429, map[string]string{"Retry-After": "3600"}), want: "asks for a wait of 1h", most: 1},
		{name: "500 a few times", do: status(3, 500, nil), most: 4},
		{name: "502 always", do: status(99, 502, nil), want: "502", most: maxTries},
		{name: "501", do: status(99, 501, nil), want: "501", most: 1},
		{name: "reset at once", do: func(h *hubtest.Hub, w http.ResponseWriter, _ *http.Request, n int64) bool {
			if n > 2 {
				return false
			}
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SetLinger(0)
			conn.Close()
			return true
		}, most: 3},
		{name: "a redirect loop", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
			return true
		}, want: "in a circle", most: maxHops},
		{name: "a redirect to plain http", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			http.Redirect(w, r, "http://storage.test/x?sig=s3cr3t", http.StatusFound)
			return true
		}, want: "from https to http", most: 1},
		{name: "a redirect to a file of this machine", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
			return true
		}, want: "redirects", most: 1},
		{name: "a redirect to nowhere", do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			w.WriteHeader(http.StatusFound)
			return true
		}, want: "redirects to no address", most: 1},
		{name: "an endless header", do: func(h *hubtest.Hub, w http.ResponseWriter, _ *http.Request, _ int64) bool {
			conn, out, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			out.WriteString("HTTP/1.1 206 Partial Content\r\n")
			line := "X-Long: " + strings.Repeat("x", 4000) + "\r\n"
			for i := 0; i < 1<<20; i++ {
				if _, err := out.WriteString(line); err != nil {
					break
				}
			}
			return true
		}, want: "sends a header of more than", most: 1},
		{name: "no HTTP at all", do: func(h *hubtest.Hub, w http.ResponseWriter, _ *http.Request, _ int64) bool {
			conn, out, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			out.WriteString("SSH-2.0-OpenSSH_9.2\r\n")
			out.Flush()
			return true
		}, want: "malformed HTTP", most: maxTries},
		{name: "another file under the address", plain: true, do: func(h *hubtest.Hub, w http.ResponseWriter, r *http.Request, _ int64) bool {
			return ranged(faultAt, faultAt+faultLen, faultSize, map[string]string{"ETag": `"other"`})(h, w, r, 0)
		}, want: `mark of it is "\"other\""`, most: 1},
		{name: "404 in mid-run", plain: true, do: status(99, 404, nil), want: "404", most: 1},
	}
}

// An okWriter turns 206 into 200.
type okWriter struct{ http.ResponseWriter }

func (w *okWriter) WriteHeader(code int) {
	if code == http.StatusPartialContent {
		code = http.StatusOK
	}
	w.ResponseWriter.WriteHeader(code)
}

// A stallWriter stops after some bytes until the client is gone.
type stallWriter struct {
	http.ResponseWriter
	r    *http.Request
	left int
}

func (w *stallWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.ResponseWriter.Write(p[:n])
	if w.left == 0 {
		w.ResponseWriter.(http.Flusher).Flush()
		<-w.r.Context().Done()
		return n, errors.New("gone")
	}
	return n, nil
}

// A trickleWriter sends a byte now and then.
type trickleWriter struct {
	http.ResponseWriter
	r *http.Request
}

func (w *trickleWriter) Write(p []byte) (int, error) {
	for i := range p {
		w.ResponseWriter.Write(p[i : i+1])
		w.ResponseWriter.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
		if w.r.Context().Err() != nil {
			return i, errors.New("gone")
		}
	}
	return len(p), nil
}

// TestFaults reads a range while the server misbehaves. Either the bytes are the right ones
// or there is an error that says what is wrong, nothing is asked for without end, and no
// message has a secret. It reads directly and announced.
func TestFaults(t *testing.T) {
	data := randomBytes(faultSize)
	for _, tc := range faults() {
		for _, announced := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				h := hubWith(t, data)
				c := client(t, h, func(o *Options) {
					if strings.Contains(tc.name, "stall") || strings.Contains(tc.name, "trickle") {
						o.Idle = 500 * time.Millisecond
					}
				})
				address := "hf://org/model"
				if tc.plain {
					address = h.File(fileName)
				}
				f := open(t, c, address)
				if _, err := f.ReadAt(make([]byte, 10), 5); err != nil {
					t.Fatal(err)
				}
				var n atomic.Int64
				h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
					if !tc.plain && !h.OnStorage(r) {
						return false
					}
					return tc.do(h, w, r, n.Add(1))
				}
				if announced {
					f.Prefetch(faultAt, faultLen)
				}
				p := make([]byte, faultLen)
				got, err := f.ReadAt(p, faultAt)
				checkFault(t, tc, p[:got], data[faultAt:faultAt+got], err)
				if tries := int(n.Load()); tries > tc.most {
					t.Errorf("%d requests, want at most %d", tries, tc.most)
				}
				checkSecrets(t, h)
			})
		}
	}
}

func checkFault(t *testing.T, tc fault, got, want []byte, err error) {
	t.Helper()
	switch {
	case tc.want == "" && err != nil:
		t.Errorf("error: %v", err)
	case tc.want == "" && len(got) != faultLen:
		t.Errorf("%d bytes", len(got))
	case tc.want != "" && err == nil:
		t.Error("no error")
	case tc.want != "" && !strings.Contains(err.Error(), tc.want):
		t.Errorf("error is %q, want one with %q", err, tc.want)
	case tc.want == "" && !bytes.Equal(got, want):
		t.Error("wrong bytes")
	}
	if err == nil {
		return
	}
	if later := tc.most == maxTries || tc.name == "429 for an hour"; gguf.MachineFault(err) != later {
		t.Errorf("%v: worth another run later: %v, want %v", err, !later, later)
	}
	for _, secret := range []string{"s3cr3t", "hf_", "Signature", "?"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the message has %q: %v", secret, err)
		}
	}
}

// checkSecrets looks at what the server was told.
func checkSecrets(t *testing.T, h *hubtest.Hub) {
	t.Helper()
	for _, r := range h.Requests() {
		if own := strings.HasPrefix(r.Host, "hub.test:"); own != (r.Authorization == "Bearer "+token) || !own && r.Authorization != "" {
			t.Errorf("%s%s got the authorization %q", r.Host, r.Path, r.Authorization)
		}
		if r.Referer != "" {
			t.Errorf("%s got the referer %q", r.Host, r.Referer)
		}
	}
}
