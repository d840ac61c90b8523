package hostile

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"github.com/klauspost/compress/zstd"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// maxMemory is what every command may use, whatever it is given.
const maxMemory = 256 << 20

// A trap is a file or folder that was made to do harm. It is made at path; the model and
// a finished release of it are there for it to be held against.
type trap struct {
	name string
	make func(path string) error
	args []string // TRAP, MODEL and RELEASE stand for paths
	want string   // on stderr or stdout
	code int
}

func traps() []trap {
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o666) }
	device := func(path string) error { return os.Symlink("/dev/zero", path) }
	socket := func(path string) error {
		return syscall.Mknod(path, syscall.S_IFSOCK|0o666, 0)
	}
	var all []trap
	for kind, make := range map[string]func(string) error{"pipe": fifo, "device": device, "socket": socket} {
		for _, use := range []struct {
			what string
			args []string
		}{
			{"model", []string{"inspect", "TRAP.gguf"}},
			{"plan", []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}},
			{"scores", []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}},
			{"pin", []string{"diff", "TRAP.pin.json", "MODEL"}},
			{"packed pin", []string{"diff", "TRAP.pin.json.zst", "MODEL"}},
			{"source pin", []string{"prune", "--keep", "16", "--source-pin", "TRAP.pin.json", "-o", "out", "MODEL"}},
			{"evidence", []string{"pin", "--check", "TRAP", "MODEL"}},
			{"pin to prove by", []string{"verify", "--source-pin", "TRAP.pin.json", "MODEL"}},
			{"pin to write", []string{"pin", "--force", "-o", "TRAP.pin.json", "MODEL"}},
			{"output", []string{"prune", "--keep", "16", "-o", "TRAP", "MODEL"}},
			{"output file", []string{"plan", "--keep", "16", "--force", "-o", "TRAP", "MODEL"}},
		} {
			all = append(all, trap{kind + " as " + use.what, make, use.args, "TRAP", programtest.Failed})
		}
		all = append(all,
			trap{kind + " as list", inFolder(manifest.SumsName, make), []string{"verify", "TRAP"}, manifest.SumsName, programtest.Differs},
			trap{kind + " as model of a folder", inFolder("m.gguf", make), []string{"inspect", "TRAP"}, "m.gguf", programtest.Failed},
			trap{kind + " as journal", inFolder(manifest.JournalName, make), []string{"prune", "--keep", "16", "--resume", "-o", "TRAP", "MODEL"}, "not a regular file", programtest.Failed},
			trap{kind + " as shard", inFolder("small-REAP16-00001-of-00003.gguf.part", make), []string{"prune", "--keep", "16", "--force", "-o", "TRAP", "MODEL"}, "not a regular file", programtest.Failed},
		)
	}
	return append(all,
		trap{"counts of a header", header(1<<60, 1<<60), []string{"inspect", "TRAP.gguf"}, "TRAP.gguf", programtest.Failed},
		trap{"tensors of a header", header(1<<40, 0), []string{"inspect", "TRAP.gguf"}, "TRAP.gguf", programtest.Failed},
		trap{"huge sparse model", sparse("GGUF\x03\x00\x00\x00"), []string{"inspect", "TRAP.gguf"}, "belong to no tensor", programtest.OK},
		trap{"huge sparse plan", sparse(""), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "at most", programtest.Failed},
		trap{"huge sparse scores", sparse(""), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "at most", programtest.Failed},
		trap{"deep plan", repeatedText("", "[", 32<<20, ""), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "TRAP", programtest.Failed},
		trap{"deep scores", repeatedText("", `{"a":`, 8<<20, ""), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"wide plan", repeatedText(`{"layers":{"1":{"keep":[`, "0,", 16<<20, `0]}}}`), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "TRAP", programtest.Failed},
		trap{"long plan", repeatedText(`{"layers":{"1":{"keep":[`, "000000000000000000000000000000000000000000000000000000000000001,", 1<<20-100, `0]}}}`), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "TRAP", programtest.Failed},
		trap{"plan full of faults", repeatedText(`{"layers":{"1":{"keep":[`, "0,", 1<<20-100, `0]}}}`), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "TRAP", programtest.Failed},
		trap{"scores of long texts", repeatedText(`{"schema":[`, `"`+strings.Repeat("x", 58)+`",`, 1<<20-100, `0]}`), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"plan of layers", repeatedText(`{"layers":{"1":`, `{"keep":[0]},"1":`, 3<<20, `{}}}`), []string{"prune", "--plan", "TRAP", "-o", "out", "MODEL"}, "TRAP", programtest.Failed},
		trap{"packed zeros as pin", packed("", "\x00", 1<<30), []string{"diff", "TRAP.pin.json.zst", "MODEL"}, "TRAP", programtest.Failed},
		trap{"packed pin", packed(`{"schema":"ggufreap/pin/v1",`, " ", 1<<30), []string{"diff", "TRAP.pin.json.zst", "MODEL"}, "TRAP", programtest.Failed},
		trap{"packed tensors", packed(`{"schema":"ggufreap/pin/v1","tensors":[`, "[", 100<<20), []string{"diff", "TRAP.pin.json.zst", "MODEL"}, "TRAP", programtest.Failed},
		trap{"zeros in npz", archive(map[string]io.Reader{"saliency.npy": repeat("\x00", 200<<20), "counts.npy": repeat("\x00", 200<<20)}), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"elements of npz", archive(map[string]io.Reader{"saliency.npy": array("(99999999999, 32)", 1<<20), "counts.npy": array("(3, 32)", 768)}), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"rows of npz", archive(map[string]io.Reader{"saliency.npy": array("(4096, 32)", 200<<20), "counts.npy": array("(4096, 32)", 200<<20)}), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"names of npz", archive(map[string]io.Reader{"../../evil.npy": array("(3, 32)", 768), "/evil.npy": array("(3, 32)", 768)}), []string{"plan", "--from", "TRAP", "--keep", "16", "-o", "new.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"sparse evidence", sparse(""), []string{"pin", "--check", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
		trap{"sparse pin", sparse("{"), []string{"pin", "--check", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
		trap{"wide listing", repeatedText("[", `{"type":"file","path":"x"},`, 2<<20, "0]"), []string{"pin", "--check", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
		trap{"long list of hashes", repeatedText("sha256  ", "x", 100<<20, "\n"), []string{"pin", "--check", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
		trap{"long list of sums", repeatedText("", strings.Repeat("0", 64)+"  x\n", 1<<19, ""), []string{"pin", "--check", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
		trap{"list that leaves", list("../outside", "/etc/passwd", "a/../../b"), []string{"verify", "TRAP"}, "leaves the folder", programtest.Differs},
		trap{"huge list", inFolder(manifest.SumsName, sparse("")), []string{"verify", "TRAP"}, manifest.SumsName, programtest.Differs},
		trap{"huge journal", inFolder(manifest.JournalName, sparse("")), []string{"prune", "--keep", "16", "--resume", "-o", "TRAP", "MODEL"}, "at most", programtest.Failed},
		trap{"stem that leaves", nil, []string{"prune", "--keep", "16", "--name", "../../evil", "-o", "out", "MODEL"}, "it is a path", programtest.Failed},
		trap{"absolute stem", nil, []string{"prune", "--keep", "16", "--name", "/evil", "-o", "out", "MODEL"}, "it is a path", programtest.Failed},
		trap{"stem with a folder", nil, []string{"reshard", "--shards", "2", "--name", "a/b", "-o", "out", "MODEL"}, "it is a path", programtest.Failed},
		trap{"stem with a zero byte's neighbour", nil, []string{"prune", "--keep", "16", "--name", strings.Repeat("x", 300), "-o", "out", "MODEL"}, "bytes, want at most", programtest.Failed},
		trap{"link out of the release", inFolder("plan.json", func(p string) error { return os.Symlink("../../victim", p) }), []string{"prune", "--keep", "16", "--force", "-o", "TRAP", "MODEL"}, "not a regular file", programtest.Failed},
	)
}

// inFolder makes a folder that holds one thing.
func inFolder(name string, make func(string) error) func(string) error {
	return func(path string) error {
		if err := os.Mkdir(path, 0o777); err != nil {
			return err
		}
		return make(filepath.Join(path, name))
	}
}

func content(s string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(s), 0o666) }
}

// sparse is a file of 4 TiB that takes no room.
func sparse(head string) func(string) error {
	return func(path string) error { return errors.Join(content(head)(path), os.Truncate(path, 1<<42)) }
}

// repeated is a head, a part n times, and a tail. Nothing large is held in memory: what
// this process takes would count for the program that it starts.
func repeatedText(head, part string, n int64, tail string) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(f, io.MultiReader(strings.NewReader(head), repeat(part, n*int64(len(part))), strings.NewReader(tail)))
		return err
	}
}

// repeat reads as a part over and over, n bytes in all.
func repeat(part string, n int64) io.Reader {
	return io.LimitReader(&repeater{[]byte(strings.Repeat(part, 1<<12)), 0}, n)
}

type repeater struct {
	part []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.part[r.at:])
	r.at = (r.at + n) % len(r.part)
	return n, nil
}

// header is the beginning of a GGUF file that states how much is to come.
func header(tensors, keys uint64) func(string) error {
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	b = binary.LittleEndian.AppendUint64(b, tensors)
	b = binary.LittleEndian.AppendUint64(b, keys)
	return content(string(b) + strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 1000))
}

// list is a folder with a list of sums of such names.
func list(names ...string) func(string) error {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%064d  %s\n", 0, name)
	}
	return inFolder(manifest.SumsName, content(b.String()))
}

// packed is a head and a part n times behind it, in zstd.
func packed(head, part string, n int64) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		if _, err := io.Copy(z, io.MultiReader(strings.NewReader(head), repeat(part, n*int64(len(part))))); err != nil {
			return err
		}
		return z.Close()
	}
}

