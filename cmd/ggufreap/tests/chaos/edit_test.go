//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// edits makes a bench of an edit.
func edits(t *testing.T, session string, args ...string) *bench {
	t.Helper()
	return newBenchOf(t, session, gguftest.K3(gguftest.K3Options{}), append([]string{"edit", "--set", "general.url=x"}, args...)...)
}

// TestKillEdit kills edits at random points and goes on until each is whole. The source, whose
// files are the release's too where they are linked, stays what it was.
func TestKillEdit(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, flags := range [][]string{nil, {"--link"}} {
		b := edits(t, fmt.Sprintf("kills of edit %s", strings.Join(flags, " ")), flags...)
		for session := 0; session < 2**chaos; session++ {
			out := filepath.Join(t.TempDir(), "release")
			for !finished(out) {
				p := b.start(b.line(out, "--resume"))
				killAtRandom(p, out, b.took, rng)
				r := b.wait(p)
				if r.Code == -1 {
					b.kills++
				} else if r.Code != programtest.OK {
					t.Fatalf("%q, session %d: exit %d\n%s", flags, session, r.Code, r.Stderr)
				}
				b.checkList(out, "after a kill")
			}
			b.compare(out, fmt.Sprintf("%q, session %d", flags, session))
		}
	}
}

// TestKillEditInPlace kills edits in place at random moments. Taken back where that is wanted,
// the model is the old one or the new one, and nothing lies beside it.
func TestKillEditInPlace(t *testing.T) {
	b := edits(t, "kills of edit in place")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	was := b.source[filepath.Base(b.files[0])]
	name := "kimi-k3.attention.layer_norm_rms_epsilon"
	line := func(file string) []string {
		return []string{"edit", "--in-place", "--force", "--no-provenance-keys", "--set", name + "=0.5", file}
	}
	put := func() string {
		t.Helper()
		dir := t.TempDir()
		for file, data := range b.source {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, filepath.Base(b.files[0]))
	}
	file := put()
	started := time.Now()
	if r := b.wait(b.start(line(file))); r.Code != programtest.OK {
		t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
	}
	took := time.Since(started)
	is := programtest.Folder(t, filepath.Dir(file))[filepath.Base(file)]
	found := map[string]int{}
	for range 8 * *chaos {
		file := put()
		p := b.start(line(file))
		time.Sleep(time.Duration(rng.Int64N(int64(took) + 1)))
		p.Process.Kill()
		if b.wait(p).Code == -1 {
			b.kills++
		}
		if programtest.Exists(file + manifest.OldHeaderSuffix) {
			found["taken back"]++
			if r := b.wait(b.start([]string{"edit", "--in-place", file})); r.Code != programtest.OK {
				t.Fatalf("taking back: exit %d\n%s", r.Code, r.Stderr)
			}
		}
		got := programtest.Folder(t, filepath.Dir(file))
		delete(got, filepath.Base(file)+manifest.OldHeaderSuffix+".part")
		switch now := got[filepath.Base(file)]; {
		case len(got) != len(b.source):
			t.Errorf("left %d files, want %d", len(got), len(b.source))
		case now == was:
			found["old"]++
		case now == is:
			found["new"]++
		default:
			b.lost += len(is)
		}
	}
	fmt.Printf("chaos: edit in place: found %v\n", found)
}
