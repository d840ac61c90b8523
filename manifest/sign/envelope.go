package sign

import (
	"crypto/ecdsa"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"
)

// An Envelope is a signed statement of provenance, in DSSE's form. What it says is only to be
// had through a check of the signature, or by [Envelope.Unchecked].
type Envelope struct{ envelope dsse.Envelope }

// ParseEnvelope reads an envelope and checks its form, not its signature.
func ParseEnvelope(text []byte) (*Envelope, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the envelope has %d bytes, want at most %d", len(text), maxDocument)
	}
	var e Envelope
	if err := json.Unmarshal(text, &e.envelope); err != nil {
		return nil, fmt.Errorf("the envelope: %w", err)
	}
	_, _, _, err := unseal(&e.envelope)
	return &e, err
}

// KeyID returns what the envelope says of its key: a [KeyHint], or the fingerprint of an SSH
// key, "SHA256:...".
func (e *Envelope) KeyID() string { return e.envelope.Signatures[0].KeyID }

// SignStatement signs a statement with an EC key.
func SignStatement(statement []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	signature, err := signBytes(key, dsse.PAE(payloadType, statement))
	if err != nil {
		return nil, err
	}
	hint, err := KeyHint(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return marshalDocument(seal(statement, signature, hint))
}

// SignStatementSSH signs a statement with an SSH key: the signature is an SSH signature, in
// the binary form, over DSSE's bytes, for [ProvenanceNamespace].
func SignStatementSSH(statement []byte, key ssh.Signer) ([]byte, error) {
	signature, err := sshBlob(dsse.PAE(payloadType, statement), key)
	if err != nil {
		return nil, err
	}
	return marshalDocument(seal(statement, signature, ssh.FingerprintSHA256(key.PublicKey())))
}

// CheckKey checks the signature of an EC key and returns what was signed.
func (e *Envelope) CheckKey(key *ecdsa.PublicKey) (*Provenance, error) {
	payload, err := unsealSigned(&e.envelope, key)
	if err != nil {
		return nil, err
	}
	return readProvenance(payload)
}

// CheckSSH checks the signature of an SSH key and returns what was signed, and the signature,
// to be looked for among the allowed signers.
func (e *Envelope) CheckSSH() (*Provenance, *SSHSignature, error) {
	payload, signature, signed, err := unseal(&e.envelope)
	if err != nil {
		return nil, nil, err
	}
	s, err := parseBlob(signature)
	if err != nil {
		return nil, nil, err
	}
	if err := s.check(signed, ProvenanceNamespace); err != nil {
		return nil, nil, err
	}
	p, err := readProvenance(payload)
	return p, s, err
}

// IsSSH reports whether an SSH key made the signature.
func (e *Envelope) IsSSH() bool {
	_, signature, _, err := unseal(&e.envelope)
	if err != nil {
		return false
	}
	_, err = parseBlob(signature)
	return err == nil
}

// Unchecked returns what the envelope says without a check of who says so.
func (e *Envelope) Unchecked() (*Provenance, error) {
	payload, _, _, err := unseal(&e.envelope)
	if err != nil {
		return nil, err
	}
	return readProvenance(payload)
}

var errNotSSH = errors.New("the signature is not one of an SSH key")
