package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	maxTries = 6 // of what makes no progress
	maxWait  = 8 * time.Second
	// maxPause bounds what a server may ask to wait. The hub counts in windows of five
	// minutes.
	maxPause = 15 * time.Minute
	// progress is as many bytes of a range as make a broken one worth going on with at
	// once.
	progress = 64 << 10
)

// A retryLater is a fault after which the server says when to ask again.
type retryLater struct {
	error
	wait time.Duration
}

func (e *retryLater) Unwrap() error { return e.error }

// errAgain asks for another try at once.
var errAgain = errors.New("another try is wanted")

// retry does something until it succeeds, fails for good, or has failed often enough, which
// is a [lastingFault].
func (c *Client) retry(ctx context.Context, try func() error) error {
	var last error
	final := false
	schedule := backoff.NewExponentialBackOff()
	schedule.InitialInterval, schedule.MaxInterval, schedule.Multiplier = c.options.firstWait, maxWait, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		if err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() != nil {
			return struct{}{}, backoff.Permanent(ctx.Err())
		}
		if !errors.Is(err, errAgain) || last == nil {
			last = err
		}
		err = c.judge(err)
		_, final = errors.AsType[*backoff.PermanentError](err)
		return struct{}{}, err
	}, backoff.WithBackOff(schedule), backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(0), backoff.WithNotify(c.notify(&last)))
	if _, again := errors.AsType[*backoff.RetryAfterError](err); again {
		err = last // the wait is not what is wrong
	}
	if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok {
		err = permanent.Err
	}
	if err == nil || final || ctx.Err() != nil {
		return err
	}
	return lastingFault{err}
}

func (c *Client) notify(last *error) backoff.Notify {
	return func(_ error, wait time.Duration) {
		if c.options.Notify != nil && !errors.Is(*last, errAgain) {
			c.options.Notify(*last, wait)
		}
	}
}

// judge says of a fault whether and when another try makes sense.
func (c *Client) judge(err error) error {
	if _, final := errors.AsType[*backoff.PermanentError](err); final {
		return err
	}
	if errors.Is(err, errAgain) {
		return &backoff.RetryAfterError{}
	}
	if later, ok := errors.AsType[*retryLater](err); ok && later.wait > 0 { // at once is no word about when
		if later.wait > maxPause {
			return backoff.Permanent(lastingFault{fmt.Errorf("%w: it asks for a wait of %s", later.error, later.wait)})
		}
		c.pauseFor(later.wait)
		return &backoff.RetryAfterError{Duration: later.wait}
	}
	if status, ok := errors.AsType[*StatusError](err); ok && !temporary(status.Code) {
		return backoff.Permanent(err)
	}
	if c.isWrongHost(err) {
		return backoff.Permanent(err)
	}
	return err
}

func temporary(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return code >= 500
}

// isWrongHost reports faults that another try will not mend: certificates, and hosts that
// were never reached.
func (c *Client) isWrongHost(err error) bool {
	if _, wrong := errors.AsType[*tls.CertificateVerificationError](err); wrong {
		return true
	}
	if _, wrong := errors.AsType[tls.RecordHeaderError](err); wrong {
		return true
	}
	if c.bytes.Load() > 0 {
		return false
	}
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound || errors.Is(err, syscall.ECONNREFUSED)
}

// later adds to a status what its header says of when to ask again: Retry-After in seconds
// or as a date, or the hub's RateLimit, whose t are the seconds until r is not 0.
func later(e *StatusError, h http.Header, now time.Time) error {
	if !temporary(e.Code) {
		return e
	}
	if wait, ok := rateLimitWait(h.Values("RateLimit")); ok {
		return &retryLater{e, wait}
	}
	after := strings.TrimSpace(h.Get("Retry-After"))
	if wait, ok := secondsOf(after); ok {
		return &retryLater{e, wait}
	}
	if date, err := http.ParseTime(after); err == nil {
		return &retryLater{e, max(date.Sub(now), 0)}
	}
	return e
}

// secondsOf reads a number of seconds. One that is too large for a number of Go is as long as
// can be: a wait that nobody sits out.
func secondsOf(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < 0 {
		return 0, false
	}
	return time.Duration(min(n, int64(math.MaxInt64/time.Second)-1)) * time.Second, true
}

// rateLimitWait reads RateLimit: "resolvers";r=0;t=55, of several limits the longest wait, and
// its older form: limit=100, remaining=0, reset=55.
func rateLimitWait(values []string) (wait time.Duration, ok bool) {
	for _, value := range values {
		used, reset := false, time.Duration(-1)
		for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ';' || r == ',' }) {
			name, number, pair := strings.Cut(strings.TrimSpace(part), "=")
			seconds, isNumber := secondsOf(number)
			switch {
			case !pair: // the name of the next limit
				used, reset = false, -1
			case !isNumber:
			case name == "r" || name == "remaining":
				used = seconds == 0
			case name == "t" || name == "reset":
				reset = seconds
			}
			if used && reset >= 0 {
				wait, ok = max(wait, reset+time.Second), true
			}
		}
	}
	return wait, ok
}
