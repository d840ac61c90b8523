package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// ask makes one request for the bytes from off to end, and returns how many came.
func (f *File) ask(ctx context.Context, off, end int64, w sink) (int64, error) {
	c := f.client
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	ctx, watch := c.watched(ctx)
	defer watch.stop()
	resp, at, err := f.answer(ctx, off, end)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer resp.Body.Close()
	defer watch.stop() // before the body is closed: nothing more of it is wanted
	n, err := f.accept(resp, at, off, end)
	if err != nil {
		return 0, err
	}
	return c.take(ctx, watch, resp.Body, n, w)
}

// answer asks for a range where the file's bytes are, finding out first where that is.
func (f *File) answer(ctx context.Context, off, end int64) (*http.Response, *location, error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, end-1)}}
	f.locating.Lock()
	f.mu.Lock()
	at, changed := f.at, f.changed
	f.mu.Unlock()
	if changed != nil {
		f.locating.Unlock()
		return nil, nil, backoff.Permanent(changed)
	}
	if at != nil && at.url != nil {
		f.locating.Unlock()
		resp, _, err := f.client.follow(ctx, at.url, header, func(*url.URL, *http.Response) error { return nil })
		return resp, at, err
	}
	defer f.locating.Unlock()
	hops := 0
	resp, u, err := f.client.follow(ctx, f.origin, header, func(from *url.URL, resp *http.Response) error {
		hops++
		return f.checkStated(resp.Header)
	})
	if err != nil {
		return nil, nil, err
	}
	if hops == 0 {
		if err := f.checkStated(resp.Header); err != nil {
			resp.Body.Close()
			return nil, nil, err
		}
	}
	next := &location{url: u, direct: hops == 0, renewed: at != nil}
	f.mu.Lock()
	f.at = next
	f.mu.Unlock()
	return resp, next, nil
}

// checkStated compares what the hub says of the file with what its listing said.
func (f *File) checkStated(h http.Header) error {
	if f.hub == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	want := f.id.SHA256
	if want == "" {
		want = f.id.ETag
	}
	for _, fact := range []struct{ what, got, want string }{
		{"commit", h.Get("X-Repo-Commit"), f.id.Commit},
		{"size", h.Get("X-Linked-Size"), fmt.Sprint(f.id.Size)},
		{"etag", plainTag(h.Get("X-Linked-Etag")), want},
	} {
		if fact.got != "" && fact.want != "" && fact.got != fact.want {
			f.changed = fmt.Errorf("%w: its %s is %s, the listing says %s", ErrChanged, fact.what, scrub(fact.got), fact.want)
			return backoff.Permanent(f.changed)
		}
	}
	return nil
}

// plainTag returns an entity tag without quotes and mark of weakness.
func plainTag(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// accept looks at an answer before its body is read, and returns how many bytes of the
// range it brings.
func (f *File) accept(resp *http.Response, at *location, off, end int64) (int64, error) {
	whole := resp.Header.Get("Content-Range") == "" && off == 0 && resp.ContentLength >= 0 && resp.ContentLength <= end
	switch {
	case resp.StatusCode != http.StatusPartialContent && resp.StatusCode != http.StatusOK:
		return 0, f.refused(resp, at)
	case encoded(resp.Header):
		return 0, backoff.Permanent(fmt.Errorf("the server sends the range in the encoding %q, which was not asked for", scrub(resp.Header.Get("Content-Encoding"))))
	case resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Range") == "" && !whole:
		return 0, backoff.Permanent(ErrNoRanges)
	}
	from, to, total := int64(0), resp.ContentLength, resp.ContentLength
	if !(whole && resp.StatusCode == http.StatusOK) {
		var err error
		if from, to, total, err = contentRange(resp.Header); err != nil {
			return 0, backoff.Permanent(err)
		}
	}
	if err := f.same(resp.Header, at, total); err != nil {
		return 0, err
	}
	end = min(end, f.Size())
	switch {
	case from != off || to > end || to <= from && off < end:
		return 0, backoff.Permanent(fmt.Errorf("the server sends bytes %d to %d, asked for were %d to %d", from, to-1, off, end-1))
	case resp.ContentLength >= 0 && resp.ContentLength != to-from:
		return 0, backoff.Permanent(fmt.Errorf("the server announces %d bytes of a range of %d", resp.ContentLength, to-from))
	}
	return to - from, nil
}

func encoded(h http.Header) bool {
	for _, coding := range h.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return true
		}
	}
	return false
}

