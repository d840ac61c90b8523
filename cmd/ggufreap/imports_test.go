package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestImports holds every package to what it may know. A package may depend on the
// standard library and on import paths with one of its prefixes, at any distance.
func TestImports(t *testing.T) {
	documents := []string{"github.com/go-json-experiment/json", "ggufreap/gguf"}
	pins := append(slices.Clone(documents), "ggufreap/manifest", "github.com/zeebo/blake3", "github.com/klauspost/", "github.com/cespare/xxhash/v2", "golang.org/x/sync/")
	signatures := slices.Concat(pins, []string{"github.com/hiddeco/sshsig", "github.com/secure-systems-lab/go-securesystemslib", "golang.org/x/crypto", "golang.org/x/sys"})
	plans := append(slices.Clone(documents), "ggufreap/reap")
	const kit = "ggufreap/cmd/ggufreap/internal/"
	screen := []string{"github.com/rivo/uniseg", "ggufreap/gguf/pattern", "ggufreap/gguf/words"}
	for pkg, allowed := range map[string][]string{
		"ggufreap/gguf":            {"ggufreap/gguf/words", "ggufreap/gguf"},
		"ggufreap/reap":            {"ggufreap/gguf/words", "ggufreap/gguf", "ggufreap/reap"},
		"ggufreap/reap/planfile":   plans,
		"ggufreap/reap/scorefile":  plans,
		"ggufreap/reap/tally":      {},
		"ggufreap/reap/engine":     {"github.com/go-json-experiment/json", "ggufreap/reap/tally"},
		"ggufreap/reap/measure":    plans,
		"ggufreap/manifest":        pins,
		"ggufreap/manifest/parts":  pins,
		"ggufreap/manifest/stage":  pins,
		"ggufreap/manifest/repair": pins,
		"ggufreap/gguf/remote":     {"ggufreap/gguf/pattern", "ggufreap/gguf/remote", "github.com/go-json-experiment/json", "github.com/cenkalti/backoff/v5", "golang.org/x/time/rate"},
		"ggufreap/manifest/sign":   signatures,
		"ggufreap/manifest/verify": signatures,

		"ggufreap/manifest/evidence": slices.Concat(pins, []string{"go.yaml.in/yaml/v3"}),
		"ggufreap/reap/picture": {"ggufreap/gguf/words", "ggufreap/gguf", "ggufreap/reap", "gonum.org/v1/plot", "codeberg.org/go-fonts/", "codeberg.org/go-latex/",
			"codeberg.org/go-pdf/", "git.sr.ht/~sbinet/gg", "github.com/ajstarks/svgo", "github.com/golang/freetype", "golang.org/x/"},

		// The tool kit of the command knows no flags but in args, and no library but gguf where
		// values are written.
		kit + "hint":        {},
		kit + "ui/text":     screen,
		kit + "ui/table":    append(screen, kit+"ui/text"),
		kit + "ui/progress": append(screen, kit+"ui/text", "github.com/go-json-experiment/json", "github.com/schollz/progressbar/v3", "github.com/mitchellh/colorstring", "golang.org/x/"),
		kit + "document":    slices.Concat(documents, screen, []string{kit + "ui/text"}),
		kit + "metadata":    slices.Concat(documents, screen, []string{kit + "ui/text", kit + "document"}),
		kit + "ui": slices.Concat(documents, screen, []string{kit + "ui", kit + "document", kit + "hint",
			"github.com/schollz/progressbar/v3", "github.com/mitchellh/colorstring", "golang.org/x/"}),
		kit + "help":       append(screen, kit+"ui/text", "github.com/urfave/cli/v2", "github.com/cpuguy83/", "github.com/russross/", "github.com/xrash/"),
		kit + "completion": append(screen, kit+"ui/text", kit+"hint", kit+"help", kit+"args", "github.com/urfave/cli/v2", "github.com/cpuguy83/", "github.com/russross/", "github.com/xrash/"),
		kit + "args":       append(screen, kit+"hint", kit+"help", kit+"ui/text", "github.com/urfave/cli/v2", "github.com/cpuguy83/", "github.com/russross/", "github.com/xrash/"),
		kit + "filekind":   slices.Concat(pins, screen, []string{kit + "hint", kit + "ui/text"}),
		kit + "files":      slices.Concat(pins, screen, []string{kit + "hint", kit + "filekind", kit + "ui/text"}),
	} {
		for _, dep := range dependencies(t, pkg) {
			if !slices.ContainsFunc(allowed, func(p string) bool { return dep == p || strings.HasPrefix(dep, strings.TrimSuffix(p, "/")+"/") }) && dep != pkg {
				t.Errorf("%s depends on %s", pkg, dep)
			}
		}
	}
	for _, dep := range dependencies(t, "ggufreap/cmd/ggufreap") {
		if strings.HasPrefix(dep, "github.com/ebitengine/purego") || strings.HasPrefix(dep, "github.com/hybridgroup/yzma") || dep == "ggufreap/reap/llama" || dep == "ggufreap/reap/calibrate" {
			t.Errorf("the command depends on %s: it must run where libffi is missing", dep)
		}
	}
}

// TestOneJSON wants one library for JSON outside tests: one that refuses what stands twice.
func TestOneJSON(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{range .Imports}} {{.}}{{end}}`, "ggufreap/...", "ggufreap/testdata/mutate").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := 0
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		if slices.Contains(imports, "encoding/json") {
			t.Errorf("%s imports encoding/json, want github.com/go-json-experiment/json", imports[0])
		}
		if slices.Contains(imports, "github.com/go-json-experiment/json") {
			library++
		}
	}
	if library == 0 {
		t.Error("no package reads or writes JSON")
	}
}

// TestRooms wants the tool kit to know no answer of a command, and no answer another one but
// those named here. A new answer is a line more.
func TestRooms(t *testing.T) {
	const root = "ggufreap/cmd/ggufreap/internal/"
	rooms := map[string][]string{
		"diff":         {"inspect"}, // what both say of a file
		"inspect":      nil,
		"release":      nil,
		"signing":      {"release"}, // names of a release's documents
		"verification": {"release"}, // names of a release's documents
	}
	for pkg := range dependenciesOfAll(t) {
		name, ok := strings.CutPrefix(pkg, root)
		if !ok {
			continue
		}
		for _, dep := range dependencies(t, pkg) {
			other, ok := strings.CutPrefix(dep, root)
			if _, room := rooms[other]; ok && room && other != name && !slices.Contains(rooms[name], other) {
				t.Errorf("%s depends on %s", name, other)
			}
		}
	}
}

// dependencies lists the packages outside the standard library that pkg needs.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	deps, ok := dependenciesOfAll(t)[pkg]
	if !ok {
		t.Fatalf("there is no package %s", pkg)
	}
	return deps
}

// dependenciesOfAll lists the same for every package of the program, all from one run of the go
// command.
func dependenciesOfAll(t *testing.T) map[string][]string {
	t.Helper()
	all, err := listDependencies()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var listDependencies = sync.OnceValues(func() (map[string][]string, error) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{join .Deps \" \"}}{{end}}", "ggufreap/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps: %w", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	for pkg, deps := range all { // those of the standard library have no line of their own
		all[pkg] = slices.DeleteFunc(deps, func(dep string) bool {
			_, listed := all[dep]
			return !listed
		})
	}
	return all, nil
})
