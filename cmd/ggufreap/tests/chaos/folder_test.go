//go:build unix

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestSecondRunIsRefused starts a run while another is stopped in the middle.
func TestSecondRunIsRefused(t *testing.T) {
	b := newBench(t, "second runs", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	for b.faults == 0 {
		out := filepath.Join(t.TempDir(), "release")
		p := b.start(b.line(out))
		stopped := waitUntilKept(out, 1)
		p.Process.Signal(syscall.SIGSTOP)
		if stopped && !finished(out) {
			b.faults++
			for _, tc := range []struct{ flag, want string }{
				{"--resume", "is being written to by another run"},
				{"--force", "is being written to by another run"},
				{"--json", "is being written to by another run"},
			} {
				if r := b.run(out, tc.flag); r.Code != programtest.TryAgain || !strings.Contains(r.Stderr, tc.want) {
					t.Errorf("%s: exit %d, want %d and %q in\n%s", tc.flag, r.Code, programtest.TryAgain, tc.want, r.Stderr)
				}
			}
		}
		p.Process.Signal(syscall.SIGCONT)
		if r := b.wait(p); r.Code != programtest.OK {
			t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
		}
		b.compare(out, "after a second run")
	}
}

// TestFolderVanishes removes, moves and replaces the folder while a run is stopped.
func TestFolderVanishes(t *testing.T) {
	b := newBench(t, "vanishing folders", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	for what, vanish := range map[string]func(out string) error{
		"removed": func(out string) error {
			err := os.RemoveAll(out)
			for range 100 { // a system call that the stop found under way may add a file
				if err == nil {
					break
				}
				err = os.RemoveAll(out)
			}
			return err
		},
		"moved": func(out string) error { return os.Rename(out, out+"-moved") },
		"replaced": func(out string) error {
			return errors.Join(os.Rename(out, out+"-moved"), os.Mkdir(out, 0o777))
		},
	} {
		for done := false; !done; {
			out := filepath.Join(t.TempDir(), "release")
			p := b.start(b.line(out))
			stopped := waitUntilKept(out, 2)
			p.Process.Signal(syscall.SIGSTOP)
			done = stopped && kept(t, out) < b.size()/2
			if done {
				b.faults++
				if err := vanish(out); err != nil {
					t.Fatal(err)
				}
			}
			p.Process.Signal(syscall.SIGCONT)
			r := b.wait(p)
			if !done {
				continue
			}
			if r.Code != programtest.Failed || !strings.Contains(r.Stderr, out) || strings.Contains(r.Stderr, "to go on") {
				t.Errorf("%s: exit %d, want %d and the folder's name, and no way to go on there, in\n%s", what, r.Code, programtest.Failed, r.Stderr)
			}
			if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
				t.Errorf("%s: the folder has a list of sums", what)
			}
			if moved := out + "-moved"; what != "removed" {
				b.goOn(moved, what)
			} else {
				b.goOn(out, what)
			}
		}
	}
}
