package sigstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	attestation "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"ggufreap/manifest/sign"
)

// table are the checks, in the order in which they were made.
var table [][3]string

// TestMain prints the table of all checks at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Printf("\n%-57s %-12s %s\n", "what", "checked by", "result")
	for _, row := range table {
		fmt.Printf("%-57s %-12s %s\n", row[0], row[1], row[2])
	}
	os.Exit(code)
}

// tell notes what a program made of a signature, which it is to accept or not.
func tell(t *testing.T, what, by string, err error, accept bool) {
	t.Helper()
	said := "accepted"
	if err != nil {
		said, _, _ = strings.Cut("refused: "+err.Error(), "\n")
	}
	table = append(table, [3]string{what, by, said})
	if accept != (err == nil) {
		t.Errorf("%s: %s: %s", what, by, said)
	}
}

// run runs a program and returns what it prints.
func run(dir, stdin string, words ...string) (string, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) > 0 {
		err = errors.New(strings.TrimSpace(string(out)))
	}
	return string(out), err
}

func must(t *testing.T, dir string, words ...string) {
	t.Helper()
	if out, err := run(dir, "", words...); err != nil {
		t.Fatalf("%s: %v\n%s", words, err, out)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// envelope are the parts of DSSE's form, read without any library of signatures.
type envelope struct {
	Payload    []byte
	Signatures []struct{ Sig []byte }
}

// signed returns the bytes that an envelope's signature is over.
func (e envelope) signed() []byte {
	return fmt.Appendf(nil, "DSSEv1 28 application/vnd.in-toto+json %d %s", len(e.Payload), e.Payload)
}

// openssl has openssl alone check the envelope in a bundle, or one that stands by itself.
func openssl(t *testing.T, key *ecdsa.PublicKey, text []byte) error {
	t.Helper()
	var bundle struct {
		DSSEEnvelope envelope
		envelope
	}
	if err := json.Unmarshal(text, &bundle); err != nil {
		t.Fatal(err)
	}
	e := bundle.DSSEEnvelope
	if e.Payload == nil {
		e = bundle.envelope
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	write(t, filepath.Join(dir, "sig"), e.Signatures[0].Sig)
	write(t, filepath.Join(dir, "signed"), e.signed())
	hash := map[elliptic.Curve]string{elliptic.P256(): "-sha256", elliptic.P384(): "-sha384", elliptic.P521(): "-sha512"}[key.Curve]
	_, err = run(dir, "", "openssl", "dgst", hash, "-verify", "pub", "-signature", "sig", "signed")
	return err
}

// TestSSH signs with either program and checks with the other, for every kind of key that needs
// no device.
func TestSSH(t *testing.T) {
	list := []byte("a list of sums\n")
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		dir := t.TempDir()
		must(t, dir, "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "me", "-f", "id")
		private, err := os.ReadFile(filepath.Join(dir, "id"))
		if err != nil {
			t.Fatal(err)
		}
		key, err := sign.ReadSSHKey(private)
		if err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(filepath.Join(dir, "id.pub"))
		if err != nil {
			t.Fatal(err)
		}
		allowed := append([]byte("me "), public...)
		write(t, filepath.Join(dir, "allowed"), allowed)
		write(t, filepath.Join(dir, "list"), list)

		ours, err := sign.SignSSH(list, key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "ours"), ours)
		verify := func(namespace, stdin string) error {
			_, err := run(dir, stdin, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me", "-n", namespace, "-s", "ours")
			return err
		}
		what := "MANIFEST.sha256.sig of ours, " + kind
		tell(t, what, "ssh-keygen", verify(sign.Namespace, string(list)), true)
		tell(t, what+", another list", "ssh-keygen", verify(sign.Namespace, "another list\n"), false)
		tell(t, what+", another namespace", "ssh-keygen", verify("file", string(list)), false)

		must(t, dir, "ssh-keygen", "-q", "-Y", "sign", "-f", "id", "-n", sign.Namespace, "list")
		theirs, err := os.ReadFile(filepath.Join(dir, "list.sig"))
		if err != nil {
			t.Fatal(err)
		}
		what = "MANIFEST.sha256.sig of ssh-keygen, " + kind
		tell(t, what, "ggufreap", checkSSH(theirs, list, allowed), true)
		tell(t, what+", another list", "ggufreap", checkSSH(theirs, []byte("another list\n"), allowed), false)
	}
}

// checkSSH has this project check a signature over a list of sums.
func checkSSH(signature, list, allowed []byte) error {
	signers, err := sign.ReadSigners(allowed, time.UTC)
	if err != nil {
		return err
	}
	s, err := sign.ParseSSH(signature)
	if err != nil {
		return err
	}
	if err := s.Check(list); err != nil {
		return err
	}
	_, err = signers.Find(s, "me", time.Now())
	return err
}

// TestProvenance has openssl and ssh-keygen check the envelopes of provenance.
func TestProvenance(t *testing.T) {
	statement, err := (&sign.Provenance{
		Files: []sign.File{{Name: "a.gguf"}}, Parameters: sign.Parameters{Command: "prune", Source: "x", Shards: 1},
		Inputs: []sign.Input{
			{Name: "b.gguf", URI: "hf://o/b@c/b.gguf", SHA256: strings.Repeat("ab", 32), Notes: map[string]string{"role": sign.RoleSource, "sha256": sign.StatedByHub}},
			{Name: "scores.npz", Notes: map[string]string{"role": sign.RoleScores}},
		},
	}).Statement()
	if err != nil {
		t.Fatal(err)
	}
	tell(t, "provenance statement of ours", "in-toto", inToto(statement), true)
	tell(t, "provenance statement without subjects", "in-toto", inToto([]byte(strings.Replace(string(statement), "subject", "nothing", 1))), false)
	dir := t.TempDir()
	must(t, dir, "openssl", "ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", "key.pem")
	private, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ReadPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := sign.SignStatement(statement, key)
	if err != nil {
		t.Fatal(err)
	}
	tell(t, "provenance.dsse.json of ours, P-384", "openssl", openssl(t, &key.PublicKey, text), true)

	must(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", "id")
	private, err = os.ReadFile(filepath.Join(dir, "id"))
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := sign.ReadSSHKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = sign.SignStatementSSH(statement, sshKey); err != nil {
		t.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sig"), pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: e.Signatures[0].Sig}))
	public, err := os.ReadFile(filepath.Join(dir, "id.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "allowed"), append([]byte("me "), public...))
	_, err = run(dir, string(e.signed()), "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me", "-n", sign.ProvenanceNamespace, "-s", "sig")
	tell(t, "provenance.dsse.json of ours, ed25519", "ssh-keygen", err, true)
}

// inToto has in-toto's own library check a statement with the predicate of SLSA.
func inToto(text []byte) error {
	var s attestation.Statement
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	predicate, err := protojson.Marshal(s.Predicate)
	if err != nil {
		return err
	}
	var p provenance.Provenance
	if err := protojson.Unmarshal(predicate, &p); err != nil {
		return err
	}
	return p.Validate()
}

// TestVectors reads the specification's test vectors: those in "valid" are to be read, all others
// refused.
func TestVectors(t *testing.T) {
	const folder = "../../manifest/sign/testdata/oms/test-vectors/v1.0"
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*.bundle.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no test vectors found: %v", folder, err)
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
		kind := filepath.Base(filepath.Dir(path))
		tell(t, "vector "+kind+"/"+strings.TrimSuffix(filepath.Base(path), ".bundle.json"), "ggufreap", err, kind == "valid")
	}
}
