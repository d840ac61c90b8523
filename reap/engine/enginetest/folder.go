package enginetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Folder returns the folder of the llama.cpp libraries: the one that GGUFREAP_LLAMA_LIB or
// YZMA_LIB names, else .engine beside the project's go.mod, where "make engine" puts them.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := FindFolder()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// old is what GGUFREAP_ENGINE said when the test began. It names the engine program; it
// named the folder of the libraries once.
var old = os.Getenv("GGUFREAP_ENGINE")

// FindFolder is [Folder] for what is no test.
func FindFolder() (string, error) {
	for _, variable := range []string{"GGUFREAP_LLAMA_LIB", "YZMA_LIB"} {
		if dir := os.Getenv(variable); dir != "" {
			return dir, nil
		}
	}
	if info, err := os.Stat(old); err == nil && info.IsDir() {
		return old, nil
	}
	dir, err := os.Getwd() // a test runs in its package's folder
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".engine"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the test's folder, and GGUFREAP_LLAMA_LIB is not set")
		}
		dir = parent
	}
}
