//go:build !windows

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"ggufreap/reap/llama"
)

// libraryVariables name the folder of the llama.cpp libraries, the first that is set.
var libraryVariables = []string{"GGUFREAP_LLAMA_LIB", "YZMA_LIB"}

// loadLibrary loads llama.cpp from the folder that was named, or else from the first of the
// usual places that has it. It returns the folders that it looked in.
func loadLibrary(named string) (*llama.Engine, []string, error) {
	for _, variable := range libraryVariables {
		if named == "" {
			named = os.Getenv(variable)
		}
	}
	places := usualPlaces()
	if named != "" {
		places = []string{named}
	}
	var searched []string
	for _, dir := range places {
		searched = append(searched, dir)
		engine, err := llama.Load(dir)
		if err == nil {
			return engine, searched, nil
		}
		if named != "" || !errors.Is(err, llama.ErrNoLibrary) {
			return nil, searched, err
		}
	}
	return nil, searched, llama.ErrNoLibrary
}

// usualPlaces are the folders to look in: beside this program, where "make engine" puts the
// libraries, and where systems keep theirs.
func usualPlaces() []string {
	var places []string
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		dir := filepath.Dir(program)
		places = append(places, dir, filepath.Join(dir, "lib"), filepath.Join(dir, "..", "lib"), filepath.Join(dir, "..", ".engine"))
	}
	if runtime.GOOS == "darwin" {
		return append(places, "/opt/homebrew/lib", "/usr/local/lib")
	}
	triplets := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
	places = append(places, "/usr/local/lib")
	if triplet := triplets[runtime.GOARCH]; triplet != "" {
		places = append(places, filepath.Join("/usr/lib", triplet), filepath.Join("/usr/lib", triplet, "llama"))
	}
	return append(places, "/usr/lib64", "/usr/lib", "/usr/lib/llama")
}
