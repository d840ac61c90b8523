package sign

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeysOfOpenSSL reads what openssl writes in all its forms, and agrees with it on which
// key is which.
func TestKeysOfOpenSSL(t *testing.T) {
	for _, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			private, public := opensslKey(t, c.name)
			write(t, filepath.Join(dir, "sec1"), private)
			run(t, dir, "", "openssl", "pkcs8", "-topk8", "-nocrypt", "-in", "sec1", "-out", "pkcs8")
			pub, err := ReadPublicKey(public)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{"sec1", "pkcs8"} {
				key, err := ReadPrivateKey(read(t, filepath.Join(dir, form)))
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if key.Curve != c.curve || !key.PublicKey.Equal(pub) {
					t.Errorf("%s: not the key that openssl made", form)
				}
			}
			hint, err := KeyHint(pub)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Fields(run(t, dir, string(public), "sha256sum"))[0]; hint != want {
				t.Errorf("hint is %s, sha256sum of the PEM text says %s", hint, want)
			}
		})
	}
}

func TestRefusedKeys(t *testing.T) {
	dir := t.TempDir()
	private, public := opensslKey(t, "prime256v1")
	write(t, filepath.Join(dir, "key"), private)
	make := func(words ...string) []byte { return []byte(run(t, dir, "", append([]string{"openssl"}, words...)...)) }
	pkcs8 := make("pkcs8", "-topk8", "-in", "key", "-passout", "pass:secret")
	sec1 := make("ec", "-in", "key", "-aes128", "-passout", "pass:secret")
	for name, text := range map[string][]byte{"pkcs8": pkcs8, "sec1": sec1[strings.Index(string(sec1), "-----"):]} {
		if _, err := ReadPrivateKey(text); !errors.Is(err, ErrEncrypted) {
			t.Errorf("%s with a passphrase: got %v, want ErrEncrypted", name, err)
		}
	}
	ed25519 := make("genpkey", "-algorithm", "ed25519")
	rsa := make("genpkey", "-algorithm", "rsa", "-quiet")
	for want, text := range map[string][]byte{
		"is an Ed25519 key":    ed25519,
		"is an RSA key":        rsa,
		"curve P-224":          make("ecparam", "-name", "secp224r1", "-genkey", "-noout"),
		"no PEM text found":    []byte("hello"),
		"two PEM blocks":       append(append([]byte{}, private...), private...),
		"PEM block is \"PUBLI": public,
	} {
		_, err := ReadPrivateKey(text)
		wantError(t, err, want)
	}
	if _, err := ReadPublicKey(private); !errors.Is(err, ErrPrivate) {
		t.Errorf("a private key for a public one: got %v, want ErrPrivate", err)
	}
	write(t, filepath.Join(dir, "ed"), ed25519)
	_, err := ReadPublicKey(make("pkey", "-in", "ed", "-pubout"))
	wantError(t, err, "is an Ed25519 key")
}
