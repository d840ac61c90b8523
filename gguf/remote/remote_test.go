package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/remote/hubtest"
)

const token = "hf_abcdefghijklmnop"

// client returns a client of a test hub that waits for nothing.
func client(t testing.TB, h *hubtest.Hub, change func(*Options)) *Client {
	t.Helper()
	o := Options{Endpoint: h.Endpoint(), Token: token, Transport: h.Transport, Idle: time.Minute, firstWait: time.Millisecond}
	if change != nil {
		change(&o)
	}
	c, err := NewClient(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// randomBytes returns n bytes that depend on n only.
func randomBytes(n int) []byte {
	rng := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	b := make([]byte, n)
	rng.Read(b)
	return b
}

const fileName = "X-00001-of-00001.gguf"

// hubWith returns a hub with one file, on the hub and on the plain server.
func hubWith(t testing.TB, data []byte) *hubtest.Hub {
	h := hubtest.New(t)
	h.Add("org/model", fileName, bytes.NewReader(data), int64(len(data)))
	h.Add("plain/files", fileName, bytes.NewReader(data), int64(len(data)))
	return h
}

// open opens the one file of a folder.
func open(t testing.TB, c *Client, address string) *File {
	t.Helper()
	f, err := tryOpen(c, address)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tryOpen(c *Client, address string) (*File, error) {
	folder, name, err := c.Open(address)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = fileName
	}
	return folder.Open(name)
}

// TestReadAt holds a file on the hub and one elsewhere to what io.ReaderAt promises.
func TestReadAt(t *testing.T) {
	for _, size := range []int{1, 1023, 1024, 1025, 100_000} {
		data := randomBytes(size)
		h := hubWith(t, data)
		c := client(t, h, nil)
		for _, address := range []string{"hf://org/model", "hf://org/model@main/" + fileName, h.File(fileName)} {
			f := open(t, c, address)
			if f.Size() != int64(size) {
				t.Fatalf("%s: size is %d, want %d", address, f.Size(), size)
			}
			if err := iotest.TestReader(io.NewSectionReader(f, 0, min(f.Size(), 1100)), data[:min(size, 1100)]); err != nil {
				t.Errorf("%s, %d bytes: %v", address, size, err)
			}
			if all, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); err != nil || !bytes.Equal(all, data) {
				t.Errorf("%s: reading all %d bytes gives %d, %v", address, size, len(all), err)
			}
			if n, err := f.ReadAt(make([]byte, 8), f.Size()-1); n != 1 || err != io.EOF {
				t.Errorf("%s: reading over the end gives %d, %v", address, n, err)
			}
		}
	}
}

// TestPrefetch reads announced ranges, of all sizes and in odd steps, and asks once for each.
func TestPrefetch(t *testing.T) {
	data := randomBytes(30 << 20)
	h := hubWith(t, data)
	c := client(t, h, nil)
	f := open(t, c, "hf://org/model")
	var ranges [][2]int64
	for off := int64(5); off < f.Size(); {
		n := min(1+rand.Int64N(3<<20), f.Size()-off)
		ranges = append(ranges, [2]int64{off, n})
		f.Prefetch(off, n)
		off += n + rand.Int64N(1000)
	}
	for _, r := range ranges {
		for off, end := r[0], r[0]+r[1]; off < end; {
			p := make([]byte, min(1+rand.Int64N(1<<19), end-off))
			if _, err := f.ReadAt(p, off); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p, data[off:off+int64(len(p))]) {
				t.Fatalf("wrong bytes at %d", off)
			}
			off += int64(len(p))
		}
	}
	stored := 0
	for _, r := range h.Requests() {
		if strings.HasPrefix(r.Path, "/store/") {
			stored++
		}
	}
	if stored != len(ranges) {
		t.Errorf("%d requests for %d ranges", stored, len(ranges))
	}
	if c.queue.used != 0 || len(f.pieces) != 0 {
		t.Errorf("%d bytes and %d pieces are left", c.queue.used, len(f.pieces))
	}
}

// TestPrefetchOutOfOrder announces more than memory allows, and reads it backwards and
// from several goroutines: nobody waits for ever, and the bytes are right.
func TestPrefetchOutOfOrder(t *testing.T) {
	data := randomBytes(130 << 20)
	h := hubWith(t, data)
	f := open(t, client(t, h, nil), "hf://org/model")
	f.Prefetch(0, f.Size())
	var group sync.WaitGroup
	for part := range 3 {
		group.Go(func() {
			for off := int64(44-part) << 20; off >= 0; off -= 3 << 20 {
				p := make([]byte, 1<<20)
				at := off + int64(part)*43<<20
				if _, err := f.ReadAt(p, at); err != nil || !bytes.Equal(p, data[at:at+1<<20]) {
					t.Errorf("at %d: %v", at, err)
					return
				}
			}
		})
	}
	group.Wait()
}

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

