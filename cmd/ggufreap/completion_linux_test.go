package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/cmd/ggufreap/internal/ui"
)

// TestComplete asks as the scripts do.
func TestComplete(t *testing.T) {
	for typed, want := range map[string]string{
		"vers":                          "version\tshow the version of this program\n:none",
		"diff --j":                      "--json\tprint a JSON document\n:none",
		"diff --json a --js":            ":none", // it is given
		"verify --json --expect a --ex": "--expect\tfacts the model must have: " + strings.Join(expectKeys, ", ") + "\n:none",
		"-q pin --qui":                  "--quick\tcompare sizes, headers and metadata only\n:none",
		"inspect ":                      ":files",
		"inspect -- -":                  ":files",
		"plan --preset ":                "reap568\t\n:none",
		"plan --criterion router":       "router-norm\t\nrouter-mass\t\n:none",
		"plan --criterion=router-n":     "--criterion=router-norm\t\n:none",
		"plan --criterion = router-n":   "router-norm\t\n:none", // as bash cuts it
		"plan --from ":                  ":files",
		"plan --keep ":                  ":none",
		"prune -o ":                     ":folders",
		"prune --output=x":              ":folders",
		"verify --expect tensor":        "tensors=\t\ntensor_bytes=\t\n:none",
		"pin --format ":                 "pin\t\ngguf-hash\t\n:none",
		"completion z":                  "zsh\t\n:none",
		"version ":                      ":none",
		"help vers":                     "version\tshow the version of this program\n:none",
		"--ver":                         "--version\tshow the version of this program\n:none",
		"frobnicate ":                   ":files",
	} {
		words := strings.Split(typed, " ")
		before, last := words[:len(words)-1], words[len(words)-1]
		got := succeed(t, append([]string{"__complete", "--"}, words...)...)
		if got != want+"\n" {
			t.Errorf("%q: got\n%swant\n%s", typed, got, want)
		}
		if again := succeed(t, append([]string{"__complete", "--last=" + last, "--"}, before...)...); again != got {
			t.Errorf("%q: as PowerShell asks, got\n%swant\n%s", typed, again, got)
		}
	}
}

// TestManPages wants pages that mandoc finds sound, and in which all flags and commands are.
func TestManPages(t *testing.T) {
	programtest.Want(t, "mandoc")
	t.Chdir(t.TempDir())
	succeed(t, "man", "-o", "man")
	pages, err := filepath.Glob(filepath.Join("man", "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command("mandoc", append([]string{"-Tlint", "-Wwarning"}, pages...)...).Output()
	for line := range strings.Lines(string(out)) {
		if !strings.HasSuffix(line, "missing date, using \"\": TH\n") { // a test has no commit
			t.Error(line)
		}
	}
	app := newApp(ui.New(nil, nil, nil))
	whole := manText(t, filepath.Join("man", "ggufreap.1"))
	for _, cmd := range help.Commands(app) {
		if !strings.Contains(whole, "ggufreap-"+cmd.Name+"(1)") {
			t.Errorf("ggufreap.1 lacks %s", cmd.Name)
		}
		page := manText(t, filepath.Join("man", "ggufreap-"+cmd.Name+".1"))
		for _, s := range help.Sections(cmd.Flags) {
			for _, f := range s.Flags {
				if !strings.Contains(page, f.Head()) {
					t.Errorf("the page of %s lacks %s", cmd.Name, f.Head())
				}
			}
		}
	}
	if len(pages) != len(help.Commands(app))+1 {
		t.Errorf("%d pages", len(pages))
	}
}

// manText returns what a reader of a man page sees.
func manText(t *testing.T, page string) string {
	t.Helper()
	out, err := exec.Command("mandoc", "-Tascii", "-O", "width=200", page).Output()
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return regexp.MustCompile(`.\x08`).ReplaceAllString(string(out), "")
}
