package sign

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// bundleParts takes a bundle apart with nothing but the standard library.
func bundleParts(t *testing.T, text []byte) (payload, signature []byte, hint string) {
	t.Helper()
	var doc struct {
		VerificationMaterial struct{ PublicKey struct{ Hint string } }
		DSSEEnvelope         struct {
			Payload    []byte
			Signatures []struct{ Sig []byte }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.DSSEEnvelope.Payload, doc.DSSEEnvelope.Signatures[0].Sig, doc.VerificationMaterial.PublicKey.Hint
}

// TestBundleByOpenSSL has openssl check a bundle, over the bytes that the definition of the
// envelope gives.
func TestBundleByOpenSSL(t *testing.T) {
	_, files := makeFolder(t)
	for _, c := range curves {
		t.Run(c.name, func(t *testing.T) {
			private, public := opensslKey(t, c.name)
			key, err := ReadPrivateKey(private)
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := SignModel("K3", files, key)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := SignModel("K3", files, key)
			if string(again) != string(bundle) {
				t.Error("signed twice, it is not the same")
			}
			payload, signature, hint := bundleParts(t, bundle)
			dir := t.TempDir()
			write(t, filepath.Join(dir, "pub"), public)
			write(t, filepath.Join(dir, "sig"), signature)
			write(t, filepath.Join(dir, "pae"), fmt.Appendf(nil, "DSSEv1 28 application/vnd.in-toto+json %d %s", len(payload), payload))
			run(t, dir, "", "openssl", "dgst", "-"+c.hash, "-verify", "pub", "-signature", "sig", "pae")
			if want := sha256.Sum256(public); hint != hex.EncodeToString(want[:]) {
				t.Errorf("the hint is %s, the SHA-256 of the PEM text %x", hint, want)
			}
		})
	}
}

// TestStatement holds the signed statement to the specification's example of a list.
func TestStatement(t *testing.T) {
	_, files := makeFolder(t)
	bundle, err := SignModel("K3-REAP568", files, privateKey(t))
	if err != nil {
		t.Fatal(err)
	}
	payload, _, _ := bundleParts(t, bundle)
	var s struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			Resources     []struct{ Name, Digest, Algorithm string }
			Serialization map[string]any
		}
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://model_signing/signature/v1.0" {
		t.Errorf("statement of type %q about %q", s.Type, s.PredicateType)
	}
	root := sha256.New()
	var names []string
	for _, r := range s.Predicate.Resources {
		names = append(names, r.Name)
		sum := sha256.Sum256([]byte(folder[r.Name]))
		if r.Digest != hex.EncodeToString(sum[:]) || r.Algorithm != "sha256" {
			t.Errorf("%s: digest %s by %s", r.Name, r.Digest, r.Algorithm)
		}
		root.Write(sum[:])
	}
	if !slices.IsSorted(names) || len(names) != len(folder) {
		t.Errorf("the names are %q", names)
	}
	if len(s.Subject) != 1 || s.Subject[0].Name != "K3-REAP568" || s.Subject[0].Digest["sha256"] != hex.EncodeToString(root.Sum(nil)) {
		t.Errorf("the subject is %v", s.Subject)
	}
	want := map[string]any{"method": "files", "hash_type": "sha256", "allow_symlinks": false,
		"ignore_paths": []any{".git", ".gitattributes", ".github", ".gitignore"}}
	if got := s.Predicate.Serialization; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("serialization is %v, want %v", got, want)
	}
}

