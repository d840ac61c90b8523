// Package llama runs GGUF models in llama.cpp's CPU libraries and returns their logits.
//
// The libraries are opened at run time, without cgo. They come from outside: `make engine`
// puts the build that the tests are written for into the folder .engine of the project.
// Importing the package needs libffi.so.8 on Linux (Debian: libffi8); without it the
// program stops before main.
//
// Results are meant to be compared: one thread unless told otherwise, no flash attention,
// an F32 cache, no repacked weights, the whole input in one batch. Two models that
// llama.cpp computes with the same operations on the same values then give the same bits.
// Bits differ between processors, since llama.cpp picks its kernels by what the processor
// can do.
//
// llama.cpp reports most bad models as a load error. Some of its checks call abort, which
// ends the process: a test of a model that may trip one belongs in a child process.
package llama

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// ErrNoLibrary says that a folder does not hold the llama.cpp libraries. Its text tells how
// to get them.
var ErrNoLibrary = errors.New("llama.cpp libraries not found: run \"make engine\" in the project's folder to install them, or name the folder of others in GGUFREAP_LLAMA_LIB")

// Engine is the llama.cpp library of this process.
type Engine struct {
	dir   string
	build Build
}

// Build returns what the libraries say of themselves.
func (e *Engine) Build() Build { return e.build }

// Dir returns the folder that they were loaded from.
func (e *Engine) Dir() string { return e.dir }

// The library keeps its state in globals, so a process has one engine at most.
var (
	engineMu sync.Mutex
	engine   *Engine
)

// Load opens the libraries in the folder dir (libllama.so, libggml.so, libggml-base.so and
// the CPU kernels libggml-cpu-*.so, or the .dylib files of the same names). Further calls
// return the same engine, and an error when they name another folder.
func Load(dir string) (*Engine, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := find(dir); err != nil {
		return nil, err
	}
	engineMu.Lock()
	defer engineMu.Unlock()
	if engine != nil && engine.dir != dir {
		return nil, fmt.Errorf("llama.cpp is already loaded from %q, cannot load %q too", engine.dir, dir)
	}
	if engine != nil {
		return engine, nil
	}
	build, err := readBuild(dir)
	if err != nil {
		return nil, err
	}
	if err := yzma.Load(dir); err != nil {
		return nil, fmt.Errorf("%w: loading it from %q: %w; known to work: %s", ErrVersion, dir, err, strings.Join(KnownVersions, ", "))
	}
	captureLog()
	yzma.Init()
	if yzma.GGMLBackendDeviceCount() == 0 {
		return nil, fmt.Errorf("loading llama.cpp from %q: no CPU kernels for this processor", dir)
	}
	engine = &Engine{dir, build}
	return engine, nil
}

// find checks that dir holds the libraries under the names that the loader opens.
func find(dir string) error {
	ext := libraryExt()
	for _, name := range []string{"libllama", "libggml", "libggml-base"} {
		if _, err := os.Stat(filepath.Join(dir, name+ext)); err != nil {
			return fmt.Errorf("%w (looked for %q in %q)", ErrNoLibrary, name+ext, dir)
		}
	}
	return nil
}

// shared returns a handle of one of the libraries.
func (e *Engine) shared(name string) (uintptr, error) {
	return purego.Dlopen(filepath.Join(e.dir, name+libraryExt()), purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

func libraryExt() string {
	if runtime.GOOS == "darwin" {
		return ".dylib"
	}
	return ".so"
}
