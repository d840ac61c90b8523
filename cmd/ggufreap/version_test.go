package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestVersionDocument holds what the program says of itself to what the go
// command says of it. The go command knows the revision of a clone only, not of a copy.
func TestVersionDocument(t *testing.T) {
	program := programtest.Path(t)
	output := func(name string, words ...string) string {
		t.Helper()
		out, err := exec.Command(name, words...).Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, words, err)
		}
		return string(out)
	}
	var doc versionInfo
	if err := json.Unmarshal([]byte(output(program, "version", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(output("go", "env", "GOVERSION")); doc.Go != want {
		t.Errorf("go is %q, want %q", doc.Go, want)
	}
	var want []library
	revision := ""
	for line := range strings.Lines(output("go", "version", "-m", program)) {
		words := strings.Fields(line)
		if words[0] == "dep" {
			want = append(want, library{words[1], words[2]})
		}
		if after, ok := strings.CutPrefix(words[len(words)-1], "vcs.revision="); ok {
			revision = after
		}
	}
	if doc.Revision != revision {
		t.Errorf("revision is %q, go version -m says %q", doc.Revision, revision)
	}
	if len(want) == 0 || !slices.Equal(doc.Libraries, want) {
		t.Errorf("libraries are %v, go version -m says %v", doc.Libraries, want)
	}
}
