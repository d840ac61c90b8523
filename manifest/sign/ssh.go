package sign

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// What SSH signatures are for: over a release's list of sums, and over a statement of
// provenance. One that was made for something else is not accepted.
const (
	Namespace           = "ggufreap-release@v1"
	ProvenanceNamespace = "ggufreap-provenance@v1"
)

// MaxSSH bounds the text of an SSH signature; those in use have less than 4 KiB.
const MaxSSH = 64 << 10

// ReadSSHKey reads a private key file of OpenSSH, or one in PEM. One with a passphrase is
// [ErrEncrypted]. Keys of security keys and of agents stay with ssh-keygen.
func ReadSSHKey(text []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(text)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		return nil, ErrEncrypted
	}
	return signer, err
}

// SignSSH signs a message, such as the bytes of MANIFEST.sha256, as ssh-keygen -Y sign -n
// [Namespace] does, and returns what it would write to MANIFEST.sha256.sig.
func SignSSH(message []byte, key ssh.Signer) ([]byte, error) {
	s, err := sshsig.Sign(bytes.NewReader(message), key, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, err
	}
	return sshsig.Armor(s), nil
}

// sshBlob makes a signature in the binary form, for a statement of provenance.
func sshBlob(message []byte, key ssh.Signer) ([]byte, error) {
	s, err := sshsig.Sign(bytes.NewReader(message), key, sshsig.HashSHA512, ProvenanceNamespace)
	if err != nil {
		return nil, err
	}
	return s.Marshal(), nil
}

func parseBlob(blob []byte) (*SSHSignature, error) {
	s, err := sshsig.ParseSignature(blob)
	if err != nil {
		return nil, errNotSSH
	}
	return &SSHSignature{s}, nil
}

// An SSHSignature is a parsed signature, which nothing was checked of yet.
type SSHSignature struct{ parsed *sshsig.Signature }

// ParseSSH reads the text of a signature.
func ParseSSH(text []byte) (*SSHSignature, error) {
	if len(text) > MaxSSH {
		return nil, fmt.Errorf("the signature has %d bytes, want at most %d", len(text), MaxSSH)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN "+sshsig.PEMType)):
		return nil, errors.New("the SSH signature is cut off or damaged: no line -----END SSH SIGNATURE----- follows its text")
	case block == nil || block.Type != sshsig.PEMType:
		return nil, errors.New("no SSH signature found, want text that begins with -----BEGIN SSH SIGNATURE-----")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more behind the SSH signature, want one signature and nothing else")
	case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")):
		return nil, errors.New("there is something before the SSH signature, want one signature and nothing else")
	}
	s, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the SSH signature: %w", err)
	}
	return &SSHSignature{s}, nil
}

// Fingerprint names the key that the signature says it was made with, as ssh-keygen -l does:
// "SHA256:...". For a certificate it is that of the certified key.
func (s *SSHSignature) Fingerprint() string {
	if c, ok := s.parsed.PublicKey.(*ssh.Certificate); ok {
		return ssh.FingerprintSHA256(c.Key)
	}
	return ssh.FingerprintSHA256(s.parsed.PublicKey)
}

// Namespace returns what the signature says that it is for.
func (s *SSHSignature) Namespace() string { return s.parsed.Namespace }

// Check reports whether the signature is of this message, made for a release's list of sums by
// the key that it names. Whose key that is [Signers.Find] tells. The error is
// [ErrWrongSignature] with a reason.
func (s *SSHSignature) Check(message []byte) error { return s.check(message, Namespace) }

func (s *SSHSignature) check(message []byte, namespace string) error {
	p := s.parsed
	switch {
	case p.Namespace != namespace:
		return fmt.Errorf("%w: it was made for %q, want %q", ErrWrongSignature, p.Namespace, namespace)
	case p.Signature.Format == ssh.KeyAlgoRSA: // SHA-1, which the form of signatures forbids
		return fmt.Errorf("%w: it is of the kind %q, which is not secure", ErrWrongSignature, p.Signature.Format)
	}
	if err := sshsig.Verify(bytes.NewReader(message), p, p.PublicKey, p.HashAlgorithm, namespace); err != nil {
		return fmt.Errorf("%w: it is of other bytes, or was damaged", ErrWrongSignature)
	}
	return nil
}

// certified checks a certificate against its authority for one principal at the given time.
func certified(c *ssh.Certificate, principal string, now time.Time) error {
	if c.CertType != ssh.UserCert {
		return errors.New("the signer's certificate is not one of a user")
	}
	if len(c.ValidPrincipals) == 0 {
		return errors.New("the signer's certificate names nobody")
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	return checker.CheckCert(principal, c)
}
