package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

const list = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8  plan.json\n"

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// keygen makes an SSH key of a kind in dir, and returns the text of its public half.
func keygen(t *testing.T, dir, name string, kind ...string) string {
	t.Helper()
	run(t, dir, "", append([]string{"ssh-keygen", "-q", "-N", "", "-C", "me", "-f", name, "-t"}, kind...)...)
	return strings.TrimSpace(string(read(t, filepath.Join(dir, name+".pub"))))
}

func sshFingerprint(t *testing.T, dir, name string) string {
	t.Helper()
	return strings.Fields(run(t, dir, "", "ssh-keygen", "-l", "-f", name))[1]
}

func parseSigners(t *testing.T, text string) Signers {
	t.Helper()
	s, err := ReadSigners([]byte(text), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSSHBothWays signs here and checks with ssh-keygen, and the other way round.
func TestSSHBothWays(t *testing.T) {
	for _, kind := range [][]string{{"ed25519"}, {"ecdsa", "-b", "384"}, {"rsa", "-b", "3072"}} {
		t.Run(kind[0], func(t *testing.T) {
			dir := t.TempDir()
			public := keygen(t, dir, "key", kind...)
			write(t, filepath.Join(dir, "list"), []byte(list))
			write(t, filepath.Join(dir, "allowed"), []byte(`me@example.com namespaces="`+Namespace+`" `+public+"\n"))

			key, err := ReadSSHKey(read(t, filepath.Join(dir, "key")))
			if err != nil {
				t.Fatal(err)
			}
			ours, err := SignSSH([]byte(list), key)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "ours"), ours)
			run(t, dir, list, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me@example.com", "-n", Namespace, "-s", "ours")
			if out, err := try(dir, list+"x", "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me@example.com", "-n", Namespace, "-s", "ours"); err == nil {
				t.Errorf("ssh-keygen takes our signature for one of another list: %s", out)
			}

			run(t, dir, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "key", "-n", Namespace, "list")
			theirs := read(t, filepath.Join(dir, "list.sig"))
			s, err := ParseSSH(theirs)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check([]byte(list)); err != nil {
				t.Error(err)
			}
			if err := s.Check([]byte(list + "x")); !errors.Is(err, ErrWrongSignature) {
				t.Errorf("of another list: got %v, want ErrWrongSignature", err)
			}
			if want := sshFingerprint(t, dir, "key"); s.Fingerprint() != want {
				t.Errorf("fingerprint is %s, ssh-keygen says %s", s.Fingerprint(), want)
			}
			signer, err := parseSigners(t, string(read(t, filepath.Join(dir, "allowed")))).Find(s, "me@example.com", noon)
			if err != nil || signer.Line != 1 {
				t.Errorf("got %v, %v", signer, err)
			}
		})
	}
}

func TestSSHSHA256(t *testing.T) {
	dir := t.TempDir()
	keygen(t, dir, "key", "ed25519")
	write(t, filepath.Join(dir, "list"), []byte(list))
	run(t, dir, "", "ssh-keygen", "-q", "-Y", "sign", "-O", "hashalg=sha256", "-f", "key", "-n", Namespace, "list")
	s, err := ParseSSH(read(t, filepath.Join(dir, "list.sig")))
	if err == nil {
		err = s.Check([]byte(list))
	}
	if err != nil {
		t.Error(err)
	}
}

func TestRefusedSSH(t *testing.T) {
	dir := t.TempDir()
	keygen(t, dir, "key", "ed25519")
	write(t, filepath.Join(dir, "list"), []byte(list))
	run(t, dir, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "key", "-n", "file", "list")
	s, err := ParseSSH(read(t, filepath.Join(dir, "list.sig")))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Check([]byte(list)), `it was made for "file"`)

	key, err := ReadSSHKey(read(t, filepath.Join(dir, "key")))
	if err != nil {
		t.Fatal(err)
	}
	good, err := SignSSH([]byte(list), key)
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"more behind":              string(good) + string(good),
		"something before":         "hello\n" + string(good),
		"is cut off or damaged":    string(good[:len(good)/2]),
		"no SSH signature found":   "",
		"the SSH signature: ":      "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n",
		"bytes, want at most 6553": strings.Repeat("x", MaxSSH+1),
	} {
		_, err := ParseSSH([]byte(text))
		wantError(t, err, want)
	}
	run(t, dir, "", "ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", "key")
	if _, err := ReadSSHKey(read(t, filepath.Join(dir, "key"))); !errors.Is(err, ErrEncrypted) {
		t.Errorf("a key with a passphrase: got %v, want ErrEncrypted", err)
	}
}

