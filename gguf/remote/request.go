package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxHops bounds the redirects of one request: the hub needs one, a renamed repository two.
const maxHops = 8

// bodyStep is how much of a body is taken at a time where a rate is to be kept to.
const bodyStep = 64 << 10

// send makes one request, without following anything.
func (c *Client) send(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	if c.options.Offline {
		return nil, backoff.Permanent(ErrOffline)
	}
	if err := c.waitOut(ctx); err != nil {
		return nil, err
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	req.Header.Set("Accept-Encoding", "identity")
	if c.options.UserAgent != "" {
		req.Header.Set("User-Agent", c.options.UserAgent)
	}
	if c.sendsToken(u) {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	} else if u.User != nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	c.requests.Add(1)
	resp, err := c.transport.RoundTrip(req)
	if err != nil && strings.Contains(err.Error(), "response headers exceeded") {
		return nil, backoff.Permanent(fmt.Errorf("%s sends a header of more than %d bytes", u.Host, int64(maxHeader)))
	}
	return resp, err
}

// sendsToken reports whether the token goes with a request: to the hub's own host, and
// over https.
func (c *Client) sendsToken(u *url.URL) bool {
	return c.options.Token != "" && u.Scheme == "https" && c.endpoint.Scheme == "https" && strings.EqualFold(hostPort(u), hostPort(c.endpoint))
}

// hostPort returns host and port, the port of https where none is named.
func hostPort(u *url.URL) string {
	if u.Port() == "" {
		return u.Host + ":443"
	}
	return u.Host
}

// waitOut waits until servers that asked for a pause want requests again.
func (c *Client) waitOut(ctx context.Context) error {
	c.pauseMu.Lock()
	wait := time.Until(c.pause)
	c.pauseMu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pauseFor makes all requests wait.
func (c *Client) pauseFor(wait time.Duration) {
	c.pauseMu.Lock()
	defer c.pauseMu.Unlock()
	if until := time.Now().Add(wait); until.After(c.pause) {
		c.pause = until
	}
}

// follow makes a request and those that redirects lead to. It returns the first answer that
// is none, and the address that gave it; hop sees the others.
func (c *Client) follow(ctx context.Context, u *url.URL, header http.Header, hop func(from *url.URL, resp *http.Response) error) (*http.Response, *url.URL, error) {
	for range maxHops {
		resp, err := c.send(ctx, u, header)
		if err != nil {
			return nil, u, err
		}
		if !isRedirect(resp.StatusCode) {
			return resp, u, nil
		}
		resp.Body.Close()
		if err := hop(u, resp); err != nil {
			return nil, u, err
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		switch {
		case err != nil || resp.Header.Get("Location") == "" || next.Host == "":
			return nil, u, backoff.Permanent(fmt.Errorf("%s redirects to no address", u.Host))
		case next.Scheme != "https" && next.Scheme != "http":
			return nil, u, backoff.Permanent(fmt.Errorf("%s redirects to %q, which is neither https nor http", u.Host, scrub(next.Scheme)))
		case u.Scheme == "https" && next.Scheme == "http":
			return nil, u, backoff.Permanent(fmt.Errorf("%s redirects from https to %s, which is not followed: others could read and change what comes", u.Host, next.Scheme))
		}
		if next.User == nil && next.Scheme == u.Scheme && strings.EqualFold(next.Host, u.Host) {
			next.User = u.User
		}
		u = next
	}
	return nil, u, backoff.Permanent(fmt.Errorf("%s redirects in a circle: %d times", u.Host, maxHops))
}

func isRedirect(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// A watch ends a request that brings next to nothing for too long.
type watch struct {
	cancel  context.CancelCauseFunc
	idle    time.Duration
	timer   *time.Timer
	bytes   atomic.Int64 // since the last look
	waiting atomic.Bool  // for the limit that the caller has set
}

// trickle is how many bytes a second are as good as none.
const trickle = 128

// watched returns a context that ends when the request stalls.
func (c *Client) watched(ctx context.Context) (context.Context, *watch) {
	w := &watch{idle: c.options.Idle}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.idle, w.look)
	return ctx, w
}

func (w *watch) look() {
	least := max(1, int64(w.idle.Seconds()*trickle))
	if got := w.bytes.Swap(0); got < least && !w.waiting.Load() {
		w.cancel(fmt.Errorf("%w: %d bytes in %s", errStalled, got, w.idle))
		return
	}
	w.timer.Reset(w.idle)
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause returns why a watched request failed.
func cause(ctx context.Context, err error) error {
	if stalled := context.Cause(ctx); err != nil && errors.Is(stalled, errStalled) {
		return stalled
	}
	return err
}

// A sink takes the bytes of a range where they are to be, without another copy.
type sink interface {
	room() []byte // for the next bytes, not empty while some are wanted
	took(n int)   // of them have come
}

// take reads n bytes of a body into w.
func (c *Client) take(ctx context.Context, watch *watch, body io.Reader, n int64, w sink) (int64, error) {
	var done int64
	for done < n {
		buf := w.room()
		if c.limiter != nil {
			buf = buf[:min(len(buf), bodyStep)]
		}
		got, err := body.Read(buf[:min(n-done, int64(len(buf)))])
		if got > 0 {
			watch.bytes.Add(int64(got))
			c.bytes.Add(int64(got))
			w.took(got)
			done += int64(got)
			if err := c.limit(ctx, watch, got); err != nil {
				return done, err
			}
		}
		if done < n && err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return done, cause(ctx, err)
		}
	}
	return done, nil
}

// limit waits as long as n bytes may take.
func (c *Client) limit(ctx context.Context, watch *watch, n int) error {
	if c.limiter == nil {
		return nil
	}
	watch.waiting.Store(true)
	defer watch.waiting.Store(false)
	watch.bytes.Add(1 << 20) // the time of waiting is not the server's
	return c.limiter.WaitN(ctx, n)
}
