package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/args"
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
		got := succeed(t, append([]string{"__complete", "--"}, strings.Split(typed, " ")...)...)
		if got != want+"\n" {
			t.Errorf("%q: got\n%swant\n%s", typed, got, want)
		}
	}
}

// A tab test types a line, with tabs, and says what arguments the program gets.
var tabTests = []struct{ typed, want string }{
	{"ggufreap versi\t", "<version>"},
	{"ggufreap inspect d/my\t", "<inspect><d/my model.gguf>"},
	{"ggufreap plan --pres\treap\t m", "<plan><--preset><reap568><m>"},
	{"ggufreap prune -o d/su\t", "<prune><-o><d/sub>"}, // and not sum.txt; zsh takes the slash away again
	{"ggufreap pin --progress=pl\t", "<pin><--progress=plain>"},
	{"ggufreap verify --expect experts_\t4 m", "<verify><--expect><experts_used=4><m>"},
	{"ggufreap completion fi\t", "<completion><fish>"},
	{"ggufreap -q pru\t --keep 4", "<-q><prune><--keep><4>"},
}

// completionFolder is a folder with files to complete, and with a program that asks the real
// one what fits and otherwise prints its arguments.
func completionFolder(t *testing.T) {
	t.Helper()
	program := programtest.Path(t)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"bin", filepath.Join("d", "sub")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeText(t, filepath.Join("d", "my model.gguf"), "")
	writeText(t, filepath.Join("d", "sum.txt"), "")
	wrapper := "#!/bin/sh\ncase $1 in __complete) exec " + args.ShellQuote(program) + " \"$@\" ;; esac\nprintf GOT\nprintf '<%s>' \"$@\"\necho\n"
	if err := os.WriteFile(filepath.Join("bin", "ggufreap"), []byte(wrapper), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		writeText(t, shell, succeed(t, "completion", shell))
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(wd, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", wd)
	t.Setenv("TERM", "dumb")
}

// TestTab types lines with tabs in bash and zsh on a terminal.
func TestTab(t *testing.T) {
	completionFolder(t)
	for shell, begin := range map[string]string{
		"bash --norc --noprofile -i": "source ./bash\n",
		"zsh -f -i":                  "autoload -Uz compinit; compinit -D -u; source ./zsh\n",
	} {
		name, _, _ := strings.Cut(shell, " ")
		t.Run(name, func(t *testing.T) {
			wantProgram(t, name)
			for _, tc := range tabTests {
				cmd := exec.Command("script", "-qec", shell, os.DevNull)
				cmd.Stdin = strings.NewReader(begin + tc.typed + "\nexit\n")
				cmd.WaitDelay = time.Second
				timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
				out, err := cmd.Output()
				timer.Stop()
				got := regexp.MustCompile(`GOT(<.*>)`).FindSubmatch(out)
				if err != nil || got == nil || strings.ReplaceAll(string(got[1]), "/>", ">") != tc.want {
					t.Errorf("%q: %v, want %s, the terminal shows\n%q", tc.typed, err, tc.want, out)
				}
			}
		})
	}
}

// TestFishCompletes asks fish what it would offer.
func TestFishCompletes(t *testing.T) {
	wantProgram(t, "fish")
	completionFolder(t)
	for typed, want := range map[string]string{
		"ggufreap versi":                    "version\tshow the version of this program\n",
		"ggufreap inspect d/my":             "d/my model.gguf\n",
		"ggufreap plan --preset ":           "reap568\n",
		"ggufreap prune -o d/su":            "d/sub/\tDirectory\n",
		"ggufreap pin --progress=pl":        "--progress=plain\n",
		"ggufreap verify --expect experts_": "experts_used=\n",
		"ggufreap version ":                 "",
	} {
		out, err := exec.Command("fish", "--no-config", "-c", "source ./fish; complete -C "+args.ShellQuote(typed)).Output()
		if err != nil || string(out) != want {
			t.Errorf("%q: %v, got %q, want %q", typed, err, out, want)
		}
	}
}

// wantProgram fails where a program is missing that tests compare with.
func wantProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v: make tools installs it", err)
	}
}

// TestManPages wants pages that mandoc finds sound, and in which all flags and commands are.
func TestManPages(t *testing.T) {
	wantProgram(t, "mandoc")
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
