// Package llamatest gives tests a llama.cpp to judge models with.
package llamatest

import (
	"os"
	"path/filepath"
	"testing"

	"ggufreap/reap/llama"
)

// Engine loads the library from the folder that GGUFREAP_ENGINE names, else from .engine
// beside the project's go.mod. It fails the test, saying how to get the library, when there
// is none: what llama.cpp should have judged must not pass unjudged.
func Engine(t testing.TB) *llama.Engine {
	t.Helper()
	engine, err := llama.Load(Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// Logits loads the model at path and returns its logits for the tokens, one row a position.
func Logits(t testing.TB, path string, tokens []int) [][]float32 {
	t.Helper()
	model, err := Engine(t).Open(path, llama.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	logits, err := model.Logits(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

// Folder returns the folder that the library is loaded from.
func Folder(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("GGUFREAP_ENGINE"); dir != "" {
		return dir
	}
	dir, err := os.Getwd() // a test runs in its package's folder
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".engine")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder, and GGUFREAP_ENGINE is not set")
		}
		dir = parent
	}
}