// TestExpiry reads on when every signed address is good for few requests only.
func TestExpiry(t *testing.T) {
	data := randomBytes(1 << 20)
	h := hubWith(t, data)
	h.Life = 3
	c := client(t, h, nil)
	f := open(t, c, "hf://org/model")
	for off := int64(0); off < f.Size(); off += 64 << 10 {
		f.Prefetch(off, 64<<10)
	}
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	checkSecrets(t, h)
}

// TestChangedBehindExpiry has another file behind the address that replaces an old one.
func TestChangedBehindExpiry(t *testing.T) {
	data := randomBytes(100_000)
	for _, change := range []struct {
		header, value, want string
	}{
		{"X-Repo-Commit", strings.Repeat("f", 40), "commit"},
		{"X-Linked-Size", "99999", "size"},
		{"X-Linked-Etag", `"` + strings.Repeat("e", 64) + `"`, "etag"},
	} {
		h := hubWith(t, data)
		h.Life = 1
		f := open(t, client(t, h, nil), "hf://org/model")
		if _, err := f.ReadAt(make([]byte, 10), 0); err != nil {
			t.Fatal(err)
		}
		h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if h.OnStorage(r) {
				return false
			}
			h.Answer(&headerWriter{w, change.header, change.value}, r)
			return true
		}
		_, err := f.ReadAt(make([]byte, 10), 0)
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: error is %v", change.header, err)
		}
		if err := f.Unchanged(); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: Unchanged says %v", change.header, err)
		}
	}
}

// A headerWriter sets one header whatever else is set.
type headerWriter struct {
	http.ResponseWriter
	name, value string
}

func (w *headerWriter) WriteHeader(code int) {
	w.Header().Set(w.name, w.value)
	w.ResponseWriter.WriteHeader(code)
}

// TestTokenPlaces sends the token to the hub over https only.
func TestTokenPlaces(t *testing.T) {
	h := hubWith(t, randomBytes(5000))
	for _, endpoint := range []string{h.Endpoint(), strings.Replace(h.Endpoint(), "https", "http", 1), strings.Replace(h.Endpoint(), "hub.test", "a.hub.test", 1)} {
		c, err := NewClient(context.Background(), Options{Endpoint: h.Endpoint(), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		u := c.at("/x")
		u.Scheme, u.Host = endpoint[:strings.Index(endpoint, ":")], endpoint[strings.Index(endpoint, "//")+2:]
		if got, want := c.sendsToken(u), endpoint == h.Endpoint(); got != want {
			t.Errorf("%s: token sent is %t", endpoint, got)
		}
	}
	c := client(t, h, nil)
	if _, err := open(t, c, h.File(fileName)).ReadAt(make([]byte, 9), 2000); err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, h)
}

// TestListing reads a listing of several pages, whose next addresses have the official host.
func TestListing(t *testing.T) {
	h := hubtest.New(t)
	want := []string{}
	for i := range 25 {
		name := "m-" + strconv.Itoa(100+i) + ".gguf"
		want = append(want, name)
		h.Add("org/model", "sub/"+name, strings.NewReader("x"), 1)
	}
	h.Page = 4
	folder, name, err := client(t, h, nil).Open("hf://org/model")
	if err != nil || name != "" {
		t.Fatal(name, err)
	}
	if names, err := folder.Names(); err != nil || !slices.Equal(names, want) {
		t.Errorf("names are %v, %v", names, err)
	}
	if facts := folder.Facts(); facts.Commit != hubtest.Commit || facts.License != "apache-2.0" || facts.Repo != "org/model" {
		t.Errorf("facts are %+v", facts)
	}
	checkSecrets(t, h)
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/tree/") {
			return false
		}
		w.Header().Set("Link", `<`+r.URL.Path+`?recursive=true>; rel="next"`)
		h.Answer(w, r)
		return true
	}
	if _, _, err := client(t, h, nil).Open("hf://org/model"); err == nil || !strings.Contains(err.Error(), "has no end") {
		t.Errorf("a listing in a circle gives %v", err)
	}
}

