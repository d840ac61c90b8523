package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"ggufreap/gguf/pattern"
)

// A Method is how the signer of a bundle is known.
type Method string

// The methods of the specification.
const (
	KeyMethod         Method = "key"
	CertificateMethod Method = "certificate"
	SigstoreMethod    Method = "sigstore" // a short-lived certificate and a log entry: not checked here
)

// ErrWrongSignature is returned where a signature is not of what stands under it, by the
// key that was given.
var ErrWrongSignature = errors.New("the signature does not fit")

// A Bundle is a signature in the form of OpenSSF Model Signing 1.0: a Sigstore bundle whose
// envelope holds a statement about a model's files. What the statement says is only to be
// had through a check of the signature, or by [Bundle.Unchecked].
type Bundle struct {
	Method Method
	// Hint identifies the key of the method "key", if the bundle says: usually a [KeyHint].
	Hint string

	chain    []*x509.Certificate // of the method "certificate", the signer's first
	envelope dsse.Envelope
}

// The parts of a bundle's text.
type (
	bundleText struct {
		MediaType    string         `json:"mediaType"`
		Verification *materialText  `json:"verificationMaterial"`
		Envelope     *dsse.Envelope `json:"dsseEnvelope"`
	}
	materialText struct {
		PublicKey   *keyText         `json:"publicKey,omitzero"`
		Chain       *chainText       `json:"x509CertificateChain,omitzero"`
		Certificate *certificateText `json:"certificate,omitzero"`
		LogEntries  []jsontext.Value `json:"tlogEntries,omitzero"`
	}
	keyText struct {
		Hint     string `json:"hint,omitzero"`
		RawBytes string `json:"rawBytes,omitzero"` // in bundles made before version 1.1 of the reference tool
	}
	chainText struct {
		Certificates []certificateText `json:"certificates"`
	}
	certificateText struct {
		RawBytes string `json:"rawBytes"`
	}
)

const mediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"

var mediaTypes = pattern.Lazy(`^application/vnd\.dev\.sigstore\.bundle(\.v0\.[123]\+json|\+json;version=0\.[123])$`)

// ParseBundle reads a bundle and checks its form, not its signature.
func ParseBundle(text []byte) (*Bundle, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the bundle has %d bytes, want at most %d", len(text), maxDocument)
	}
	var doc bundleText
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	switch {
	case !mediaTypes().MatchString(doc.MediaType):
		return nil, fmt.Errorf("the bundle's mediaType is %q, want %q", doc.MediaType, mediaType)
	case doc.Verification == nil:
		return nil, errors.New("the bundle has no verificationMaterial")
	case doc.Envelope == nil:
		return nil, errors.New("the bundle has no dsseEnvelope")
	}
	b := &Bundle{envelope: *doc.Envelope}
	if err := b.readMaterial(doc.Verification); err != nil {
		return nil, fmt.Errorf("the bundle's verificationMaterial: %w", err)
	}
	_, _, _, err := unseal(&b.envelope)
	return b, err
}

// readMaterial reads how the signer is known.
func (b *Bundle) readMaterial(m *materialText) error {
	given := 0
	if m.PublicKey != nil {
		given, b.Method = given+1, KeyMethod
		if err := b.readKey(m.PublicKey); err != nil {
			return err
		}
	}
	if m.Chain != nil {
		given, b.Method = given+1, CertificateMethod
		if err := b.readChain(m.Chain.Certificates); err != nil {
			return err
		}
	}
	if m.Certificate != nil {
		given, b.Method = given+1, SigstoreMethod
		if len(m.LogEntries) == 0 {
			return errors.New("a certificate of Sigstore without tlogEntries")
		}
	}
	if given != 1 {
		return fmt.Errorf("it has %d of publicKey, x509CertificateChain and certificate, want one", given)
	}
	return nil
}

