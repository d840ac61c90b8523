package sigstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"ggufreap/manifest/sign"
)

// check has sigstore-go check a bundle with a public key.
func check(t *testing.T, text []byte, key *ecdsa.PublicKey) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), sign.ModelName)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.LoadJSONFromPath(path)
	if err != nil {
		return err
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		v, err := signature.LoadDefaultVerifier(key)
		return root.NewExpiringKey(v, time.Time{}, time.Time{}), err
	})
	verifier, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		t.Fatal(err)
	}
	_, err = verifier.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey()))
	return err
}

// TestBundles signs here and checks with sigstore-go.
func TestBundles(t *testing.T) {
	files := []sign.File{{Name: "K3-00001-of-00001.gguf", SHA256: sha256.Sum256([]byte("shard"))}, {Name: "MANIFEST.sha256", SHA256: sha256.Sum256([]byte("list"))}}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		t.Run(curve.Params().Name, func(t *testing.T) {
			key, err := ecdsa.GenerateKey(curve, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			text, err := sign.SignModel("K3", files, key)
			if err != nil {
				t.Fatal(err)
			}
			other, _ := ecdsa.GenerateKey(curve, rand.Reader)
			what := "model.sig of ours, " + curve.Params().Name
			tell(t, what, "sigstore-go", check(t, text, &key.PublicKey), true)
			tell(t, what+", another key", "sigstore-go", check(t, text, &other.PublicKey), false)
			b, err := sign.ParseBundle(text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.CheckKey(&key.PublicKey)
			tell(t, what, "ggufreap", err, true)
			tell(t, what, "openssl", openssl(t, &key.PublicKey, text), true)
			tell(t, what+", another key", "openssl", openssl(t, &other.PublicKey, text), false)
		})
	}
}