// TestAllowedSigners holds every kind of line to what ssh-keygen makes of it.
func TestAllowedSigners(t *testing.T) {
	dir := t.TempDir()
	public := keygen(t, dir, "key", "ed25519")
	other := keygen(t, dir, "other", "ed25519")
	write(t, filepath.Join(dir, "list"), []byte(list))
	run(t, dir, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "key", "-n", Namespace, "list")
	s, err := ParseSSH(read(t, filepath.Join(dir, "list.sig")))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "UTC")
	for i, c := range []struct{ line, identity, reason string }{
		{"me@example.com " + public, "me@example.com", ""},
		{"me@example.com " + public, "you@example.com", `it is for "me@example.com"`},
		{"me@example.com " + other, "me@example.com", "is not among the allowed signers"},
		{"*@example.com " + public, "me@example.com", ""},
		{"*@example.com,!me@* " + public, "me@example.com", "it is for"},
		{"m?@example.com " + public, "me@example.com", ""},
		{"m?@example.com " + public, "mee@example.com", "it is for"},
		{"a,me@example.com,b " + public, "me@example.com", ""},
		{`"me@example.com" ` + public, "me@example.com", ""},
		{"*/x " + public, "a/b/x", ""},
		{"[m]e " + public, "me", "it is for"},
		{"me namespaces=\"git," + Namespace + "\" " + public, "me", ""},
		{"me namespaces=\"ggufreap-*\" " + public, "me", ""},
		{"me namespaces=\"git\" " + public, "me", "it is for the namespaces"},
		{"me valid-after=\"20261130\" " + public, "me", ""},
		{"me valid-after=\"20261201\" " + public, "me", "valid only after"},
		{"me valid-after=\"202611301159\",valid-before=\"20261130120001Z\" " + public, "me", ""},
		{"me valid-before=\"202611301100\" " + public, "me", "it was valid before"},
		{"me cert-authority " + public, "me", "is not among the allowed signers"},
		{"# a comment\n\nme " + other + "\nme " + public + " a comment", "me", ""},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			signers := parseSigners(t, c.line)
			_, err := signers.Find(s, c.identity, noon)
			if c.reason == "" && err != nil {
				t.Errorf("%s: %v", c.line, err)
			}
			if c.reason != "" {
				wantError(t, err, c.reason)
			}
			write(t, filepath.Join(dir, "allowed"), []byte(c.line+"\n"))
			out, theirs := try(dir, list, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", c.identity, "-n", Namespace, "-s", "list.sig", "-O", "verify-time=20261130120000Z")
			if (theirs == nil) != (err == nil) {
				t.Errorf("%q for %q: we say %v, ssh-keygen %v: %s", c.line, c.identity, err, theirs, out)
			}
		})
	}
	for line, want := range map[string]string{
		"me verify-required " + public:          `option "verify-required" is not known`,
		"me":                                    "want PRINCIPALS",
		"me ssh-ed25519":                        "line 1",
		`"me ` + public:                         "not closed",
		"me valid-after=\"tomorrow\" " + public: "time is",
		"me namespaces=\"\" " + public:          "namespaces is empty",
		"me valid-after=\"20261202\",valid-before=\"20261201\" " + public: "not later",
		"# nobody": "names no signers",
	} {
		_, err := ReadSigners([]byte(line), time.UTC)
		wantError(t, err, want)
	}
}

