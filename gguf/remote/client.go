package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// DefaultEndpoint is the hub that addresses are about where nothing else is said.
const DefaultEndpoint = "https://huggingface.co"

const (
	// DefaultConnections is how many ranges are fetched at once where nobody says.
	DefaultConnections = 16
	maxConnections     = 256
	defaultIdle        = 30 * time.Second
	// maxHeader bounds what a server may send before a body. The hub's answers have
	// some kilobytes, most of it a signed address.
	maxHeader = 256 << 10
)

// Options say how a [Client] reaches servers.
type Options struct {
	// Endpoint is the address of the hub; "" is [DefaultEndpoint].
	Endpoint string
	// Token is sent to the endpoint's host, over https only.
	Token string
	// Offline forbids every request: all fail with [ErrOffline].
	Offline bool
	// Connections is how many ranges are fetched at once; 0 means 16.
	Connections int
	// Rate bounds the bytes of all bodies in a second; 0 means no bound.
	Rate int64
	// Idle is how long a connection may bring nothing before its range is asked for
	// again; 0 means 30 seconds. There is no bound on the whole.
	Idle time.Duration
	// Cache is a folder in which ranges are kept for other clients; "" keeps none.
	Cache string
	// UserAgent names the program to servers.
	UserAgent string
	// Transport, unless nil, changes the transport before its first use: proxies,
	// certificates.
	Transport func(t *http.Transport)
	// Notify, unless nil, is told why a request is made again and after which wait.
	Notify func(err error, wait time.Duration)

	firstWait time.Duration // before a second try; 0 means a second
}

// A Client fetches ranges of files. It is for one task: Close ends what it does.
type Client struct {
	options   Options
	endpoint  *url.URL
	transport *http.Transport
	ctx       context.Context
	cancel    context.CancelFunc
	slots     chan struct{} // one a connection
	limiter   *rate.Limiter
	queue     queue
	pool      pool
	group     sync.WaitGroup

	pauseMu sync.Mutex
	pause   time.Time // no request begins before: a server asked for that

	requests, bytes atomic.Int64
}

// ErrOffline says that requests are forbidden.
var ErrOffline = errors.New("requests are forbidden: offline")

// NewClient returns a client whose work ends with ctx: files are an [io.ReaderAt], whose
// calls have no context of their own.
func NewClient(ctx context.Context, o Options) (*Client, error) {
	if o.Endpoint == "" {
		o.Endpoint = DefaultEndpoint
	}
	endpoint, err := url.Parse(strings.TrimRight(o.Endpoint, "/"))
	if err != nil || endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "" || endpoint.User != nil || endpoint.RawQuery != "" {
		return nil, fmt.Errorf("the hub's endpoint is not an address like %s", DefaultEndpoint)
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	o.Connections = min(o.Connections, maxConnections)
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.firstWait <= 0 {
		o.firstWait = time.Second
	}
	c := &Client{options: o, endpoint: endpoint, slots: make(chan struct{}, o.Connections)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.transport = newTransport(o)
	c.queue.client = c
	if o.Rate > 0 {
		c.limiter = rate.NewLimiter(rate.Limit(o.Rate), bodyStep)
	}
	return c, nil
}

// newTransport returns a transport for bulk data. HTTP/1.1 gives each range a connection of
// its own; with HTTP/2 all would share one, and its window.
func newTransport(o Options) *http.Transport {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: o.Idle, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    o.Idle,
		ResponseHeaderTimeout:  o.Idle,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           4 * o.Connections,
		MaxIdleConnsPerHost:    o.Connections,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if o.Transport != nil {
		o.Transport(t)
	}
	return t
}

// Close ends all requests and returns when none is left. Reads that follow are errors.
func (c *Client) Close() error {
	c.cancel()
	c.group.Wait()
	c.transport.CloseIdleConnections()
	return nil
}

// Traffic returns how many requests were made and how many bytes of bodies came.
func (c *Client) Traffic() (requests, bytes int64) { return c.requests.Load(), c.bytes.Load() }