func TestBundleOverFolder(t *testing.T) {
	key := privateKey(t)
	check := func(t *testing.T, change func(dir string)) []Fault {
		t.Helper()
		dir, files := makeFolder(t)
		text, err := SignModel("K3", files, key)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, ModelName)
		write(t, path, text)
		change(dir)
		b, err := ParseBundle(text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := b.CheckKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		faults, unsigned, err := m.CheckFiles(context.Background(), dir, FilesOptions{Signature: path})
		if err != nil || len(unsigned) > 0 {
			t.Fatal(unsigned, err)
		}
		return faults
	}
	for name, c := range map[string]struct {
		change func(dir string)
		want   string
	}{
		"untouched": {func(string) {}, ""},
		"git's own": {func(dir string) {
			write(t, filepath.Join(dir, ".git/config"), nil)
			write(t, filepath.Join(dir, ".gitattributes"), nil)
		}, ""},
		"a byte":           {func(dir string) { write(t, filepath.Join(dir, "plan.json"), []byte("[]")) }, "plan.json: sha256 is "},
		"a byte below":     {func(dir string) { write(t, filepath.Join(dir, "recipes/run.sh"), []byte("#!/bin/bash")) }, "recipes/run.sh: sha256 is "},
		"a missing file":   {func(dir string) { os.Remove(filepath.Join(dir, "plan.json")) }, "plan.json: is listed and not there"},
		"a new file":       {func(dir string) { write(t, filepath.Join(dir, "evil.py"), nil) }, "evil.py: is not listed"},
		"a new file below": {func(dir string) { write(t, filepath.Join(dir, "recipes/.git/x"), nil) }, "recipes/.git/x: is not listed"},
		"a link": {func(dir string) {
			os.Remove(filepath.Join(dir, "plan.json"))
			os.Symlink("/etc/passwd", filepath.Join(dir, "plan.json"))
		}, "plan.json: is a symbolic link"},
		"another signature": {func(dir string) { write(t, filepath.Join(dir, "other.sig"), nil) }, "other.sig: is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			faults := check(t, c.change)
			got := ""
			for _, f := range faults {
				got += f.File + ": " + f.What + "\n"
			}
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got faults %q, want %q", got, c.want)
			}
		})
	}
}

