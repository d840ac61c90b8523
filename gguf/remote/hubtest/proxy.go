package hubtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Proxy passes requests on to a hub, by whatever name they call it, and keeps what it is told.
type Proxy struct {
	URL string

	hub *Hub
	mu  sync.Mutex
	log []ProxyRequest
}

// A ProxyRequest is what a proxy sees of a request: of one over https the host alone.
type ProxyRequest struct {
	Method, Host, Authorization, ProxyAuthorization string
}

// NewProxy starts a proxy.
func (h *Hub) NewProxy(t testing.TB) *Proxy {
	p := &Proxy{hub: h}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Requests returns those that came so far.
func (p *Proxy) Requests() []ProxyRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]ProxyRequest(nil), p.log...)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.log = append(p.log, ProxyRequest{r.Method, r.Host, r.Header.Get("Authorization"), r.Header.Get("Proxy-Authorization")})
	p.mu.Unlock()
	if r.Method == http.MethodConnect {
		p.connect(w)
		return
	}
	p.hub.Server.Config.Handler.ServeHTTP(w, r)
}

// connect joins the client with the hub until both are done.
func (p *Proxy) connect(w http.ResponseWriter) {
	hub, err := net.Dial("tcp", p.hub.Server.Listener.Addr().String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer hub.Close()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	go func() {
		io.Copy(hub, buffered)
		hub.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(client, hub)
}
