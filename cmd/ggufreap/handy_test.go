package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// TestKeys lists keys, and prints the bytes of one as they stand in the file.
func TestKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	template := "[{% x %}\n\x1b\"\\x1b\xff"
	write(t, with(smallMoE(), func(md *gguf.Metadata) {
		md.Set("test.template", gguf.TextValue(template))
		md.Set("test.list", gguf.TextsValue("a", "\"a\"", "b\nc", "\x1b", `\x1b`))
		md.Set("test.number", gguf.Uint16Value(0x1234))
	}), gguf.Split{})
	if got := succeed(t, "inspect", "--key", "test.template", "--raw", "small.gguf"); got != template {
		t.Errorf("--raw prints %q, want %q", got, template)
	}
	if got := succeed(t, "inspect", "--key", "test.number", "--raw", "small.gguf"); got != "\x34\x12" {
		t.Errorf("--raw prints %q", got)
	}
	if got, want := succeed(t, "inspect", "--key", "test.list", "small.gguf"), "a\n\"\\\"a\\\"\"\n\"b\\nc\"\n\"\\u001b\"\n\\x1b\n"; got != want {
		t.Errorf("the list is printed as\n%swant\n%s", got, want)
	}
	got := succeed(t, "inspect", "--keys", "--prefix", "test.", "small.gguf")
	for _, want := range []string{"test.template  str ", "test.list      str[] ", "test.number    u16"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if lines := strings.Count(got, "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	refuse(t, "--raw is for the value of --key", "inspect", "--raw", "small.gguf")
	refuse(t, "--prefix is for the list of --keys", "inspect", "--prefix", "x", "small.gguf")
	refuse(t, "leave out the other flags", "inspect", "--keys", "--tensors", "small.gguf")
}

// TestShares keeps a share of the experts, or a multiple of what fits.
func TestShares(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 3)[0]
	keep := func(want int, flags ...string) {
		t.Helper()
		out := succeed(t, append([]string{"plan", source}, flags...)...)
		if !strings.Contains(out, fmt.Sprintf("keep            %d of 32 experts", want)) {
			t.Errorf("%q: want %d, got\n%s", flags, want, out)
		}
	}
	keep(24, "--keep", "75%")
	keep(20, "--keep", "65%")
	keep(16, "--keep", "65%", "--multiple-of", "16")
	out := succeed(t, "plan", "--keep", "22", "--json", source)
	if !strings.Contains(out, `"keep_count": 22`) {
		t.Error(out)
	}
	var fits int64 = 500_000
	keep(17, "--fit", fmt.Sprint(fits))
	keep(16, "--fit", fmt.Sprint(fits), "--multiple-of", "8")
	refuse(t, "--multiple-of is 0, want at least 1", "plan", "--fit", "1GB", "--multiple-of", "0", source)
	refuse(t, "--keep says the number", "plan", "--keep", "8", "--multiple-of", "8", source)
	refuse(t, `--keep: "many" is no number of experts, nor a share such as 75%`, "plan", "--keep", "many", source)
	if out := succeed(t, "inspect", "--keep", "75%", source); !strings.Contains(out, "24 of 32") {
		t.Error(out)
	}
}

// TestHintOfSmallerPieces asks for room that there is on all machines together.
func TestHintOfSmallerPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 1)[0]
	text := refuse(t, "hint: that much has room in smaller pieces: --shards ", "plan", "--fit-per-node", "8x60kB", source)
	_, shards, _ := strings.Cut(text, "smaller pieces: --shards ")
	succeed(t, "plan", "--fit-per-node", "8x60kB", "--shards", strings.TrimSpace(shards), source)
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file was written")
	}
}

// TestPlanCarriesItsShards makes a plan by a preset, or for a number of shards, and writes
// what it says. Flags go before it.
func TestPlanCarriesItsShards(t *testing.T) {
	t.Chdir(t.TempDir())
	source, err := gguftest.K3(gguftest.K3Options{}).Write("source", gguf.Split{Shards: gguftest.K3Shards})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "plan", "--preset", "reap568", "-o", "plan.json", source[0])
	succeed(t, "plan", "--keep", "568", "--shards", "3", "-o", "three.json", source[0])
	succeed(t, "plan", "--keep", "568", "-o", "none.json", source[0])
	for _, tc := range []struct {
		flags []string
		want  int
	}{
		{[]string{"--plan", "plan.json"}, 14},
		{[]string{"--plan", "three.json"}, 3},
		{[]string{"--plan", "none.json"}, gguftest.K3Shards},
		{[]string{"--plan", "plan.json", "--shards", "5"}, 5},
	} {
		out := succeed(t, append([]string{"prune", "--dry-run", source[0]}, tc.flags...)...)
		if want := fmt.Sprintf("files           %d shards, ", tc.want); !strings.Contains(out, want) {
			t.Errorf("%q: want %s in\n%s", tc.flags, want, out)
		}
	}
	writeText(t, "bad.json", strings.Replace(readText(t, "three.json"), `"shards": 3`, `"shards": 65536`, 1))
	refuse(t, "shards: 65536, want 1 to 65535", "prune", "--dry-run", "--plan", "bad.json", source[0])
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
