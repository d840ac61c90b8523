package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

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