// array is an npy file of float64 that states a shape and holds so many bytes.
func array(shape string, bytes int64) io.Reader {
	dict := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n", shape)
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return io.MultiReader(strings.NewReader(string(head)+dict), repeat("\x00", bytes))
}

func archive(members map[string]io.Reader) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z := zip.NewWriter(f)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			w, err := z.Create(name)
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, members[name]); err != nil {
				return err
			}
		}
		return z.Close()
	}
}

// TestTraps gives the program what was made to do harm. It must end by itself, within
// its memory, with a message, and leave everything else as it was.
func TestTraps(t *testing.T) {
	path := programtest.Path(t)
	most, lost := int64(0), 0
	for _, trap := range traps() {
		t.Run(trap.name, func(t *testing.T) {
			dir := t.TempDir()
			files, err := programtest.SmallK3().Write(filepath.Join(dir, "model"), gguf.Split{Shards: 3})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "victim"), []byte("victim"), 0o666); err != nil {
				t.Fatal(err)
			}
			work := filepath.Join(dir, "a", "b")
			if err := os.MkdirAll(work, 0o777); err != nil {
				t.Fatal(err)
			}
			args := slices.Clone(trap.args)
			for i, arg := range args {
				if strings.HasPrefix(arg, "TRAP") {
					if err := trap.make(filepath.Join(work, arg)); err != nil {
						t.Fatal(err)
					}
				}
				args[i] = strings.ReplaceAll(arg, "MODEL", files[0])
			}
			before, model := names(t, dir), programtest.Folder(t, filepath.Join(dir, "model"))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Dir = work
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			peak := programtest.Measured(t, cmd)
			if err := cmd.Run(); ctx.Err() != nil {
				t.Fatalf("did not end: %v\n%s", err, out.String())
			}
			memory := peak()
			if most = max(most, memory); memory > maxMemory {
				t.Errorf("took %d MiB of memory, want at most %d", memory>>20, maxMemory>>20)
			}
			if cmd.ProcessState.ExitCode() != trap.code || !strings.Contains(out.String(), trap.want) {
				t.Errorf("exit %d, want %d and %q in\n%.2000s", cmd.ProcessState.ExitCode(), trap.code, trap.want, out.String())
			}
			if strings.Contains(out.String(), "goroutine ") {
				t.Errorf("the program crashed:\n%.2000s", out.String())
			}
			lost += programtest.LostBytes(programtest.Folder(t, filepath.Join(dir, "model")), model)
			if victim, err := os.ReadFile(filepath.Join(dir, "victim")); err != nil || string(victim) != "victim" {
				lost += len("victim")
			}
			if after := names(t, dir); !slices.Equal(after, before) {
				t.Errorf("left %q, before there were %q", after, before)
			}
		})
	}
	fmt.Printf("chaos: traps: kills survived: 0, faults injected: %d, bytes lost: %d\n", len(traps()), lost)
	fmt.Printf("chaos: traps: the most memory was %d MiB\n", most>>20)
	if lost > 0 {
		t.Errorf("%d bytes are lost", lost)
	}
}

