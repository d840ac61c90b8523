package reap

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggufreap/reap/llama/llamatest"
)

// Every name that the llama.cpp library has for a tensor of a block must have its place in
// the tables of this package: what nobody has looked at is not to be copied in silence. A
// new library may bring new names; decide for each whether it holds anything for each expert.
func TestLibraryNamesArePlaced(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(llamatest.Folder(t), "libllama.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no libllama (%v): run \"make engine\" in the project's folder", err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`blk\.%d\.([a-z0-9_.%]+)\x00`).FindAllSubmatch(data, -1) {
		names[string(match[1])] = true
	}
	if len(names) < 150 {
		t.Fatalf("%d names in %s", len(names), files[0])
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		placed := 0
		for _, suffix := range []string{".weight", ".bias", ""} {
			full := strings.Replace(name, "%d", "0", 1) + suffix
			_, routed := roleOf(full)
			if routed || bystander(full) || legacyName().MatchString(full) || strings.Contains(full, "_chexps.") {
				placed++
			}
		}
		if placed == 0 {
			t.Errorf("%q is neither routed nor known to hold nothing for each expert", name)
		}
	}
}