// TestRefusals puts what the hub refuses into words.
func TestRefusals(t *testing.T) {
	h := hubWith(t, randomBytes(100))
	gate := func(code int, reason, words string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			hubtest.Refuse(w, code, reason, words)
			return true
		}
	}
	for _, tc := range []struct {
		address string
		token   string
		fault   func(http.ResponseWriter, *http.Request) bool
		want    string
	}{
		{"hf://org/missing", token, nil, "hf://org/missing: is not there, or the account of this token may not see it"},
		{"hf://org/missing", "", nil, "hf://org/missing: is not there, or private: no token was sent"},
		{"hf://org/model@v9", token, nil, `hf://org/model: has no revision "v9"`},
		{"hf://org/model/no.gguf", token, nil, "hf://org/model/no.gguf: is not in the repository"},
		{"hf://org/model/folder", token, nil, "hf://org/model/folder: is not in the repository"},
		{"hf://org/model", "", gate(401, "GatedRepo", "Access to model org/model is restricted."), "is gated: it is given to accounts with access only, and no token was sent"},
		{"hf://org/model", token, gate(403, "GatedRepo", "Access to model org/model is restricted."), "is gated, and the account of this token has no access"},
		{"hf://org/model", token, gate(401, "", "Invalid credentials in Authorization header"), "does not know this token"},
		{"hf://org/model", token, gate(403, "", "no"), "the token has no right"},
		{"hf://org/model", token, func(w http.ResponseWriter, _ *http.Request) bool {
			io.WriteString(w, "<html>Sign in to the network of this hotel</html>")
			return true
		}, "does not answer as the hub does"},
		{"hf://org/model", token, func(w http.ResponseWriter, _ *http.Request) bool {
			io.WriteString(w, `{"sha":"../../x"}`)
			return true
		}, "names no commit"},
		{"hf://org", token, nil, "want hf://OWNER/REPO"},
		{"hf://org/model@main/../../x.gguf", token, nil, "is not a place in a repository"},
		{"hf://org/model@..%2F..%2Fapi/x.gguf", token, nil, "is not a revision"},
		{h.Endpoint() + "/org/model/settings", token, nil, "is no page of files"},
		{h.File(""), token, nil, "names no file"},
		{h.File("..%2Fx.gguf"), token, nil, "does not end in a file name"},
		{h.File("none.gguf?X-Amz-Signature=s3cr3t"), token, nil, "404"},
	} {
		h.Fault = tc.fault
		c := client(t, h, func(o *Options) { o.Token = tc.token })
		_, err := tryOpen(c, tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want %q", tc.address, err, tc.want)
		} else if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "hf_") {
			t.Errorf("%s: a secret in %v", tc.address, err)
		}
	}
}

// TestAddresses reads the forms that people type and paste.
func TestAddresses(t *testing.T) {
	c, err := NewClient(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"hf://org/m":                                                "hf://org/m",
		"hf://org/m/":                                               "hf://org/m",
		"hf://models/org/m":                                         "hf://org/m",
		"hf://datasets/org/m@v1/a/b.gguf":                           "hf://datasets/org/m@v1/a/b.gguf",
		"hf://org/m@refs/pr/3/a.gguf":                               "hf://org/m@refs%2Fpr%2F3/a.gguf",
		"hf://org/m@refs%2Fpr%2F3/a.gguf":                           "hf://org/m@refs%2Fpr%2F3/a.gguf",
		"HF://org/m/a b#c%d.gguf":                                   "hf://org/m/a b#c%d.gguf",
		"https://huggingface.co/org/m":                              "hf://org/m",
		"https://huggingface.co/org/m/blob/main/a/b%20c.gguf":       "hf://org/m@main/a/b c.gguf",
		"https://hf.co/org/m/resolve/x%2Fy/b.gguf?download=true":    "hf://org/m@x%2Fy/b.gguf",
		"https://huggingface.co/org/m/tree/refs%2Fpr%2F1/IQ1_S":     "hf://org/m@refs%2Fpr%2F1/IQ1_S",
		"https://huggingface.co/org/m/tree/refs/pr/1/IQ1_S":         "hf://org/m@refs%2Fpr%2F1/IQ1_S",
		"https://huggingface.co/datasets/org/m/resolve/main/b.gguf": "hf://datasets/org/m@main/b.gguf",
		"https://u:p@example.org/a/b.gguf?sig=x#y":                  "https://example.org/a/b.gguf",
		"http://[::1]:8080/b.gguf":                                  "http://[::1]:8080/b.gguf",
	} {
		a, err := c.parse(address)
		if err != nil || a.String() != want {
			t.Errorf("%s is %v, %v; want %s", address, a, err, want)
		}
	}
}

// TestOddNames opens files whose names need encoding.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"a b.gguf", "50%.gguf", "50%25.gguf", "a#b?c.gguf", "ä+ö&=.gguf"} {
		h := hubtest.New(t)
		data := randomBytes(3000)
		h.Add("org/model", "in/"+name, bytes.NewReader(data), 3000)
		h.Add("plain/files", name, bytes.NewReader(data), 3000)
		c := client(t, h, nil)
		for _, address := range []string{"hf://org/model/in/" + name, h.Endpoint() + "/org/model/resolve/main/in/" + escapePath(name), h.File(escapePath(name))} {
			folder, got, err := c.Open(address)
			if err != nil || got != name {
				t.Fatalf("%s: %q, %v", address, got, err)
			}
			f, err := folder.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 3000)
			if _, err := f.ReadAt(p, 0); err != nil || !bytes.Equal(p, data) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// TestHostileListing leaves out paths that lead out of a folder.
