package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// A writing is a command that writes files into the folder "made".
type writing struct {
	prepare func()
	args    []string
	resume  bool // by a flag; otherwise by the same command
}

// writings are the commands that write a model or what is known of one, each with what has to
// be there.
func (b *bench) writings() map[string]writing {
	source := b.files[0]
	copySource := func() {
		for name, data := range b.source {
			programtest.WriteText(b.t, filepath.Join("made", name), data)
		}
	}
	damage := func() {
		copySource()
		name := filepath.Base(b.files[1])
		data := []byte(b.source[name])
		data[len(data)/2] ^= 1
		programtest.WriteText(b.t, filepath.Join("made", name), string(data[:len(data)-100]))
	}
	parts := func() {
		for _, part := range []string{"1/2", "2/2"} {
			programtest.Succeed(b.t, "prune", "--plan", "plan.json", "--only", part, "-o", "made/out", source)
		}
	}
	damageRelease := func() { // one shard is gone, in others a header and a byte are wrong
		for i, name := range slices.Sorted(maps.Keys(b.want)) {
			data := []byte(b.want[name])
			if strings.HasSuffix(name, ".gguf") {
				data[(i%2)*len(data)/2] ^= 1
			}
			if !strings.Contains(name, "-00002-of-") {
				programtest.WriteText(b.t, filepath.Join("made", name), string(data))
			}
		}
	}
	damageListed := func() {
		damage()
		programtest.WriteText(b.t, filepath.Join("made", "MANIFEST.sha256"), programtest.ListFolder(b.t, filepath.Dir(source)))
	}
	none := func() {}
	return map[string]writing{
		"edit":               {none, []string{"edit", "--set", "general.url=x", "-o", "made/out", source}, true},
		"edit --link":        {none, []string{"edit", "--set", "general.url=x", "--link", "-o", "made/out", source}, true},
		"edit --in-place":    {copySource, []string{"edit", "--in-place", "--no-provenance-keys", "--set", "general.name=kleins", "made/" + filepath.Base(source)}, false},
		"reshard":            {none, []string{"reshard", "--shards", "2", "-o", "made/out", source}, true},
		"prune --pin-source": {none, []string{"prune", "--plan", "plan.json", "--pin-source", "made/pin.json", "-o", "made/out", source}, true},
		"prune --only":       {none, []string{"prune", "--plan", "plan.json", "--only", "1/2", "-o", "made/out", source}, false},
		"assemble":           {parts, []string{"assemble", "--wait", "0s", "made/out"}, false},
		"pin":                {none, []string{"pin", "-o", "made/pin.json", source}, false},
		"repair (pruned)":    {damageRelease, []string{"repair", "--from", source, "made"}, false},
		"repair (sums)":      {damageListed, []string{"repair", "--from", filepath.Dir(source), "made"}, false},
		"repair":             {damage, []string{"repair", "--pin", "pin.json", "--from", filepath.Dir(source), "made"}, false},
	}
}

// TestWriteFaults lets what commands write fail, with strace. The same command then comes to
// what an undisturbed one makes, byte for byte, with nothing beside it. The short form tries a
// third of the faults in each command, and each of them in some.
func TestWriteFaults(t *testing.T) {
	const session = "write faults"
	strace, err := exec.LookPath("strace")
	if err != nil {
		notRun(t, session, "strace is not installed")
	}
	b := newBench(t, session, programtest.SmallK3(), "--keep", "16")
	t.Chdir(t.TempDir())
	programtest.Succeed(t, "plan", "--keep", "16", "-o", "plan.json", b.files[0])
	programtest.Succeed(t, "pin", "-o", "pin.json", b.files[0])
	log := filepath.Join(t.TempDir(), "log")
	ended := 0
	faults := []string{
		"write:error=ENOSPC", "write:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "fsync:error=EIO", "fallocate:error=ENOSPC",
		"renameat:error=EIO", "unlinkat:error=EACCES", "openat:error=EMFILE", "linkat:error=EMLINK", "ftruncate:error=EIO", "flock:error=ENOLCK",
	}
	met := map[string]bool{}
	writings := b.writings()
	for n, name := range slices.Sorted(maps.Keys(writings)) {
		w := writings[name]
		begin := func() {
			if err := os.RemoveAll("made"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir("made", 0o777); err != nil {
				t.Fatal(err)
			}
			w.prepare()
		}
		begin()
		programtest.Succeed(t, w.args...)
		want := allFiles(t, "made")
		for k, fault := range faults {
			if *chaos == 1 && (n+k)%3 != 0 {
				continue
			}
			for at := 1; at <= min(*chaos, 6); at++ {
				begin()
				call, _, _ := strings.Cut(fault, ":")
				what := fmt.Sprintf("%s, %s:when=%d", name, fault, at)
				r := b.wait(b.startCommand(strace, slices.Concat([]string{"-f", "--seccomp-bpf", "-qqq", "-o", log, "-e", "trace=" + call, "-e", "inject=" + fmt.Sprintf("%s:when=%d", fault, at), b.program}, w.args)...))
				data, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(data, []byte("(INJECTED)")) {
					break
				}
				b.faults++
				met[fault] = true
				if r.Code != programtest.OK {
					ended++
					b.again(w, what, r)
				}
				got := allFiles(t, "made")
				if name == "prune --only" { // what a task leaves is removed once all parts are joined
					maps.DeleteFunc(got, func(path, _ string) bool {
						return strings.HasSuffix(path, ".part") || strings.HasSuffix(path, ".unfinished.json")
					})
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: exit %d, made %q, want %q\n%s", what, r.Code, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), r.Stderr)
				}
			}
		}
	}
	fmt.Printf("chaos: %s: %d of %d ended the run\n", session, ended, b.faults)
	if ended == 0 {
		t.Error("no fault ended a run")
	}
	for _, fault := range faults {
		if !met[fault] {
			t.Errorf("no command met %s", fault)
		}
	}
}

// again goes on after a run that a fault ended, unless all was done and it could only not say
// so.
func (b *bench) again(w writing, what string, was programtest.Result) {
	b.t.Helper()
	if strings.Contains(was.Stderr, "/dev/stdout") {
		return
	}
	args := w.args
	if w.resume {
		args = slices.Insert(slices.Clone(args), 1, "--resume")
	}
	if r := b.wait(b.start(args)); r.Code != programtest.OK {
		b.t.Errorf("%s: exit %d\n%s\nand then %d\n%s", what, was.Code, was.Stderr, r.Code, r.Stderr)
	}
}

// allFiles are the files below a folder with what they hold.
func allFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
