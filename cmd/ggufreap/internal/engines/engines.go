// Package engines finds and starts the program that holds llama.cpp. It is the place where
// the environment is asked for it.
package engines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap/engine"
)

// Variable names the engine program, or says "off".
const Variable = "GGUFREAP_ENGINE"

// ErrNone says that there is no engine program, or none is wanted.
var ErrNone = errors.New("no engine: the program ggufreap-engine, which holds llama.cpp, was not found")

// howToGet is the hint for it.
const howToGet = `put ggufreap-engine beside ggufreap or into PATH, or name it in GGUFREAP_ENGINE; from source: go install ./cmd/ggufreap-engine
"ggufreap help engine" says where llama.cpp comes from`

// Find returns the path of the engine program: the one that the environment names, else the
// one beside this program, else the one in PATH.
func Find() (string, error) {
	name := "ggufreap-engine"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if named := os.Getenv(Variable); named != "" {
		return named, checkNamed(named)
	}
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", hint.With(ErrNone, howToGet)
}

func checkNamed(path string) error {
	if path == "off" {
		return hint.With(fmt.Errorf("%w (%s is off)", ErrNone, Variable), "unset %s", Variable)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return hint.With(fmt.Errorf("%s names %s: %w", Variable, text.Safe(path), err), "the program ggufreap-engine is meant")
	case info.IsDir():
		return hint.With(fmt.Errorf("%s is %s, a folder: it names the engine program", Variable, text.Safe(path)),
			"GGUFREAP_LLAMA_LIB names the folder of the llama.cpp libraries")
	}
	return nil
}

// Start starts the engine, with the llama.cpp libraries in the given folder or, for "", where
// the engine finds some.
func Start(ctx context.Context, library string) (*engine.Engine, error) {
	program, err := Find()
	if err != nil {
		return nil, err
	}
	e, err := engine.Start(ctx, program, engine.Options{Library: library})
	if err != nil {
		return nil, hint.With(err, "the engine needs libffi (Debian and Ubuntu: libffi8, Fedora: libffi) and a ggufreap-engine of this version")
	}
	return e, nil
}

// Usable starts the engine and wants it to have llama.cpp.
func Usable(ctx context.Context, library string) (*engine.Engine, error) {
	e, err := Start(ctx, library)
	if err != nil {
		return nil, err
	}
	if problem := e.Hello().Problem; problem != "" {
		e.Close()
		err := errors.New(problem)
		if e.Hello().Absent {
			err = absent{err}
		}
		return nil, hint.With(err, `"ggufreap help engine" says where llama.cpp comes from; --llama-lib DIR or GGUFREAP_LLAMA_LIB names its folder`)
	}
	return e, nil
}

// An absent error says that there is an engine program, and no llama.cpp for it, which is as good
// as no engine.
type absent struct{ error }

func (absent) Is(target error) bool { return target == ErrNone }