// signed makes a bundle of any payload.
func signed(t *testing.T, key *ecdsa.PrivateKey, payload string) []byte {
	t.Helper()
	signature, err := signBytes(key, dsse.PAE(payloadType, []byte(payload)))
	if err != nil {
		t.Fatal(err)
	}
	hint, _ := KeyHint(&key.PublicKey)
	return fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":%q},"tlogEntries":[]},"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q,"keyid":null}]}}`,
		mediaType, hint, base64.StdEncoding.EncodeToString([]byte(payload)), payloadType, base64.StdEncoding.EncodeToString(signature))
}

// goodPayload is a statement written by hand: one file "a" of the byte "x", in another order of
// members and with members that nobody has to know.
var goodPayload = func() string {
	sum := sha256.Sum256([]byte("x"))
	root := sha256.Sum256(sum[:])
	return fmt.Sprintf(`{"predicate":{"serialization":{"allow_symlinks":false,"method":"files","hash_type":"sha256"},"resources":[{"uri":"u","name":"a","algorithm":"sha256","digest":"%x"}]},
"predicateType":"https://model_signing/signature/v1.0","subject":[{"digest":{"sha256":"%x"},"name":"model"}],"_type":"https://in-toto.io/Statement/v1"}`, sum, root)
}()

func TestForeignBundle(t *testing.T) {
	key := privateKey(t)
	text := signed(t, key, goodPayload)
	b, err := ParseBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.CheckKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Resources) != 1 || m.Name != "model" {
		t.Errorf("got %+v", m)
	}
	// Bundles before version 1.1 have the key in place of a hint.
	der, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	hint, _ := KeyHint(&key.PublicKey)
	old := replace(t, text, `{"hint":"`+hint+`"}`, `{"rawBytes":"`+base64.StdEncoding.EncodeToString(der)+`","keyDetails":5}`)
	if b, err = ParseBundle(old); err == nil {
		_, err = b.CheckKey(&key.PublicKey)
	}
	if err != nil || b.Hint != hint {
		t.Errorf("a bundle with rawBytes: %v, hint %q", err, b.Hint)
	}
}

// TestRefusedStatements signs what no verifier may accept.
func TestRefusedStatements(t *testing.T) {
	key := privateKey(t)
	for _, c := range []struct{ name, old, new, want string }{
		{"another predicate", "https://model_signing/signature/v1.0", "https://example.com/v1.0", "predicate type"},
		{"the form of version 0.2", "https://model_signing/signature/v1.0", "https://model_signing/Digests/v0.1", "version 0.2 of the reference tool"},
		{"another statement", "https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1", "is of type"},
		{"no files", `"resources":[{`, `"resources":[],"x":[{`, "lists no files"},
		{"a path that leaves", `"name":"a"`, `"name":"../a"`, "not a clean path"},
		{"an absolute path", `"name":"a"`, `"name":"/a"`, "not a clean path"},
		{"an unclean path", `"name":"a"`, `"name":"b/./a"`, "not a clean path"},
		{"another digest of the list", `"name":"model"`, `"name":"model"},{"name":"more"`, "2 subjects"},
		{"an unknown hash", `"hash_type":"sha256"`, `"hash_type":"md5"`, "hash_type is"},
		{"two hashes", `"algorithm":"sha256"`, `"algorithm":"blake3"`, "algorithm is"},
		{"an unknown method", `"method":"files"`, `"method":"tree"`, "method is"},
		{"ranges without a length", `"method":"files"`, `"method":"shards"`, "shard_size"},
		{"a member twice", `"method":"files"`, `"method":"files","method":"shards"`, "duplicate"},
		{"everything ignored", `"method":"files"`, `"ignore_paths":["."],"method":"files"`, "not a clean path"},
		{"a pattern ignored", `"method":"files"`, `"ignore_paths":["*.gguf"],"method":"files"`, "has a pattern"},
		{"a digest of nothing", `"digest":"2`, `"digest":"`, "lower-case hexadecimal digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := ParseBundle(signed(t, key, string(replace(t, []byte(goodPayload), c.old, c.new))))
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.CheckKey(&key.PublicKey)
			wantError(t, err, c.want)
		})
	}
}

// TestRefusedBundles damages a good bundle.
func TestRefusedBundles(t *testing.T) {
	key := privateKey(t)
	text := signed(t, key, goodPayload)
	var one struct {
		DSSEEnvelope struct{ Signatures []json.RawMessage }
	}
	if err := json.Unmarshal(text, &one); err != nil {
		t.Fatal(err)
	}
	signature := string(one.DSSEEnvelope.Signatures[0])
	for _, c := range []struct{ name, old, new, want string }{
		{"no envelope", `"dsseEnvelope":`, `"other":`, "has no dsseEnvelope"},
		{"no material", `"verificationMaterial":`, `"other":`, "has no verificationMaterial"},
		{"another media type", "sigstore.bundle.v0.3", "other.v0.3", "mediaType"},
		{"two signatures", signature, signature + "," + signature, "2 signatures, want one"},
		{"no signature", signature, "", "0 signatures, want one"},
		{"another payload type", `"payloadType":"application/vnd.in-toto+json"`, `"payloadType":"text/plain"`, "the envelope holds"},
		{"two methods", `"tlogEntries":[]`, `"x509CertificateChain":{"certificates":[]}`, "no certificates"},
		{"Sigstore without a log", `"publicKey":`, `"certificate":{"rawBytes":""},"other":`, "without tlogEntries"},
		{"an envelope twice", `"dsseEnvelope":`, `"dsseEnvelope":{"payload":"","payloadType":"","signatures":[]},"dsseEnvelope":`, "duplicate"},
		{"a key of nothing", `"hint":`, `"other":`, "neither hint nor rawBytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseBundle(replace(t, text, c.old, c.new))
			wantError(t, err, c.want)
		})
	}
	_, err := ParseBundle(text[:len(text)-9])
	wantError(t, err, "the bundle")
	_, err = ParseBundle(nil)
	wantError(t, err, "the bundle")
}

// TestEveryByteCounts changes each byte of the signed text and of the signature.
func TestEveryByteCounts(t *testing.T) {
	key := privateKey(t)
	b, err := ParseBundle(signed(t, key, goodPayload))
	if err != nil {
		t.Fatal(err)
	}
	payload, signature, _, err := unseal(&b.envelope)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(payload) + len(signature) {
		p, s := slices.Clone(payload), slices.Clone(signature)
		if i < len(p) {
			p[i] ^= 1
		} else {
			s[i-len(p)] ^= 1
		}
		changed := *b
		changed.envelope = seal(p, s, "")
		if _, err := changed.CheckKey(&key.PublicKey); !errors.Is(err, ErrWrongSignature) {
			t.Fatalf("byte %d was changed: got %v, want ErrWrongSignature", i, err)
		}
	}
	_, err = b.CheckKey(&privateKey(t).PublicKey)
	wantError(t, err, "made with another key")
}

// TestRanges checks the method "shards", and hashes other than SHA-256.
func TestRanges(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a:b"), []byte("0123456789"))
	write(t, filepath.Join(dir, "empty"), nil)
	for _, hashType := range []string{"sha256", "blake2b", "blake3"} {
		m := &Model{Settings: Serialization{Method: "shards", HashType: hashType, ShardSize: 4}}
		for _, r := range [][2]int{{0, 4}, {4, 8}, {8, 10}} {
			h, _ := newHash(hashType)
			h.Write([]byte("0123456789")[r[0]:r[1]])
			m.Resources = append(m.Resources, Resource{fmt.Sprintf("a:b:%d:%d", r[0], r[1]), hex.EncodeToString(h.Sum(nil)), hashType})
		}
		if err := m.validate(); err != nil {
			t.Fatal(err)
		}
		faults, _, err := m.CheckFiles(context.Background(), dir, FilesOptions{})
		if err != nil || len(faults) > 0 {
			t.Errorf("%s: %v, %v", hashType, faults, err)
		}
		all := m.Resources
		m.Resources = all[:2]
		if faults, _, _ = m.CheckFiles(context.Background(), dir, FilesOptions{}); len(faults) != 1 || !strings.Contains(faults[0].What, "has 10 bytes, of which 8 are listed") {
			t.Errorf("%s, without the last range: %v", hashType, faults)
		}
		m.Resources = all
		m.Settings.ShardSize = 5
		if faults, _, _ = m.CheckFiles(context.Background(), dir, FilesOptions{}); len(faults) == 0 {
			t.Errorf("%s, with ranges of another length: no faults", hashType)
		}
	}
	// b2sum is coreutils'.
	h, _ := newHash("blake2b")
	h.Write([]byte("0123456789"))
	if want := strings.Fields(run(t, dir, "", "b2sum", "a:b"))[0]; hex.EncodeToString(h.Sum(nil)) != want {
		t.Errorf("blake2b is %x, b2sum says %s", h.Sum(nil), want)
	}
}

// authority makes a chain of a root, an authority and a signer.
func authority(t *testing.T, now time.Time, usage x509.ExtKeyUsage) (root *x509.Certificate, chain [][]byte, key *ecdsa.PrivateKey) {
	t.Helper()
	var parent *x509.Certificate
	var parentKey *ecdsa.PrivateKey
	for i, name := range []string{"root", "authority", "signer"} {
		key = privateKey(t)
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
			IsCA: i < 2, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		if i == 2 {
			c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
		}
		if parent == nil {
			parent, parentKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		if parent, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		if parentKey = key; i == 0 {
			root = parent
		} else {
			chain = slices.Insert(chain, 0, der)
		}
	}
	return root, chain, key
}

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	bundle := func(t *testing.T, usage x509.ExtKeyUsage) (*Bundle, *x509.Certificate) {
		root, chain, key := authority(t, now, usage)
		text := signed(t, key, goodPayload)
		hint, _ := KeyHint(&key.PublicKey)
		certificates := fmt.Sprintf(`{"rawBytes":%q},{"rawBytes":%q}`, base64.StdEncoding.EncodeToString(chain[0]), base64.StdEncoding.EncodeToString(chain[1]))
		b, err := ParseBundle(replace(t, text, `"publicKey":{"hint":"`+hint+`"}`, `"x509CertificateChain":{"certificates":[`+certificates+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return b, root
	}
	b, root := bundle(t, x509.ExtKeyUsageCodeSigning)
	m, who, err := b.CheckChain([]*x509.Certificate{root}, now)
	if err != nil || who != "CN=signer" || len(m.Resources) != 1 {
		t.Fatalf("got %v, %q, %v", m, who, err)
	}
	_, _, err = b.CheckChain([]*x509.Certificate{root}, now.Add(2*time.Hour))
	wantError(t, err, "expired or is not yet valid")
	_, _, err = b.CheckChain([]*x509.Certificate{root}, now.Add(-2*time.Hour))
	wantError(t, err, "expired or is not yet valid")
	other, _ := bundle(t, x509.ExtKeyUsageCodeSigning)
	_, _, err = other.CheckChain([]*x509.Certificate{root}, now)
	wantError(t, err, "signer's certificate")
	server, serverRoot := bundle(t, x509.ExtKeyUsageServerAuth)
	_, _, err = server.CheckChain([]*x509.Certificate{serverRoot}, now)
	wantError(t, err, "incompatible key usage")
	_, err = b.CheckKey(&privateKey(t).PublicKey)
	wantError(t, err, `method "certificate"`)
}
