package verify

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/lists"
)

// listSums writes the list of sums of what a folder holds, which makes it a release.
func listSums(t *testing.T, dir string) {
	t.Helper()
	var sums []lists.FileSum
	for _, name := range folderNames(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, lists.FileSum{Name: name, SHA256: sha256.Sum256(data)})
	}
	f, err := os.Create(filepath.Join(dir, manifest.SumsName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lists.WriteSums(f, sums), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// writeFile writes a document into a folder.
func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// mustRelease makes a release of three shards and a plan in a fresh folder.
func mustRelease(t *testing.T) (dir string, pin *manifest.Pin) {
	t.Helper()
	dir, pin = mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
	writeFile(t, dir, "plan.json", []byte("{}\n"))
	listSums(t, dir)
	return dir, pin
}

func folderNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func touch(path string) error { return os.WriteFile(path, []byte("kept"), 0o666) }
