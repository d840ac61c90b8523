package sign

import (
	"bytes"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const oms = "testdata/oms"

// omsSchema compiles a schema of the specification.
func omsSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	paths, err := filepath.Glob(filepath.Join(oms, "schemas/v1.0/*.schema.json"))
	if err != nil || len(paths) != 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, path)))
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(filepath.Base(path), ".schema.json")
		if err := c.AddResource("https://model_signing/"+kind+"/v1.0/schema", doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("https://model_signing/" + name + "/v1.0/schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// TestVectors reads the specification's test vectors: those in "valid" are read, and all others
// refused.
func TestVectors(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(oms, "test-vectors/v1.0/*/*.bundle.json"))
	if err != nil || len(paths) != 8 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		b, err := ParseBundle(read(t, path))
		if err == nil {
			_, err = b.Unchecked()
		}
		if is := filepath.Base(filepath.Dir(path)) == "valid"; is != (err == nil) {
			t.Errorf("%s: got %v", path, err)
		}
		if err == nil && !strings.HasPrefix(filepath.Base(path), string(b.Method)+".") {
			t.Errorf("%s: method %q", path, b.Method)
		}
	}
}

// TestCertificateVector checks the vector that brings its certificates along: its signature
// holds while they are valid, and not for one byte less.
func TestCertificateVector(t *testing.T) {
	text := read(t, filepath.Join(oms, "test-vectors/v1.0/valid/certificate.bundle.json"))
	b, err := ParseBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	root := b.chain[len(b.chain)-1:]
	then := b.chain[0].NotBefore.Add(time.Minute)
	m, who, err := b.CheckChain(root, then)
	if err != nil || len(m.Resources) == 0 || who == "" {
		t.Errorf("%v, %q: %v", m, who, err)
	}
	_, _, err = b.CheckChain(root, b.chain[0].NotAfter.Add(time.Minute))
	wantError(t, err, "expired")
	_, _, err = b.CheckChain([]*x509.Certificate{}, then)
	wantError(t, err, "unknown authority")
	b.envelope.Signatures[0].Sig = "AAAA" + b.envelope.Signatures[0].Sig[4:]
	if _, _, err = b.CheckChain(root, then); !errors.Is(err, ErrWrongSignature) {
		t.Errorf("another signature: %v", err)
	}
}

// TestSchemas holds bundles to the specification's schemas: the envelope as well as what it holds.
func TestSchemas(t *testing.T) {
	bundle, statement := omsSchema(t, "bundle"), omsSchema(t, "statement")
	_, files := makeFolder(t)
	for _, c := range curves {
		private, _ := opensslKey(t, c.name)
		key, err := ReadPrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		text, err := SignModel("K3", files, key)
		if err != nil {
			t.Fatal(err)
		}
		payload, _, _ := bundleParts(t, text)
		if err := valid(t, bundle, text); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := valid(t, statement, payload); err != nil {
			t.Errorf("%s: what is signed: %v", c.name, err)
		}
	}
	bad, err := os.ReadFile(filepath.Join(oms, "test-vectors/v1.0/invalid/missing-envelope.bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	if valid(t, bundle, bad) == nil {
		t.Error("the schema takes anything")
	}
}
