// Package enginetest builds the programs that tests run, and gives tests an engine program and
// the folder of its libraries. It needs nothing of llama.cpp itself.
package enginetest

import (
	"testing"

	"ggufreap/reap/engine"
)

var program = Build{Package: "ggufreap/cmd/ggufreap-engine"}

// Program builds ggufreap-engine, once a test's process, and returns its path.
func Program(t testing.TB) string {
	t.Helper()
	return program.Path(t)
}

// Remove removes what was built. A TestMain calls it at the end.
func Remove() { program.Remove() }

// Start starts an engine with the libraries of [Folder].
func Start(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	if o.Library == "" {
		o.Library = Folder(t)
	}
	e, err := engine.Start(t.Context(), Program(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if e.Hello().Problem != "" {
		t.Fatal(e.Hello().Problem)
	}
	return e
}