func (b *Bundle) readKey(k *keyText) error {
	if k.Hint != "" {
		b.Hint = k.Hint
		return nil
	}
	if k.RawBytes == "" {
		return errors.New("publicKey has neither hint nor rawBytes")
	}
	der, err := base64.StdEncoding.DecodeString(k.RawBytes)
	if err != nil {
		return fmt.Errorf("publicKey.rawBytes: %w", err)
	}
	if block, _ := pem.Decode(der); block != nil {
		der = block.Bytes
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return fmt.Errorf("publicKey.rawBytes: %w", err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return fmt.Errorf("publicKey.rawBytes is %s, want one on the curve P-256, P-384 or P-521", keyKind(key))
	}
	b.Hint, err = KeyHint(public)
	return err
}

func (b *Bundle) readChain(certificates []certificateText) error {
	for i, c := range certificates {
		der, err := base64.StdEncoding.DecodeString(c.RawBytes)
		if err != nil {
			return fmt.Errorf("certificate %d: %w", i+1, err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("certificate %d: %w", i+1, err)
		}
		b.chain = append(b.chain, certificate)
	}
	if len(b.chain) == 0 {
		return errors.New("x509CertificateChain has no certificates")
	}
	return nil
}

// CheckKey checks the signature of the method "key" and returns what it signs.
func (b *Bundle) CheckKey(key *ecdsa.PublicKey) (*Model, error) {
	if b.Method != KeyMethod {
		return nil, fmt.Errorf("the signer is known by the method %q, not by a key", b.Method)
	}
	payload, err := unsealSigned(&b.envelope, key)
	if !errors.Is(err, ErrWrongSignature) {
		return readModel(payload, err)
	}
	hint, hintErr := KeyHint(key)
	if hintErr == nil && b.Hint != hint {
		return nil, fmt.Errorf("%w: it was made with another key: the bundle names %q, the key given is %q", err, b.Hint, hint)
	}
	return nil, err
}

// CheckChain checks the signature of the method "certificate": the chain must lead to one of
// the roots, the certificates be valid at the given time and meant for signing, and the
// signature be the first one's. It returns what it signs, and who the certificate says
// the signer is.
func (b *Bundle) CheckChain(roots []*x509.Certificate, now time.Time) (*Model, string, error) {
	if b.Method != CertificateMethod {
		return nil, "", fmt.Errorf("the signer is known by the method %q, not by a certificate", b.Method)
	}
	leaf := b.chain[0]
	o := x509.VerifyOptions{
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	for _, c := range roots {
		o.Roots.AddCert(c)
	}
	for _, c := range b.chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(o); err != nil {
		return nil, "", fmt.Errorf("the signer's certificate: %w", err)
	}
	if leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		return nil, "", errors.New("the signer's certificate is not meant for signatures")
	}
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, "", fmt.Errorf("the signer's certificate has %s, want one on the curve P-256, P-384 or P-521", keyKind(leaf.PublicKey))
	}
	payload, err := unsealSigned(&b.envelope, key)
	m, err := readModel(payload, err)
	return m, leaf.Subject.String(), err
}

// Unchecked returns what the bundle says without a check of who says so.
func (b *Bundle) Unchecked() (*Model, error) {
	payload, _, _, err := unseal(&b.envelope)
	return readModel(payload, err)
}

// SignModel makes a bundle of the method "key" over all files of a model: name is the folder's,
// for people only. The same arguments give the same bytes.
func SignModel(name string, files []File, key *ecdsa.PrivateKey) ([]byte, error) {
	m := newModel(name, files)
	if err := m.validate(); err != nil {
		return nil, err
	}
	payload, err := m.payload()
	if err != nil {
		return nil, err
	}
	signature, err := signBytes(key, dsse.PAE(payloadType, payload))
	if err != nil {
		return nil, err
	}
	hint, err := KeyHint(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	envelope := seal(payload, signature, "")
	return marshalDocument(bundleText{mediaType, &materialText{PublicKey: &keyText{Hint: hint}}, &envelope})
}

// IsBundle reports whether a text looks like a bundle, to tell it from a signature of another
// kind that has the same name.
func IsBundle(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && bytes.Contains(text, []byte("dsseEnvelope"))
}