func TestHostileListing(t *testing.T) {
	h := hubtest.New(t)
	for _, path := range []string{"../../x.gguf", "/etc/y.gguf", "a/../../z.gguf", "./w.gguf", "ok.gguf", "sub\\v.gguf"} {
		h.Add("org/model", path, strings.NewReader("x"), 1)
	}
	folder, _, err := client(t, h, nil).Open("hf://org/model")
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := folder.Names(); !slices.Equal(names, []string{"ok.gguf"}) {
		t.Errorf("names are %q", names)
	}
	if _, err := folder.Open("../ok.gguf"); err == nil {
		t.Error("a name that leads out was opened")
	}
}

func TestEmptyFile(t *testing.T) {
	h := hubWith(t, nil)
	c := client(t, h, nil)
	for _, address := range []string{"hf://org/model", h.File(fileName)} {
		f := open(t, c, address)
		if n, err := f.ReadAt(make([]byte, 5), 0); f.Size() != 0 || n != 0 || err != io.EOF {
			t.Errorf("%s: size %d, %d bytes, %v", address, f.Size(), n, err)
		}
	}
}

func TestOffline(t *testing.T) {
	h := hubWith(t, randomBytes(10))
	c := client(t, h, func(o *Options) { o.Offline = true })
	for _, address := range []string{"hf://org/model", h.File(fileName)} {
		if _, err := tryOpen(c, address); !errors.Is(err, ErrOffline) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// TestUnknownHosts fails at once for a host that does not exist, one that nobody listens
// on, and one whose certificate nobody vouches for.
func TestUnknownHosts(t *testing.T) {
	h := hubWith(t, randomBytes(10))
	missing := &net.DNSError{Err: "no such host", Name: "nowhere.test", IsNotFound: true}
	for _, tc := range []struct {
		transport func(*http.Transport)
		want      string
	}{
		{func(t *http.Transport) {
			t.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, missing }
		}, "no such host"},
		{func(t *http.Transport) {
			dial := t.DialContext
			t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dial(ctx, network, "127.0.0.1:1")
			}
		}, "refused"},
		{func(t *http.Transport) {
			h.Transport(t)
			t.TLSClientConfig = nil
		}, "certificate"},
	} {
		c := client(t, h, func(o *Options) {
			o.Transport = tc.transport
			o.firstWait = time.Hour
		})
		if _, err := tryOpen(c, "hf://org/model"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error is %v, want %q", err, tc.want)
		}
	}
}

// TestCloseEndsReads closes a client while a server keeps readers waiting.
func TestCloseEndsReads(t *testing.T) {
	h := hubWith(t, randomBytes(100_000))
	c := client(t, h, func(o *Options) { o.Idle = time.Hour })
	f := open(t, c, "hf://org/model")
	asked := make(chan bool, 100)
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		asked <- true
		<-r.Context().Done()
		return true
	}
	f.Prefetch(0, 50_000)
	ended := make(chan error)
	go func() {
		_, err := f.ReadAt(make([]byte, 10), 0)
		ended <- err
	}()
	<-asked
	c.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestLimitRate(t *testing.T) {
	h := hubWith(t, randomBytes(400_000))
	c := client(t, h, func(o *Options) { o.Rate, o.Idle = 1_000_000, 200*time.Millisecond })
	f := open(t, c, "hf://org/model")
	begin := time.Now()
	if _, err := f.ReadAt(make([]byte, 400_000), 0); err != nil {
		t.Fatal(err)
	}
	// The first bodyStep bytes are free.
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("400 kB at 1 MB/s took %s", took)
	}
}

func TestScrub(t *testing.T) {
	for _, secret := range []string{
		"see https://x.test/a?X-Amz-Signature=abc&y=z now",
		"token hf_abcdefgh is bad",
		"Authorization: Bearer abc.def",
		"StringToSign X-Amz-Credential=abc/2026",
		"Signature: abc",
	} {
		if got := scrub(secret); strings.Contains(got, "abc") {
			t.Errorf("%q becomes %q", secret, got)
		}
	}
	if words := "The request signature we calculated does not match"; scrub(words) != words {
		t.Errorf("%q becomes %q", words, scrub(words))
	}
	if got := scrub("a\x1b[31m\r\n b" + strings.Repeat("x", 999)); strings.ContainsAny(got, "\x1b\n\r") || len(got) > maxShown+3 {
		t.Errorf("got %q", got)
	}
}
