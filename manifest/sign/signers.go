package sign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Signers are the keys that somebody trusts, and what for: an allowed_signers file of OpenSSH
// (ssh-keygen(1), ALLOWED SIGNERS).
type Signers []Signer

// A Signer is one line of the file.
type Signer struct {
	Line       int
	Principals string // patterns, with commas between
	Key        ssh.PublicKey
	Authority  bool      // the key certifies others
	Namespaces string    // patterns, with commas between; empty for all
	After      time.Time // zero for always
	Before     time.Time // zero for ever
}

// maxSigners bounds an allowed_signers file.
const maxSigners = 4 << 20

// ReadSigners reads an allowed_signers file. Times without a Z are in the given location.
// Every line must be understood: one that is passed over could be the one that forbids.
func ReadSigners(text []byte, local *time.Location) (Signers, error) {
	if len(text) > maxSigners {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(text), maxSigners)
	}
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return nil, ErrPrivate
	}
	var list Signers
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, maxSigners)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := readSigner(line, local)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		s.Line = n
		list = append(list, s)
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("it names no signers")
	}
	return list, nil
}

// readSigner reads PRINCIPALS [OPTIONS] KEYTYPE KEY [COMMENT].
func readSigner(line string, local *time.Location) (Signer, error) {
	var s Signer
	var rest string
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		var closed bool
		if s.Principals, rest, closed = strings.Cut(quoted, `"`); !closed {
			return s, errors.New("a quotation mark is not closed")
		}
	} else if s.Principals, rest, _ = cutBlank(line); rest == "" {
		return s, errors.New("want PRINCIPALS, a kind of key and a key")
	}
	if s.Principals == "" {
		return s, errors.New("no principals are given")
	}
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil {
		return s, fmt.Errorf("want a kind of key and a key behind the principals: %w", err)
	}
	if len(bytes.TrimSpace(more)) > 0 {
		return s, errors.New("there is more than one key")
	}
	s.Key = key
	for _, o := range options {
		if err := s.option(o, local); err != nil {
			return s, err
		}
	}
	return s, nil
}

func cutBlank(s string) (before, after string, found bool) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, "", false
	}
	return s[:i], strings.TrimLeft(s[i:], " \t"), true
}

// option takes one option of a line; one that is not known is an error.
func (s *Signer) option(text string, local *time.Location) (err error) {
	name, value, _ := strings.Cut(text, "=")
	value = strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
	switch strings.ToLower(name) {
	case "cert-authority":
		s.Authority = true
	case "namespaces":
		if s.Namespaces = value; value == "" {
			return errors.New("option namespaces is empty")
		}
	case "valid-after":
		s.After, err = readTime(value, local)
	case "valid-before":
		s.Before, err = readTime(value, local)
	default:
		return fmt.Errorf("option %q is not known", name)
	}
	if err == nil && !s.After.IsZero() && !s.Before.IsZero() && !s.Before.After(s.After) {
		return errors.New("valid-before is not later than valid-after")
	}
	return err
}

// readTime reads YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z behind for UTC.
func readTime(text string, local *time.Location) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		local = time.UTC
	}
	for _, form := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(form) {
			if t, err := time.ParseInLocation(form, digits, local); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("time is %q, want YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z for UTC", text)
}

// A SignerError says why no line vouches for a signature.
type SignerError struct {
	Fingerprint string
	Identity    string   // asked for, or ""
	Reasons     []string // what kept lines with the key from vouching
}

func (e *SignerError) Error() string {
	who := ""
	if e.Identity != "" {
		who = fmt.Sprintf(" of %q", e.Identity)
	}
	if len(e.Reasons) == 0 {
		return fmt.Sprintf("key %s is not among the allowed signers%s", e.Fingerprint, who)
	}
	return fmt.Sprintf("key %s is not among the allowed signers%s: %s", e.Fingerprint, who, strings.Join(e.Reasons, "; "))
}

// Find returns the first line that vouches for the signature's key at the given time: for the
// identity, or for anybody when that is empty. The signature itself is checked by
// [SSHSignature.Check]. The error is a [*SignerError].
func (list Signers) Find(s *SSHSignature, identity string, now time.Time) (*Signer, error) {
	missing := &SignerError{Fingerprint: s.Fingerprint(), Identity: identity}
	for i := range list {
		signer := &list[i]
		if !signer.holds(s.parsed.PublicKey) {
			continue
		}
		err := signer.vouches(s, identity, now)
		if err == nil {
			return signer, nil
		}
		missing.Reasons = append(missing.Reasons, fmt.Sprintf("line %d: %v", signer.Line, err))
	}
	return nil, missing
}

// holds reports whether the line is about the key: it names it, or the authority of the
// certificate that the key comes with.
func (s *Signer) holds(key ssh.PublicKey) bool {
	if c, ok := key.(*ssh.Certificate); ok {
		return s.Authority && sameKey(s.Key, c.SignatureKey)
	}
	return !s.Authority && sameKey(s.Key, key)
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// vouches says why the line does not vouch for a signature, nil if it does.
func (s *Signer) vouches(signature *SSHSignature, identity string, now time.Time) error {
	switch {
	case s.Namespaces != "" && !matchList(s.Namespaces, signature.Namespace()):
		return fmt.Errorf("it is for the namespaces %q, want %q", s.Namespaces, signature.Namespace())
	case identity != "" && !matchList(s.Principals, identity):
		return fmt.Errorf("it is for %q", s.Principals)
	case !s.After.IsZero() && now.Before(s.After):
		return fmt.Errorf("it is valid only after %s", s.After.UTC().Format(time.RFC3339))
	case !s.Before.IsZero() && now.After(s.Before):
		return fmt.Errorf("it was valid before %s", s.Before.UTC().Format(time.RFC3339))
	}
	c, ok := signature.parsed.PublicKey.(*ssh.Certificate)
	if !ok {
		return nil
	}
	if identity != "" {
		return certified(c, identity, now)
	}
	err := errors.New("the signer's certificate names nobody that the line is for")
	for _, principal := range c.ValidPrincipals {
		if matchList(s.Principals, principal) {
			if err = certified(c, principal, now); err == nil {
				return nil
			}
		}
	}
	return err
}

// matchList matches a word with a list of patterns as OpenSSH does (ssh_config(5), PATTERNS):
// * and ? are wild, and a pattern that begins with ! forbids.
func matchList(patterns, word string) bool {
	matched := false
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matchPattern(pattern, word) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matchPattern knows * and ? only; what path.Match would take for more is escaped, and no
// character stops a *.
func matchPattern(pattern, word string) bool {
	escaped := strings.NewReplacer(`\`, `\\`, `[`, `\[`, "/", "\x00").Replace(pattern)
	ok, err := path.Match(escaped, strings.ReplaceAll(word, "/", "\x00"))
	return err == nil && ok
}
