package llama

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// KnownVersions are the versions of llama.cpp whose interface is known to fit: structures
// are passed to the library by value, and another version may have other ones.
var KnownVersions = []string{"0.5.0"}

// ErrVersion says that llama.cpp libraries have another interface.
var ErrVersion = errors.New("llama.cpp of another version")

// A Build names a build of llama.cpp, in its own words.
type Build struct {
	Version string // of llama.cpp, such as "0.5.0-dev"
	GGML    string // of ggml
	Commit  string // that ggml was built from
}

// String returns "llama.cpp 0.5.0-dev (ggml 0.25.1, commit 0ad4a86)".
func (b Build) String() string {
	return fmt.Sprintf("llama.cpp %s (ggml %s, commit %s)", b.Version, b.GGML, b.Commit)
}

// functions are those of each library that this package calls beside yzma, which looks for
// its own.
var functions = map[string][]string{
	"libggml-base": {"ggml_version", "ggml_commit", "ggml_get_name", "ggml_op_name", "ggml_nbytes", "ggml_backend_tensor_get", "ggml_backend_reg_get_proc_address"},
	"libggml":      {"ggml_backend_register"},
	"libllama":     {"llama_version", "llama_tokenize"},
}

// readBuild asks the libraries in dir for their version and checks that it is a known one
// and that the functions are there. Nothing else of them is called before.
func readBuild(dir string) (Build, error) {
	var b Build
	libraries := map[string]uintptr{}
	for _, name := range []string{"libggml-base", "libggml", "libllama"} { // each needs those before
		lib, err := purego.Dlopen(filepath.Join(dir, name+libraryExt()), purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return b, fmt.Errorf("loading llama.cpp from %q: %w", dir, err)
		}
		libraries[name] = lib
	}
	for _, name := range []string{"libllama", "libggml-base", "libggml"} {
		for _, function := range functions[name] {
			if _, err := purego.Dlsym(libraries[name], function); err != nil {
				return b, fmt.Errorf("%w: %q in %q has no %s; known to work: %s", ErrVersion, name+libraryExt(), dir, function, strings.Join(KnownVersions, ", "))
			}
		}
	}
	for _, f := range []struct {
		to        *string
		lib, name string
	}{{&b.Version, "libllama", "llama_version"}, {&b.GGML, "libggml-base", "ggml_version"}, {&b.Commit, "libggml-base", "ggml_commit"}} {
		var call func() string
		purego.RegisterLibFunc(&call, libraries[f.lib], f.name)
		*f.to = call()
	}
	number, _, _ := strings.Cut(b.Version, "-")
	if !slices.Contains(KnownVersions, number) {
		return b, fmt.Errorf("%w: %q holds %s; known to work: %s", ErrVersion, dir, b, strings.Join(KnownVersions, ", "))
	}
	return b, nil
}
