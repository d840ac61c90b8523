package remote

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode"

	"ggufreap/gguf/pattern"
)

// A StatusError is an answer that is not what was asked for.
type StatusError struct {
	Code   int    // HTTP status
	Reason string // the hub's name of the fault, such as GatedRepo; or ""
	Words  string // what the server said, without addresses' queries; or ""
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s", e.Code, http.StatusText(e.Code))
	switch {
	case e.Reason != "" && e.Words != "":
		return text + ": " + e.Reason + ": " + e.Words
	case e.Reason+e.Words != "":
		return text + ": " + e.Reason + e.Words
	}
	return text
}

// Is reports a missing file as [fs.ErrNotExist].
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && (e.Code == http.StatusNotFound || e.Code == http.StatusGone)
}

// An AccessError says that the hub does not give a repository to this user.
type AccessError struct {
	Repo  string
	Gated bool // access can be asked for on the repository's page
	Token bool // a token was sent
	err   error
}

func (e *AccessError) Error() string {
	switch {
	case e.Gated && e.Token:
		return fmt.Sprintf("%s: is gated, and the account of this token has no access", e.Repo)
	case e.Gated:
		return fmt.Sprintf("%s: is gated: it is given to accounts with access only, and no token was sent", e.Repo)
	case e.Token:
		return fmt.Sprintf("%s: is not there, or the account of this token may not see it", e.Repo)
	}
	return fmt.Sprintf("%s: is not there, or private: no token was sent", e.Repo)
}

func (e *AccessError) Unwrap() error { return e.err }

// ErrNoRanges says that a server sends whole files only.
var ErrNoRanges = errors.New("the server answers a request for a range with the whole file: it cannot serve parts of files")

// ErrChanged says that a file is no longer the one that was found first.
var ErrChanged = errors.New("the file changed on the server while in use")

// A lasting fault is one that outlasted all tries: another one may succeed later.
type lastingFault struct{ error }

func (e lastingFault) Unwrap() error { return e.error }

// MachineFault tells package gguf that nothing is known of the file.
func (lastingFault) MachineFault() bool { return true }

// errStalled says that a connection brought next to nothing for too long.
var errStalled = errors.New("the connection stalled")

// maxWords bounds what is read of an error's body, and maxShown what is repeated of it.
const (
	maxWords = 4 << 10
	maxShown = 300
)

// statusError reads what a server says of a fault. It takes the body's first bytes only.
func statusError(resp *http.Response) *StatusError {
	e := &StatusError{Code: resp.StatusCode, Reason: scrub(resp.Header.Get("X-Error-Code")), Words: scrub(resp.Header.Get("X-Error-Message"))}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxWords)) // words that break off are words too
	if e.Words == "" && resp.Header.Get("Content-Encoding") == "" {
		e.Words = bodyWords(string(body))
	}
	return e
}

// bodyWords returns what a body says in text or in the form of S3's errors. Pages of HTML
// say nothing.
func bodyWords(body string) string {
	var s3 struct {
		Code    string
		Message string
	}
	trimmed := strings.TrimSpace(body)
	switch {
	case xml.Unmarshal([]byte(trimmed), &s3) == nil && s3.Code != "":
		return scrub(s3.Code + ": " + s3.Message)
	case strings.HasPrefix(trimmed, "<"):
		return ""
	}
	return scrub(trimmed)
}

// secrets are parts of texts that may be signatures or tokens.
var secrets = pattern.Lazy(`\?[^\s"'<>]*|\bhf_\w+|(?i)\b(bearer|x-amz-[a-z-]+)\b\s*[=: ]\s*\S+|(?i)\b(signature|key-pair-id|policy|credential)\b\s*[=:]\s*\S+`)

// scrub makes a server's words fit for a message: one line, no secrets, not endless.
func scrub(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(secrets().ReplaceAllString(s, "")), " ")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "..."
	}
	return s
}
