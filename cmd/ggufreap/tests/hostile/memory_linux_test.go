package hostile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// runWithin runs the program, which may have so much memory. One that took more is run again,
// twice at most: a busy machine delays the collector, and what it adds is not the program's.
func runWithin(t *testing.T, most int64, args ...string) programtest.Result {
	t.Helper()
	for try := 1; ; try++ {
		cmd := exec.Command(programtest.Path(t), args...)
		cmd.Env = append(os.Environ(), "GOGC=", "GOMEMLIMIT=")
		peak := programtest.Measured(t, cmd)
		r := programtest.RunCommand(t, cmd)
		memory := peak()
		if memory > most && try < 3 {
			continue
		}
		if memory > most {
			t.Errorf("%q took %d bytes of memory, want at most %d", args, memory, most)
		}
		return r
	}
}

// TestMemoryOfSmallFiles gives commands files of just under a MiB that are all header.
func TestMemoryOfSmallFiles(t *testing.T) {
	const most, size = 64 << 20, 1 << 20
	t.Chdir(t.TempDir())
	keys := func(value uint8) gguf.Contents {
		c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
		for i := range (size - 100) / 19 {
			c.Metadata.Set(fmt.Sprintf("%06x", i), gguf.Uint8Value(value))
		}
		return c
	}
	tensors := func(format string) gguf.Contents {
		c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
		for i := range (size - 100) / 39 {
			c.Views = append(c.Views, gguf.View{Name: fmt.Sprintf(format, i), Type: gguf.F32, Shape: []uint64{0}})
		}
		return c
	}
	save := func(name string, c gguf.Contents) {
		programtest.WriteContents(t, name, c)
		if info, err := os.Stat(name); err != nil || info.Size() > size || info.Size() < size*9/10 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
	}
	check := func(code int, args ...string) {
		if r := runWithin(t, most, args...); r.Code != code {
			t.Errorf("%q: exit %d, want %d\n%.2000s", args, r.Code, code, r.Stderr)
		}
	}
	save("keys.gguf", keys(1))
	save("keys.gguf.other", keys(2))
	save("tensors.gguf", tensors("%06x"))
	save("tensors.gguf.other", tensors("x%05x"))
	for _, name := range []string{"keys.gguf", "tensors.gguf"} {
		for _, args := range [][]string{{"inspect", name}, {"inspect", "--json", "--tensors", name}, {"diff", name, name}, {"diff", "--json", name, name}, {"verify", name},
			{"pin", "-q", "--json", name}, {"pin", "-q", "-o", name + ".pin", name}, {"pin", "-q", "--check", name + ".pin", name}, {"pin", "-q", "-o", name + ".zst", name}, {"diff", name + ".zst", name}, {"pin", "-q", "--format", "gguf-hash", name}} {
			check(programtest.OK, args...)
		}
		other := name + ".other"
		check(programtest.Differs, "diff", name, other)
		check(programtest.Differs, "diff", "--json", name, other)
		check(programtest.Differs, "diff", "--json", name+".zst", other)
	}
}

// TestMemoryOfEscapedText shows half a MiB of text that a document has six times as long.
func TestMemoryOfEscapedText(t *testing.T) {
	const most = 40 << 20
	t.Chdir(t.TempDir())
	s := programtest.Bare(programtest.Vector("a", 8))
	for _, key := range []string{"tokenizer.ggml.model", "tokenizer.ggml.pre"} {
		s.Metadata.Set(key, gguf.TextValue(strings.Repeat("\x01", 500<<10)))
	}
	file := programtest.Write(t, s, gguf.Split{})[0]
	for _, args := range [][]string{{"inspect", file}, {"inspect", "--json", file}, {"inspect", "--json", "--key", "tokenizer.ggml.model", file}} {
		if r := runWithin(t, most, args...); r.Code != programtest.OK {
			t.Errorf("%q: exit %d\n%.2000s", args, r.Code, r.Stderr)
		}
	}
}

