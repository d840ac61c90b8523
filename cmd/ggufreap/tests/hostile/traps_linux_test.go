package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
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
			{"output", []string{"prune", "--keep", "16", "-o", "TRAP", "MODEL"}},
		} {
			code := programtest.Failed
			if kind == "device" && (use.what == "pin to write" || use.what == "output file") {
				code = programtest.OK // written to, as /dev/null is
			}
			all = append(all, trap{kind + " as " + use.what, make, use.args, "TRAP", code})
		}
		all = append(all,
			trap{kind + " as list", inFolder(manifest.SumsName, make), []string{"verify", "TRAP"}, manifest.SumsName, programtest.Differs},
			trap{kind + " as model of a folder", inFolder("m.gguf", make), []string{"inspect", "TRAP"}, "m.gguf", programtest.Failed},
			trap{kind + " as journal", inFolder(manifest.JournalName, make), []string{"prune", "--keep", "16", "--resume", "-o", "TRAP", "MODEL"}, "not a regular file", programtest.Failed},
			trap{kind + " as shard", inFolder("small-REAP16-00001-of-00003.gguf.part", make), []string{"prune", "--keep", "16", "--force", "-o", "TRAP", "MODEL"}, "not a regular file", programtest.Failed},
		)
	}
	return append(all, // pipes and devices are written to, as a shell would
		trap{"socket as pin to write", socket, []string{"pin", "--force", "-o", "TRAP.pin.json", "MODEL"}, "TRAP", programtest.Failed},
		trap{"socket as output file", socket, []string{"plan", "--keep", "16", "--force", "-o", "TRAP", "MODEL"}, "TRAP", programtest.Failed},
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
