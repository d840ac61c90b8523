package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs an outside program in dir with text as its input, and returns what it prints.
func run(t *testing.T, dir, stdin string, words ...string) string {
	t.Helper()
	out, err := try(dir, stdin, words...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return out
}

func try(dir, stdin string, words ...string) (string, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opensslKey makes a private key on a curve with openssl, and returns it and its public half as PEM
// text.
func opensslKey(t *testing.T, curve string) (private, public []byte) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "", "openssl", "ecparam", "-name", curve, "-genkey", "-out", "key.pem")
	run(t, dir, "", "openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem")
	return read(t, filepath.Join(dir, "key.pem")), read(t, filepath.Join(dir, "pub.pem"))
}

// curves are those of the specification, with openssl's names for them and for their hashes.
var curves = []struct {
	curve      elliptic.Curve
	name, hash string
}{
	{elliptic.P256(), "prime256v1", "sha256"},
	{elliptic.P384(), "secp384r1", "sha384"},
	{elliptic.P521(), "secp521r1", "sha512"},
}

func privateKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	text, _ := opensslKey(t, "prime256v1")
	key, err := ReadPrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// folder is a release of a few files.
var folder = map[string]string{
	"K3-00001-of-00002.gguf": "first shard",
	"K3-00002-of-00002.gguf": "second shard",
	"MANIFEST.sha256":        "the list",
	"plan.json":              "{}",
	"recipes/run.sh":         "#!/bin/sh\n",
}

func makeFolder(t *testing.T) (dir string, files []File) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range folder {
		write(t, filepath.Join(dir, name), []byte(text))
		files = append(files, File{name, sha256.Sum256([]byte(text))})
	}
	return dir, files
}

// wantError checks that an error says something.
func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got error %v, want one that says %q", err, part)
	}
}

func replace(t *testing.T, text []byte, old, new string) []byte {
	t.Helper()
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("no %q in %s", old, text)
	}
	return bytes.Replace(text, []byte(old), []byte(new), 1)
}
