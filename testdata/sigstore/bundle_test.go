package sigstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"flag"
	"os"
	"path/filepath"
	"strings"
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
			if err := check(t, text, &key.PublicKey); err != nil {
				t.Errorf("sigstore-go refuses our bundle: %v", err)
			}
			other, _ := ecdsa.GenerateKey(curve, rand.Reader)
			if err := check(t, text, &other.PublicKey); err == nil {
				t.Error("sigstore-go takes it with another key, so the check above says nothing")
			}
			b, err := sign.ParseBundle(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.CheckKey(&key.PublicKey); err != nil {
				t.Error(err)
			}
		})
	}
}

// vectors is a folder of the specification's test vectors, which are not part of the project.
var vectors = flag.String("vectors", "", "the folder test-vectors/v1.0 of the OpenSSF model signing specification")

// TestVectors reads the specification's test vectors: those in "valid" must be read, all others
// refused.
func TestVectors(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(*vectors, "*", "*.bundle.json"))
	if *vectors != "" && (err != nil || len(paths) == 0) {
		t.Fatalf("%s: no test vectors found: %v", *vectors, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := sign.ParseBundle(text)
		if err == nil {
			_, err = b.Unchecked()
		}
		name := strings.TrimPrefix(path, *vectors)
		t.Logf("%s: %v", name, err)
		if valid := filepath.Base(filepath.Dir(path)) == "valid"; valid != (err == nil) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
