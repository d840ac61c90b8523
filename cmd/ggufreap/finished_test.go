package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFinishedReleaseIsFound writes releases twice: the second time there is nothing to do,
// with --resume and without, which is no error.
func TestFinishedReleaseIsFound(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	for name, line := range map[string][]string{
		"prune":              {"prune", "--keep", "16"},
		"prune --pin-source": {"prune", "--keep", "16", "--pin-source", filepath.Join(t.TempDir(), "source.pin.json.zst")},
		"reshard":            {"reshard", "--shards", "2"},
	} {
		out := filepath.Join(t.TempDir(), "release")
		line = append(line, "-o", out, source)
		first := ggufreap(t, line...)
		if first.code != exitOK {
			t.Fatalf("%s: exit %d\n%s", name, first.code, first.stderr)
		}
		before := folder(t, out)
		for _, flags := range [][]string{nil, {"--resume"}, {"--resume", "--recheck"}} {
			if flags == nil && strings.Contains(name, "pin-source") {
				continue // the pin is there, and only a run that goes on may find it
			}
			r := ggufreap(t, append(flags, line...)...)
			if r.code != exitOK || r.stdout != first.stdout || !strings.Contains(r.stderr, "holds this release, finished: nothing was written") {
				t.Errorf("%s %q: exit %d, printed %q, want %q\n%s", name, flags, r.code, r.stdout, first.stdout, r.stderr)
			}
		}
		shard, _ := filepath.Glob(filepath.Join(out, "*00002-of*.gguf"))
		data := []byte(before[filepath.Base(shard[0])])
		data[len(data)-100] ^= 1
		if err := os.WriteFile(shard[0], data, 0o666); err != nil {
			t.Fatal(err)
		}
		if r := ggufreap(t, append(line, "--resume", "--recheck")...); r.code != exitFailed || !strings.Contains(r.stderr, "damaged") {
			t.Errorf("%s with a flipped bit: exit %d\n%s", name, r.code, r.stderr)
		}
		if err := os.Truncate(shard[0], 1000); err != nil {
			t.Fatal(err)
		}
		if r := ggufreap(t, append(line, "--resume")...); r.code != exitFailed || !strings.Contains(r.stderr, "has 1,000 bytes") {
			t.Errorf("%s with a short shard: exit %d\n%s", name, r.code, r.stderr)
		}
	}
}
