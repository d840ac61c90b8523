package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
)

// TestStreams reads and writes documents through pipes, as shells make them, and compares
// what comes of it with what comes of files.
func TestStreams(t *testing.T) {
	program := programtest.Path(t)
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	succeed(t, "plan", "--keep", "4", "-o", "plan.json", "small.gguf")
	succeed(t, "pin", "-o", "pin.json", "small.gguf")
	writeText(t, "hotness.csv", "layer,expert,count\n"+strings.Repeat("1,0,7\n", 1)+"1,1,6\n1,2,5\n1,3,4\n1,4,3\n1,5,2\n1,6,1\n1,7,0\n2,0,7\n2,1,6\n2,2,5\n2,3,4\n2,4,3\n2,5,2\n2,6,1\n2,7,0\n")
	for _, line := range []string{
		"ggufreap plan --keep 4 small.gguf -o - | cmp - plan.json",
		"ggufreap plan --keep 4 small.gguf --output=- > p && cmp p plan.json && test ! -e -",
		"ggufreap prune --plan - -o a small.gguf < plan.json && cmp a/plan.json plan.json",
		"cat plan.json | ggufreap prune --plan - -o b small.gguf && cmp b/plan.json plan.json",
		"ggufreap prune --plan <(cat plan.json) -o c small.gguf && cmp c/plan.json plan.json",
		"ggufreap plan --keep 4 --always-keep /dev/stdin small.gguf < plan.json",
		"ggufreap pin -o - small.gguf | cmp - pin.json",
		"ggufreap pin -o - small.gguf | ggufreap pin --check - small.gguf",
		"ggufreap pin --check <(sha256sum small.gguf) small.gguf",
		"ggufreap diff <(cat pin.json) small.gguf",
		"cat pin.json | ggufreap diff small.gguf -",
		"ggufreap verify --source-pin <(cat pin.json) a",
		"ggufreap plan --keep 4 --from <(cat hotness.csv) -o - small.gguf | grep -q '\"file\": \"standard input\"'",
		"ggufreap plan --keep 4 --from - small.gguf < hotness.csv",
		"ggufreap pin --format gguf-hash -o - small.gguf | ggufreap pin --check - small.gguf",
		"ggufreap plan --keep 4 -o /dev/stdout small.gguf | cmp - plan.json",
		"ggufreap plan --keep 4 -o /dev/stdout small.gguf >> at && cmp at plan.json",
		"echo first > at; ggufreap plan --keep 4 -o /dev/fd/3 small.gguf 3>> at && tail -n +2 at | cmp - plan.json && head -1 at | grep first",
		"mkfifo named; cat named > at & ggufreap plan --keep 4 -o named small.gguf && wait && cmp at plan.json && test -p named",
		"ggufreap plan --keep 4 -o >(cat > at) small.gguf && wait $! && cmp at plan.json",
		"ggufreap plan --keep 4 -o /dev/null small.gguf && test -c /dev/null",
		"ggufreap pin -o /dev/null small.gguf && ggufreap pin -o /dev/null --format gguf-hash small.gguf",
		"ggufreap report -o /dev/null plan.json && ggufreap evidence init -o /dev/null",
		"ggufreap edit --set general.description:str=@/dev/null -o e small.gguf && test -z \"$(ggufreap inspect --key general.description e)\"",
		"ggufreap card -o /dev/null --bom /dev/null a && test -c /dev/null",
		"ggufreap prune --keep 4 --pin-source /dev/null -o d small.gguf",
		"! ggufreap plan --keep 4 -o /dev/full small.gguf",
		"! ggufreap plan --keep 4 -o /dev/fd/3 small.gguf 3< plan.json",
		"ggufreap diff /dev/stdin small.gguf < pin.json",
		"ggufreap verify --plan - --source-pin pin.json a < plan.json",
		"ggufreap report -o - --model small.gguf --compare - plan.json < plan.json | grep -q '</html>'",
		"ssh-keygen -q -t ed25519 -N '' -f key && ggufreap sign --ssh-key - b < key && test -s b/MANIFEST.sha256.sig",
		`test -z "$(ls "$TMPDIR")"`,
	} {
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", line)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

func TestStreamsThatCannotBe(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	refuse(t, "- stands for standard input, which can be read once, and not by --from and --always-keep", "plan", "--keep", "4", "--from", "-", "--always-keep", "-", "small.gguf")
	refuse(t, "which can be read once, and not by --from and --from", "plan", "--keep", "4", "--from", "-", "--from", "-", "small.gguf")
	refuse(t, "-o - prints the plan", "plan", "--keep", "4", "--explain", "-o", "-", "small.gguf")
	refuse(t, "-: plan: ", "prune", "--plan", "-", "-o", "out", "small.gguf") // it is empty
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"verify"}, {"inspect"}, {"pin"}, {"plan", "--keep", "4"}, {"card", "-o", "x.md"}, {"prune", "--keep", "4", "-o", "out"}} {
		refuse(t, "a model cannot be read from standard input", append(command, "-")...)
		refuse(t, "neither a file nor a folder", append(command, "pipe")...)
		refuse(t, "neither a file nor a folder", append(command, "/dev/null")...)
	}
	refuse(t, "a model cannot be read from standard input", "verify", "--source", "-", "small.gguf")
	refuse(t, "a folder cannot be read from standard input", "repair", "--from", "small.gguf", "-")
	refuse(t, "a folder cannot be read from standard input", "assemble", "-")
	refuse(t, "a release cannot be read from standard input", "sign", "--key", "k", "-")
	for _, line := range [][]string{{"prune", "--keep", "4", "-o", "-", "small.gguf"}, {"edit", "--set", "general.name=x", "-o", "-", "small.gguf"},
		{"reshard", "--shards", "2", "-o", "-", "small.gguf"}, {"demo", "-o", "-"}, {"man", "-o", "-"}, {"verify", "--only", "1/2", "-o", "-", "small.gguf"}} {
		refuse(t, "-o names a folder, and - stands for standard output", line...)
	}
	refuse(t, "--png names a folder", "report", "-o", "x.html", "--png", "-", "small.gguf")
	refuse(t, "--recipes names a folder", "card", "--recipes", "-", "small.gguf")
	refuse(t, "- in place of the path, and < pipe behind the command", "pin", "--check", "pipe", "small.gguf")
}