// contentRange reads "bytes 0-9/100" as 0, 10 and 100; the total is -1 for "*".
func contentRange(h http.Header) (from, to, total int64, err error) {
	text := strings.ToLower(h.Get("Content-Range"))
	var last int64
	switch n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &from, &last, &total); {
	case n == 3 && text == fmt.Sprintf("bytes %d-%d/%d", from, last, total):
	case n == 2 && text == fmt.Sprintf("bytes %d-%d/*", from, last):
		total = -1
	default:
		return 0, 0, 0, fmt.Errorf("the server does not say which range it sends: Content-Range is %q", scrub(text))
	}
	if from < 0 || last < from || last == 1<<63-1 || total >= 0 && last >= total {
		return 0, 0, 0, fmt.Errorf("the server sends an impossible range: Content-Range is %q", scrub(text))
	}
	return from, last + 1, total, nil
}

// same compares an answer with those before it, of the file and of the location.
func (f *File) same(h http.Header, at *location, total int64) error {
	tag, modified := h.Get("ETag"), h.Get("Last-Modified")
	state := tag
	if state == "" {
		state = modified
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.id.Size < 0 {
		if total < 0 {
			return backoff.Permanent(errors.New("the server does not say how large the file is"))
		}
		f.id.Size, f.id.ETag, f.id.Modified = total, tag, modified
	}
	known := f.id.ETag
	if known == "" {
		known = f.id.Modified
	}
	switch {
	case total >= 0 && total != f.id.Size:
		f.changed = fmt.Errorf("%w: it has %d bytes, had %d", ErrChanged, total, f.id.Size)
	case f.hub == nil && plainTag(state) != plainTag(known):
		f.changed = fmt.Errorf("%w: the server's mark of it is %q, was %q", ErrChanged, scrub(state), scrub(known))
	case at.served && plainTag(state) != plainTag(at.state):
		f.changed = fmt.Errorf("%w: the storage's mark of it is %q, was %q", ErrChanged, scrub(state), scrub(at.state))
	}
	if f.changed != nil {
		return backoff.Permanent(f.changed)
	}
	at.served, at.state = true, state
	return nil
}

// refused turns an answer without bytes into an error, and has a storage address that was
// refused renewed: once, unless the new one was good for something.
func (f *File) refused(resp *http.Response, at *location) error {
	status := statusError(resp)
	switch resp.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return f.outside(resp, status)
	case http.StatusForbidden, http.StatusUnauthorized, http.StatusGone, http.StatusBadRequest, http.StatusNotFound:
		if at.direct && f.hub != nil {
			return backoff.Permanent(f.hub.explain(status))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.at != at: // somebody has seen to it
			return errAgain
		case at.direct || at.renewed && !at.served:
			return backoff.Permanent(status)
		}
		f.at = &location{} // no address, but one was refused
		return errAgain
	}
	return later(status, resp.Header, clock(resp.Header))
}

// outside explains a 416, which tells the size of the file.
func (f *File) outside(resp *http.Response, status *StatusError) error {
	var total int64
	if n, _ := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes */%d", &total); n != 1 {
		return backoff.Permanent(status)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.id.Size < 0 && total == 0:
		f.id.Size, f.id.ETag, f.id.Modified = 0, resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		return nil
	case f.id.Size >= 0 && total != f.id.Size:
		f.changed = fmt.Errorf("%w: it has %d bytes, had %d", ErrChanged, total, f.id.Size)
		return backoff.Permanent(f.changed)
	}
	return backoff.Permanent(status)
}

// clock returns the time by a server's clock: that is what the dates it sends are about.
func clock(h http.Header) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return time.Now()
}
