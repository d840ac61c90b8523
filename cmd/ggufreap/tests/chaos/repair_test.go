package chaos

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/remote/hubtest"
)

// A ward is a folder that is damaged all over, and what repairs it from the test hub.
type ward struct {
	t    *testing.T
	hub  *hubtest.Hub
	dir  string
	want map[string]string
	line []string // the command that repairs it
}

// newWards returns folders that are mended by a pin and a copy, by sums and a copy, and by the
// model before pruning.
func newWards(t *testing.T) map[string]*ward {
	t.Helper()
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	pin := filepath.Join(dir, "pin.json.zst")
	programtest.Succeed(t, "pin", "-o", pin, files[0])
	wards := map[string]*ward{}
	for name, flags := range map[string][]string{"pin": {"--pin", pin}, "sums": nil} {
		copied := filepath.Join(dir, name)
		if err := os.Mkdir(copied, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			programtest.WriteText(t, filepath.Join(copied, filepath.Base(file)), string(programtest.ReadFile(t, file)))
		}
		wards[name] = &ward{dir: copied, line: flags}
	}
	pruned := filepath.Join(dir, "pruned")
	programtest.Succeed(t, "prune", "--keep", "24", "--shards", "4", "-o", pruned, files[0])
	wards["pruned"] = &ward{dir: pruned}
	for _, w := range wards {
		w.t, w.hub, w.want = t, h, programtest.Folder(t, w.dir)
		w.line = append(append([]string{"repair", "--from", "hf://org/K3"}, w.line...), w.dir)
	}
	return wards
}

// damage changes some bytes everywhere, and has the last file not be there.
func (w *ward) damage() {
	w.t.Helper()
	last := ""
	for name, data := range w.want {
		path := filepath.Join(w.dir, name)
		if gguf.IsModelFile(name) {
			damaged := []byte(data)
			for at := 100; at < len(damaged); at += 400_000 {
				copy(damaged[at:], "damage")
			}
			data, last = string(damaged), max(last, path)
		}
		programtest.WriteText(w.t, path, data)
	}
	if err := os.Remove(last); err != nil {
		w.t.Fatal(err)
	}
}

// start begins a slow repair.
func (w *ward) start(rate string) (*exec.Cmd, *bytes.Buffer) {
	w.t.Helper()
	cmd := exec.Command(programtest.Path(w.t), append([]string{"repair", "--limit-rate", rate, "--connections", "2"}, w.line[1:]...)...)
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, stderr
}

// finish repairs to the end, and compares every byte.
func (w *ward) finish() {
	w.t.Helper()
	programtest.Succeed(w.t, w.line...)
	got := programtest.Folder(w.t, w.dir)
	for name, data := range w.want {
		if got[name] != data {
			w.t.Errorf("%s is not what it was", name)
		}
	}
	if len(got) != len(w.want) {
		w.t.Errorf("%d files, want %d", len(got), len(w.want))
	}
	if out := programtest.Succeed(w.t, w.line...); !strings.Contains(out, "nothing is wrong") {
		w.t.Errorf("a repair of what was repaired prints\n%s", out)
	}
}

// TestKilledWhileRepairing kills a repair from the hub several times at random, each time after
// some of it has come, and goes on: the files are what they were, and nothing lies beside them.
func TestKilledWhileRepairing(t *testing.T) {
	for name, w := range newWards(t) {
		w.damage()
		kills := min(2**chaos, 12) // more would come behind the end
		killed := 0
		for range kills {
			w.hub.Reset()
			cmd, stderr := w.start("2MB")
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for enough, end := rand.Int64N(400_000), time.Now().Add(time.Minute); w.hub.Written.Load() < enough && len(ended) == 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			cmd.Process.Kill()
			if err := <-ended; err != nil && strings.Contains(err.Error(), "killed") {
				killed++
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, stderr.String())
			}
		}
		if killed < kills/2 {
			t.Errorf("%s: %d kills only came before the end", name, killed)
		}
		w.finish()
	}
}

// TestTwoRepairsAtOnce has a second repair wait for another time while one is at work, which Ctrl-C
// then ends: the same command goes on.
func TestTwoRepairsAtOnce(t *testing.T) {
	for name, w := range newWards(t) {
		w.damage()
		cmd, stderr := w.start("100kB")
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if info, err := os.Stat(filepath.Join(w.dir, "REPAIR.jsonl")); err == nil && info.Size() > 0 {
				break
			}
		}
		if r := programtest.Run(t, w.line...); r.Code != programtest.TryAgain || !strings.Contains(r.Stderr, "another run repairs") {
			t.Errorf("%s: a second run: exit %d, %s", name, r.Code, r.Stderr)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "the same command goes on") {
			t.Errorf("%s: interrupted: %v, %s", name, err, stderr.String())
		}
		w.finish()
	}
}
