// Package llamatest gives tests a llama.cpp to judge models with.
package llamatest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ggufreap/reap/engine/enginetest"
	"ggufreap/reap/llama"
)

// Engine loads the library from the folder that GGUFREAP_LLAMA_LIB or YZMA_LIB names, else
// from .engine beside the project's go.mod. It fails the test, saying how to get the library, when there
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
func Folder(t testing.TB) string { return enginetest.Folder(t) }

// acceptsVariable names a model to a child of a test's process.
const acceptsVariable = "GGUFREAP_TEST_ACCEPTS"

// init makes any test program that imports this package one that answers [Accepts] too.
func init() {
	path := os.Getenv(acceptsVariable)
	if path == "" {
		return
	}
	dir, err := enginetest.FindFolder()
	if err == nil {
		var engine *llama.Engine
		if engine, err = llama.Load(dir); err == nil {
			err = engine.Accepts(path)
		}
	}
	var refusal *llama.Refusal
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &refusal):
		fmt.Fprintln(os.Stderr, refusedMark+refusal.Reason)
	default:
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

const refusedMark = "refused: "

// Accepts asks llama.cpp whether it would load the model at path from its headers, as
// [llama.Engine.Accepts] does, in a process of its own: an assertion that ends the process
// is an answer too. The reason is "" for yes.
func Accepts(t testing.TB, path string) (reason string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), acceptsVariable+"="+path, "GGML_NO_BACKTRACE=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if reason, refused := strings.CutPrefix(line, refusedMark); refused {
			return reason
		}
		if strings.Contains(line, "GGML_ASSERT") || strings.Contains(line, "fatal error") {
			return line
		}
	}
	t.Fatalf("llama.cpp gives no answer about %s: %v\n%.2000s", path, err, out)
	return ""
}
