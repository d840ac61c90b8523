package completion_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/programtest"
)

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
	programtest.WriteText(t, filepath.Join("d", "my model.gguf"), "")
	programtest.WriteText(t, filepath.Join("d", "sum.txt"), "")
	wrapper := "#!/bin/sh\ncase $1 in __complete) exec " + args.ShellQuote(program) + " \"$@\" ;; esac\nprintf GOT\nprintf '<%s>' \"$@\"\necho\n"
	if err := os.WriteFile(filepath.Join("bin", "ggufreap"), []byte(wrapper), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		programtest.WriteText(t, shell, programtest.Succeed(t, "completion", shell))
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
		"zsh -f -i":                  "autoload -Uz compinit; compinit -u -d ./dump; source ./zsh\n",
	} {
		name, _, _ := strings.Cut(shell, " ")
		t.Run(name, func(t *testing.T) {
			programtest.Want(t, name)
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
	programtest.Want(t, "fish")
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
