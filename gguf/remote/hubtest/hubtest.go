// Package hubtest is a server for tests that speaks as the Hugging Face hub does: a hub
// under one name and a storage under another, both on loopback, with faults on demand.
package hubtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Commit is the commit of every repository until it is changed.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// A Hub is a running server. Its fields are set before the first request.
type Hub struct {
	Commit  string
	License string
	Page    int // files on a page of a listing; 0 for all
	// Life is how many requests a signed address is good for; 0 means for ever.
	Life int64
	// Delay is added to every request, Rate bounds the bytes a second of an answer.
	Delay time.Duration
	Rate  float64
	// Fault, unless nil, answers a request in place of the hub or the storage, and
	// reports whether it did.
	Fault func(w http.ResponseWriter, r *http.Request) bool

	Server *httptest.Server
	scheme string
	hub    string // host names with the port
	store  string
	files  string // of the server that is not the hub
	port   string
	cert   tls.Certificate

	mu      sync.Mutex
	repos   map[string]map[string]*content
	signed  map[string]*signed
	log     []Request
	serial  atomic.Int64
	Written atomic.Int64 // bytes of files that answers had
}

// A Request is one that the server got.
type Request struct {
	Host, Path, Query, Range, Authorization, Referer string
}

// A content is a file.
type content struct {
	r      io.ReaderAt
	size   int64
	sha256 string
	large  bool // served by the storage, as all models are
}

// A signed address gives one file for some time.
type signed struct {
	file *content
	left atomic.Int64
	ever bool
}

// New starts a hub whose names are known to its own [Hub.Transport] only.
func New(t testing.TB) *Hub {
	return start(t, nil, "https", "hub.test", "storage.test", "files.test")
}

// NewPlain starts a hub that speaks http, whose names every process on this machine knows.
func NewPlain(t testing.TB) *Hub {
	return start(t, nil, "http", "127.0.0.1", "localhost", "localhost")
}

// NewIPv6 does so on the loopback address of IPv6, which must be there.
func NewIPv6(t testing.TB) *Hub {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l, "http", "::1", "::1", "0:0:0:0:0:0:0:1") // which is another name of it
}

func start(t testing.TB, on net.Listener, scheme, hub, store, files string) *Hub {
	h := &Hub{scheme: scheme, Commit: Commit, License: "apache-2.0", repos: map[string]map[string]*content{}, signed: map[string]*signed{}, cert: certificate(t)}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	if on != nil {
		h.Server.Listener.Close()
		h.Server.Listener = on
	}
	h.Server.TLS = &tls.Config{Certificates: []tls.Certificate{h.cert}}
	h.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if scheme == "http" {
		h.Server.Start()
	} else {
		h.Server.StartTLS()
	}
	t.Cleanup(h.Server.Close)
	_, h.port, _ = net.SplitHostPort(h.Server.Listener.Addr().String())
	h.hub, h.store, h.files = net.JoinHostPort(hub, h.port), net.JoinHostPort(store, h.port), net.JoinHostPort(files, h.port)
	return h
}

// certificate makes one for the names of the hub, signed by itself.
func certificate(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hubtest"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{"localhost", "hub.test", "storage.test", "files.test", "*.hub.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Endpoint is the address of the hub.
func (h *Hub) Endpoint() string { return h.scheme + "://" + h.hub }

// File is the address of a file on a server that is not the hub.
func (h *Hub) File(name string) string { return h.scheme + "://" + h.files + "/plain/" + name }

// Certificate is that of the hub, in PEM, for who is to trust it.
func (h *Hub) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.cert.Certificate[0]})
}

// Transport makes a transport find the hub by its names and trust it.
func (h *Hub) Transport(t *http.Transport) {
	pool := x509.NewCertPool()
	if cert, err := x509.ParseCertificate(h.cert.Certificate[0]); err == nil {
		pool.AddCert(cert)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool}
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, port, _ := net.SplitHostPort(address); port == h.port {
			address = h.Server.Listener.Addr().String()
		}
		return dial(ctx, network, address)
	}
}

// Add puts a file of these bytes into a repository.
func (h *Hub) Add(repo, path string, r io.ReaderAt, size int64) {
	hash := sha256.New()
	io.Copy(hash, io.NewSectionReader(r, 0, size))
	h.AddStated(repo, path, r, size, hex.EncodeToString(hash.Sum(nil)))
}

// AddStated puts a file into a repository that says its SHA-256 is the given one.
func (h *Hub) AddStated(repo, path string, r io.ReaderAt, size int64, sha256 string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.repos[repo] == nil {
		h.repos[repo] = map[string]*content{}
	}
	h.repos[repo][path] = &content{r, size, sha256, true}
}

// AddFolder puts the regular files of a folder into a repository, below dir there.
func (h *Hub) AddFolder(t testing.TB, repo, dir, from string) {
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		h.Add(repo, joinPath(dir, e.Name()), f, info.Size())
	}
}

// Requests returns those that came so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.log...)
}

// Reset forgets the requests.
func (h *Hub) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = nil
	h.Written.Store(0)
}

// Mark returns the entity tag that the storage sends with a file.
func (h *Hub) Mark(repo, path string) string { return storageTag(h.repo(repo)[path]) }

func storageTag(file *content) string { return `"cdn-` + file.sha256[:12] + `"` }

// OnStorage reports whether a request is one to the storage.
func (h *Hub) OnStorage(r *http.Request) bool {
	return len(r.URL.Path) > 7 && r.URL.Path[:7] == "/store/"
}