// TestCertifiedSigner honours lines with cert-authority as ssh-keygen does.
func TestCertifiedSigner(t *testing.T) {
	dir := t.TempDir()
	ca := keygen(t, dir, "ca", "ed25519")
	public := keygen(t, dir, "key", "ed25519")
	write(t, filepath.Join(dir, "list"), []byte(list))
	sign := func(certificate ...string) *SSHSignature {
		t.Helper()
		os.Remove(filepath.Join(dir, "list.sig"))
		run(t, dir, "", append(append([]string{"ssh-keygen", "-q", "-s", "ca", "-I", "id"}, certificate...), "key.pub")...)
		run(t, dir, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "key-cert.pub", "-n", Namespace, "list")
		s, err := ParseSSH(read(t, filepath.Join(dir, "list.sig")))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check([]byte(list)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	at := func(s *SSHSignature, line, identity string) error {
		t.Helper()
		_, err := parseSigners(t, line).Find(s, identity, noon)
		write(t, filepath.Join(dir, "allowed"), []byte(line+"\n"))
		out, theirs := try(dir, list, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", identity, "-n", Namespace, "-s", "list.sig", "-O", "verify-time=20261130120000Z")
		if (theirs == nil) != (err == nil) {
			t.Errorf("%q: we say %v, ssh-keygen %v: %s", line, err, theirs, out)
		}
		return err
	}
	s := sign("-n", "me@example.com", "-V", "20261101:20261231")
	if want := sshFingerprint(t, dir, "key"); s.Fingerprint() != want {
		t.Errorf("fingerprint is %s, ssh-keygen says %s", s.Fingerprint(), want)
	}
	if err := at(s, "*@example.com cert-authority "+ca, "me@example.com"); err != nil {
		t.Error(err)
	}
	if err := at(s, "*@example.com cert-authority "+ca, "you@example.com"); err == nil {
		t.Error("a certificate vouches for somebody that it does not name")
	}
	if err := at(s, "*@example.com cert-authority "+public, "me@example.com"); err == nil {
		t.Error("a key that is no authority vouches for a certificate")
	}
	if _, err := parseSigners(t, "*@example.com cert-authority "+ca).Find(s, "", noon); err != nil {
		t.Error(err)
	}
	if _, err := parseSigners(t, "*@example.org cert-authority "+ca).Find(s, "", noon); err == nil {
		t.Error("a certificate of somebody whom the line is not for")
	}
	if err := at(sign("-n", "me@example.com", "-V", "20261001:20261031"), "*@example.com cert-authority "+ca, "me@example.com"); err == nil {
		t.Error("an expired certificate vouches")
	}
	if err := at(sign("-h", "-n", "me@example.com", "-V", "20261101:20261231"), "*@example.com cert-authority "+ca, "me@example.com"); err == nil {
		t.Error("a certificate of a host vouches")
	}
}

// A tokenKey signs as a security key does: over the hash of the message, the application, whether
// somebody touched it, and a counter.
type tokenKey struct {
	private ed25519.PrivateKey
	public  ssh.PublicKey
}

const tokenApplication = "ssh:"

func newTokenKey(t *testing.T) tokenKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Kind        string
		Public      []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, tokenApplication}))
	if err != nil {
		t.Fatal(err)
	}
	return tokenKey{private, key}
}

func (k tokenKey) PublicKey() ssh.PublicKey { return k.public }

func (k tokenKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	application, message := sha256.Sum256([]byte(tokenApplication)), sha256.Sum256(data)
	touched := []byte{1, 0, 0, 0, 7} // the flag, and the counter
	signed := slices.Concat(application[:], touched, message[:])
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, signed), Rest: touched}, nil
}

// TestSecurityKey takes the signatures of security keys, as ssh-keygen does.
func TestSecurityKey(t *testing.T) {
	key := newTokenKey(t)
	text, err := SignSSH([]byte(list), key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	allowed := "me " + string(ssh.MarshalAuthorizedKey(key.public))
	write(t, filepath.Join(dir, "allowed"), []byte(allowed))
	write(t, filepath.Join(dir, "sig"), text)
	run(t, dir, list, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me", "-n", Namespace, "-s", "sig")
	s, err := ParseSSH(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(list)); err != nil {
		t.Error(err)
	}
	if _, err := parseSigners(t, allowed).Find(s, "me", noon); err != nil {
		t.Error(err)
	}
	s.parsed.Signature.Rest[4]++ // the counter
	if err := s.Check([]byte(list)); !errors.Is(err, ErrWrongSignature) {
		t.Errorf("another counter: %v", err)
	}
}