// names lists everything below a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

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
		layout, err := gguf.NewLayout(c, gguf.Split{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := layout.Shards[0].Write(t.Context(), &b, make([]byte, 4096), nil); err != nil {
			t.Fatal(err)
		}
		if b.Len() > size || b.Len() < size*9/10 {
			t.Fatalf("%s has %d bytes", name, b.Len())
		}
		programtest.WriteText(t, name, b.String())
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

// emptyExperts is a model with 65536 experts in each of so many layers, none of which has
// a byte.
func emptyExperts(layers int) func(string) error {
	c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
	c.Metadata.Set("general.architecture", gguf.TextValue("x"))
	c.Metadata.Set("x.expert_count", gguf.Uint32Value(1<<16))
	c.Metadata.Set("x.expert_used_count", gguf.Uint32Value(2))
	for i := range layers {
		c.Views = append(c.Views,
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i), Type: gguf.F32, Shape: []uint64{0, 1 << 16}},
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_up_exps.weight", i), Type: gguf.F32, Shape: []uint64{0, 0, 1 << 16}},
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_down_exps.weight", i), Type: gguf.F32, Shape: []uint64{0, 0, 1 << 16}})
	}
	return model(c)
}

// manyKeys is a file of nothing but keys.
func manyKeys(size int) func(string) error {
	keys := gguf.NewMetadata()
	for i := range (size - 100) / 19 {
		keys.Set(fmt.Sprintf("%06x", i), gguf.Uint8Value(1))
	}
	return model(gguf.Contents{Version: 3, Metadata: keys})
}

// model is a model of one file.
func model(c gguf.Contents) func(string) error {
	return func(path string) error {
		layout, err := gguf.NewLayout(c, gguf.Split{})
		if err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(layout.Shards[0].Write(context.Background(), f, make([]byte, 4096), nil), f.Close())
	}
}
