package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputsThatWouldHarmARelease names files of the release, or what it is made from, for
// other outputs. Nothing is written, with --force too.
func TestOutputsThatWouldHarmARelease(t *testing.T) {
	dir := t.TempDir()
	source := writeModel(t, smallK3(), 3)[0]
	out, plan := filepath.Join(dir, "out"), filepath.Join(dir, "out", "plan.json")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, pin := range []string{out + "/pin.json.zst", link + "/out/pin.json.zst", out + "/x.json", out + "/small-REAP16-00001-of-00003.gguf", source, filepath.Join(filepath.Dir(source), "UNFINISHED.jsonl"), dir + "/x.part"} {
		r := ggufreap(t, "prune", "--keep", "16", "--pin-source", pin, "--force", "-o", out, source)
		if r.code != exitFailed || exists(out) {
			t.Errorf("--pin-source %s: exit %d\n%s", pin, r.code, r.stderr)
		}
	}
	if r := ggufreap(t, "prune", "--keep", "16", "-o", out, source); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	before := folder(t, out)
	for _, line := range [][]string{
		{"prune", "--plan", plan, "--force", "-o", out, source},
		{"pin", "--force", "-o", plan, source},
		{"pin", "--force", "-o", out + "/MANIFEST.sha256", out},
		{"plan", "--keep", "16", "--force", "-o", plan, source},
		{"plan", "--keep", "16", "--force", "-o", out + "/small-REAP16-00002-of-00003.gguf", source},
	} {
		if r := ggufreap(t, line...); r.code != exitFailed {
			t.Errorf("%q: exit %d\n%s", line, r.code, r.stderr)
		}
	}
	if after := folder(t, out); !maps.Equal(after, before) {
		t.Error("the release was changed")
	}
}

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
