package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// ErrEncrypted is returned for a private key that a passphrase protects.
var ErrEncrypted = errors.New("the private key is protected by a passphrase")

// ErrPrivate is returned where a private key stands in place of a public one.
var ErrPrivate = errors.New("this is a private key, want the public one")

// ReadPrivateKey reads an EC private key from PEM text: "EC PRIVATE KEY" (SEC 1) or
// "PRIVATE KEY" (PKCS #8), on the curve P-256, P-384 or P-521. One with a passphrase is
// [ErrEncrypted].
func ReadPrivateKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, err
	}
	var key any
	switch block.Type {
	case "EC PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, ErrEncrypted
		}
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, ErrEncrypted
	default:
		return nil, fmt.Errorf("PEM block is %q, want an EC private key", block.Type)
	}
	if err != nil {
		return nil, err
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the private key is %s, want one on the curve P-256, P-384 or P-521", keyKind(key))
	}
	_, err = hashFor(&private.PublicKey)
	return private, err
}

// ReadPublicKey reads an EC public key from PEM text, "PUBLIC KEY", on the curve P-256,
// P-384 or P-521.
func ReadPublicKey(text []byte) (*ecdsa.PublicKey, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, err
	}
	switch block.Type {
	case "PUBLIC KEY":
	case "EC PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
		return nil, ErrPrivate
	default:
		return nil, fmt.Errorf("PEM block is %q, want \"PUBLIC KEY\"", block.Type)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the public key is %s, want one on the curve P-256, P-384 or P-521", keyKind(key))
	}
	_, err = hashFor(public)
	return public, err
}

// ReadCertificates reads the certificates of a PEM text, such as the roots to trust.
func ReadCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block is %q, want \"CERTIFICATE\"", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(list)+1, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("no certificate found, want PEM text")
	}
	return list, nil
}

// onlyBlock returns the one PEM block of a text, curve parameters before it aside, which
// openssl ecparam writes.
func onlyBlock(text []byte) (*pem.Block, error) {
	var found *pem.Block
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type == "EC PARAMETERS" {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("two PEM blocks, %q and %q, want one key", found.Type, block.Type)
		}
		found = block
	}
	if found == nil {
		return nil, errors.New("no PEM text found, want a key that begins with -----BEGIN")
	}
	return found, nil
}

func keyKind(key any) string {
	switch fmt.Sprintf("%T", key) {
	case "*rsa.PrivateKey", "*rsa.PublicKey":
		return "an RSA key"
	case "ed25519.PrivateKey", "ed25519.PublicKey":
		return "an Ed25519 key"
	}
	return "of another kind"
}

// hashFor returns the hash that goes with a key's curve.
func hashFor(key *ecdsa.PublicKey) (crypto.Hash, error) {
	switch key.Curve {
	case elliptic.P256():
		return crypto.SHA256, nil
	case elliptic.P384():
		return crypto.SHA384, nil
	case elliptic.P521():
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("the key is on the curve %s, want P-256, P-384 or P-521", key.Curve.Params().Name)
}

// KeyHint identifies a public key in a bundle: the SHA-256 of its PEM text as openssl pkey
// -pubout prints it, 64 hexadecimal digits.
func KeyHint(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return hex.EncodeToString(sum[:]), nil
}

// NameKey names a public key, in a file of OpenSSH or in PEM, as its signatures do: an SSH key by
// its fingerprint, an EC key by its [KeyHint]. Kind is "SSH" or "EC".
func NameKey(text []byte) (kind, name string, err error) {
	if key, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		return "SSH", ssh.FingerprintSHA256(key), nil
	}
	key, err := ReadPublicKey(text)
	if err != nil {
		return "", "", err
	}
	name, err = KeyHint(key)
	return "EC", name, err
}

// signBytes signs a message. The signature is the one of RFC 6979, so that the same
// message and key give the same bytes.
func signBytes(key *ecdsa.PrivateKey, message []byte) ([]byte, error) {
	hash, err := hashFor(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return key.Sign(nil, digest(hash, message), hash)
}

// verifyBytes checks a signature over a message.
func verifyBytes(key *ecdsa.PublicKey, message, signature []byte) (bool, error) {
	hash, err := hashFor(key)
	if err != nil {
		return false, err
	}
	return ecdsa.VerifyASN1(key, digest(hash, message), signature), nil
}

func digest(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	h.Write(message)
	return h.Sum(nil)
}