// TestMemoryOfSmallDocuments gives commands files of less than a MiB that read as far more,
// beside a model that is wide enough for it.
func TestMemoryOfSmallDocuments(t *testing.T) {
	const most, size = 64 << 20, 1 << 20
	t.Chdir(t.TempDir())
	if _, err := gguftest.K3(gguftest.K3Options{Name: "wide", Experts: 896, Used: 16, Layers: 3}).Write(".", gguf.Split{}); err != nil {
		t.Fatal(err)
	}
	filled := func(head, part, tail string) func(string) error {
		return repeatedText(head, part, int64((size-len(head)-len(tail))/len(part)), tail)
	}
	packedNumbers := func(rows int64, part string) func(string) error {
		numbers := func() io.Reader {
			return io.MultiReader(array(fmt.Sprintf("(%d, 896)", rows), 0), repeat(part, rows*896*8))
		}
		return archive(map[string]io.Reader{"saliency.npy": numbers(), "counts.npy": numbers()})
	}
	journal := func(list string) func(string) error {
		return inFolder(manifest.JournalName, filled(`{"schema":"ggufreap/journal/v1","`+list+`":[`, "{},", "{}]}\n"))
	}
	plan := []string{"plan", "--keep", "448", "-o", "new.json", "--from", "TRAP", "wide.gguf"}
	prune := []string{"prune", "--dry-run", "-o", "out", "--plan", "TRAP", "wide.gguf"}
	resume := []string{"prune", "--keep", "448", "--resume", "-o", "TRAP", "wide.gguf"}
	for _, test := range []trap{
		{"zeros of an archive", packedNumbers(2340, "\x00"), plan, "counts: npy shape (2340, 896) has more than 512 elements", programtest.Failed},
		{"no numbers of an archive", packedNumbers(1170, "\xff"), plan, "has numbers, but is not one of the layers", programtest.Failed},
		{"scores of zeros", filled(`{"schema":[`, "0,", "0]}"), plan, "schema: a list, want a string", programtest.Failed},
		{"scores of objects", filled(`{"format":"llama-moe-prune-importance-cache","version":1,"stats":{"1":[`, "{},", "0]}}"), plan, "stats.1.0.selection_count: nothing, want a number", programtest.Failed},
		{"scores of sources", filled(`{"schema":"ggufreap/saliency/v1","sources":[`, "{},", "{}]}"), plan, "TRAP: source", programtest.Failed},
		{"scores of inputs", filled(`{"schema":"ggufreap/saliency/v1","inputs":[`, "0,", "0]}"), plan, "TRAP: source", programtest.Failed},
		{"counts of nothing", filled("layer,expert,count\n", "x\n", ""), plan, "line 2: 1 fields, want 3", programtest.Failed},
		{"plan of zeros", filled(`{"layers":{"1":{"keep":[`, "0,", "0]}}}"), prune, "of 896 experts", programtest.Failed},
		{"plan of lists", filled(`{"keep":[`, "[0],", "[0]]}"), prune, "more than 4096 layers", programtest.Failed},
		{"plan of pairs", filled(`{"pruned_experts":[`, "0,", "0]}"), prune, "pruned_experts[0]", programtest.Failed},
		{"plan of inputs", filled(`{"schema":"ggufreap/plan/v1","criterion":{"inputs":[`, "{},", "{}]}}"), prune, "TRAP: source", programtest.Failed},
		{"shards of a journal", journal("shards"), resume, "not in the form", programtest.Failed},
		{"sources of a journal", journal("sources"), resume, "not in the form", programtest.Failed},
		{"experts without bytes", emptyExperts(3400), []string{"plan", "--keep", "2", "--criterion", "seeded-random", "TRAP.gguf"}, "has no elements", programtest.Failed},
		{"keys that differ", manyKeys(size), []string{"diff", "--json", "wide.gguf", "TRAP.gguf"}, `"change": "added"`, programtest.Differs},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := slices.Clone(test.args)
			for i, arg := range args {
				if !strings.HasPrefix(arg, "TRAP") {
					continue
				}
				if err := test.make(arg); err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(arg)
				args[i] = arg
				if info, err := os.Stat(arg); err != nil || info.Size() > size {
					t.Fatalf("%s: %v, %v", arg, info, err)
				}
			}
			r := runWithin(t, most, args...)
			if r.Code != test.code || !strings.Contains(r.Stdout+r.Stderr, test.want) {
				t.Errorf("exit %d, want %d and %q in\n%.2000s", r.Code, test.code, test.want, r.Stdout+r.Stderr)
			}
		})
	}
}
