// Package enginetest gives tests an engine program and the folder of its libraries. It needs
// nothing of llama.cpp itself.
package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"ggufreap/reap/engine"
)

var build struct {
	sync.Once
	path string
	err  error
}

// Program builds ggufreap-engine, once a test's process, and returns its path. Go's cache makes
// all but the first build short.
func Program(t testing.TB) string {
	t.Helper()
	build.Do(func() {
		var dir string
		if dir, build.err = os.MkdirTemp("", "ggufreap-engine"); build.err != nil {
			return
		}
		build.path = filepath.Join(dir, "ggufreap-engine")
		cmd := exec.Command("go", "build", "-o", build.path, "ggufreap/cmd/ggufreap-engine")
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = err
			t.Logf("%s", out)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// Remove removes what was built. A TestMain calls it at the end.
func Remove() {
	if build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
}

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
