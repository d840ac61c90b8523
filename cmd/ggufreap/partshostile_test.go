package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/manifest/parts"
)

// A partsFolder has parts of a release that are ready to be joined.
type partsFolder struct {
	dir  string
	line []string // without -o and --only
	n    int
}

func newPartsFolder(t *testing.T, n int) partsFolder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	p := partsFolder{dir, []string{"prune", "--keep", "16", "--shards", "4", writeModel(t, smallK3(), 3)[0]}, n}
	for i := range n {
		p.run(t, i+1)
	}
	return p
}

// copied returns the same parts in another folder.
func (p partsFolder) copied(t *testing.T) partsFolder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(dir, os.DirFS(p.dir)); err != nil {
		t.Fatal(err)
	}
	return partsFolder{dir, p.line, p.n}
}

func (p partsFolder) run(t *testing.T, i int, flags ...string) result {
	t.Helper()
	line := append(p.line, "-o", p.dir, "--only", fmt.Sprintf("%d/%d", i, p.n))
	r := ggufreap(t, append(line, flags...)...)
	if r.code != exitOK {
		t.Fatalf("part %d: exit %d\n%s", i, r.code, r.stderr)
	}
	return r
}

func (p partsFolder) path(name string) string { return filepath.Join(p.dir, name) }

// editRecord changes a record and seals it again, as who forges it would.
func (p partsFolder) editRecord(t *testing.T, i int, edit func(r *parts.Record)) {
	t.Helper()
	path := p.path(parts.Name(i, p.n))
	r, err := parts.Decode(bytes.NewReader(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	edit(r)
	var text bytes.Buffer
	if err := r.Encode(&text); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text.Bytes())
}

// TestJoinRefuses changes what parts have left. Nothing is joined then: the parts to submit
// again are listed, or the request is refused. Done again, they join.
func TestJoinRefuses(t *testing.T) {
	ready := newPartsFolder(t, 3)
	const shard2, shard3 = "small-REAP16-00002-of-00004.gguf", "small-REAP16-00003-of-00004.gguf"
	flip := func(t *testing.T, path string) {
		data := readFile(t, path)
		data[len(data)-200] ^= 1
		writeFile(t, path, data)
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, p partsFolder)
		flags  []string
		code   int
		want   string
		again  []string // flags with which part 2 mends it; nil where it does not
	}{
		"a record is missing": {func(t *testing.T, p partsFolder) { os.Remove(p.path("PART-2-of-3.json")) }, nil, exitDiffers, "--array=2", []string{}},
		"a record is edited":  {func(t *testing.T, p partsFolder) { flip(t, p.path("PART-2-of-3.json")) }, nil, exitDiffers, "is damaged", []string{}},
		"a record is cut":     {func(t *testing.T, p partsFolder) { os.Truncate(p.path("PART-2-of-3.json"), 100) }, nil, exitDiffers, "is damaged", []string{}},
		"a record is empty":   {func(t *testing.T, p partsFolder) { os.Truncate(p.path("PART-2-of-3.json"), 0) }, nil, exitDiffers, "is damaged", []string{}},
		"a record is huge":    {func(t *testing.T, p partsFolder) { os.Truncate(p.path("PART-2-of-3.json"), 65<<20) }, nil, exitDiffers, "is damaged", []string{}},
		"a record is another's": {func(t *testing.T, p partsFolder) {
			writeFile(t, p.path("PART-2-of-3.json"), readFile(t, p.path("PART-1-of-3.json")))
		}, nil, exitDiffers, "the record of part 1", []string{}},
		"a shard is missing": {func(t *testing.T, p partsFolder) { os.Remove(p.path(shard2)) }, nil, exitDiffers, "is missing", []string{}},
		"a shard is short":   {func(t *testing.T, p partsFolder) { os.Truncate(p.path(shard2), 100) }, nil, exitDiffers, "has 100 bytes", []string{}},
		"a shard is a link":  {func(t *testing.T, p partsFolder) { linkTo(t, p.path(shard2)) }, nil, exitDiffers, "not a regular file", nil},
		"a shard is changed": {func(t *testing.T, p partsFolder) { flip(t, p.path(shard2)) }, []string{"--recheck"}, exitDiffers, "sha256 is", []string{"--recheck"}},
		"a record is missing and a shard is changed": {func(t *testing.T, p partsFolder) {
			os.Remove(p.path("PART-3-of-3.json"))
			flip(t, p.path(shard2))
		}, []string{"--recheck"}, exitDiffers, "sha256 is", []string{"--recheck"}},
		"a header is changed": {func(t *testing.T, p partsFolder) {
			data := readFile(t, p.path(shard2))
			data[0] ^= 1
			writeFile(t, p.path(shard2), data)
		}, []string{"--recheck"}, exitDiffers, "sha256 is", []string{"--recheck"}},
		"a plan is changed": {func(t *testing.T, p partsFolder) { flip(t, p.path("plan.json")) }, nil, exitDiffers, "plan.json", nil},
		"a forged sum": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Files[0].SHA256[0]++ })
		}, []string{"--recheck"}, exitDiffers, "sha256 is", []string{"--recheck"}},
		"a forged digest": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Tensors[0].BLAKE3[0]++ })
		}, []string{"--recheck"}, exitDiffers, "is not what its record says", nil},
		"another version": {func(t *testing.T, p partsFolder) { p.editRecord(t, 2, func(r *parts.Record) { r.Program = "v9" }) }, nil, exitFailed, "version v9 of the program", nil},
		"another plan": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Facts[0].Digest.Sum[0]++ })
		}, nil, exitFailed, "the plan is", nil},
		"another source": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Facts[1].Digest.Sum[0]++ })
		}, nil, exitFailed, "source's structure digest is", nil},
		"two claim one shard": {func(t *testing.T, p partsFolder) { p.editRecord(t, 2, func(r *parts.Record) { r.Files[0].Number = 1 }) }, nil, exitFailed, "both have file 1", nil},
		"nobody claims a shard": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Files, r.Tensors = nil, nil })
		}, nil, exitFailed, "no part has file", nil},
		"a name outside": {func(t *testing.T, p partsFolder) {
			replaceIn(t, p.path("PART-1-of-3.json"), shard2, "../../../../../etc/passwd")
		}, nil, exitDiffers, "is damaged", []string{}},
		"another number of parts": {func(t *testing.T, p partsFolder) {
			writeFile(t, p.path("PART-1-of-2.json"), readFile(t, p.path("PART-1-of-3.json")))
		}, nil, exitFailed, "parts of 2 and of 3", nil},
		"another name": {func(t *testing.T, p partsFolder) {
			p.editRecord(t, 2, func(r *parts.Record) { r.Files[0].Name = "plan.json" })
		}, nil, exitFailed, `"plan.json", want "small`, nil},
		"a stranger's model": {func(t *testing.T, p partsFolder) { writeFile(t, p.path("other.gguf"), readFile(t, p.path(shard3))) }, nil, exitFailed, "is no part of the release", nil},
		"one run's journal":  {func(t *testing.T, p partsFolder) { writeFile(t, p.path("UNFINISHED.jsonl"), nil) }, nil, exitFailed, "one run writes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := ready.copied(t)
			tc.change(t, p)
			before := folder(t, p.dir)
			r := ggufreap(t, append([]string{"assemble", "--wait", "0s", p.dir}, tc.flags...)...)
			if r.code != tc.code || !strings.Contains(r.stdout+r.stderr, tc.want) {
				t.Errorf("exit %d, want %d and %q\n%s%s", r.code, tc.code, tc.want, r.stdout, r.stderr)
			}
			if !maps.Equal(folder(t, p.dir), before) {
				t.Error("what was refused changed the folder")
			}
			if tc.again == nil {
				return
			}
			for i := range 3 {
				p.run(t, i+1, tc.again...)
			}
			succeed(t, append([]string{"assemble", "--wait", "0s", p.dir}, tc.flags...)...)
			succeed(t, "verify", "--strict", p.dir)
		})
	}
}

// linkTo puts a link to a copy in the place of a file.
func linkTo(t *testing.T, path string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	writeFile(t, copied, readFile(t, path))
	os.Remove(path)
	if err := os.Symlink(copied, path); err != nil {
		t.Skip(err) // some systems let administrators alone make links
	}
}

func replaceIn(t *testing.T, path, from, to string) {
	t.Helper()
	writeFile(t, path, bytes.ReplaceAll(readFile(t, path), []byte(from), []byte(to)))
}

// TestOnlyRefuses gives --only with what it does not go with.
func TestOnlyRefuses(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	dir := t.TempDir()
	busy := filepath.Join(dir, "busy")
	if err := os.Mkdir(busy, 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(busy, "notes.txt"), []byte("x"))
	for want, line := range map[string][]string{
		"--pin-source and --only": {"prune", "--keep", "16", "--pin-source", dir + "/p.json", "--only", "1/2", "-o", dir + "/o", source},
		"--card and --only":       {"prune", "--keep", "16", "--card", "--only", "1/2", "-o", dir + "/o", source},
		"--force and --only":      {"reshard", "--shards", "2", "--force", "--only", "1/2", "-o", dir + "/o", source},
		"no output folder given":  {"reshard", "--shards", "2", "--only", "1/2", source},
		`--only is "3/2"`:         {"reshard", "--shards", "2", "--only", "3/2", "-o", dir + "/o", source},
		`holds "notes.txt"`:       {"reshard", "--shards", "2", "--only", "1/2", "-o", busy, source},
		"holds the source":        {"reshard", "--shards", "2", "--only", "1/2", "-o", filepath.Dir(source), source},
		"--check and --only":      {"pin", "--check", source, "--only", "1/2", "-o", dir + "/o", source},
		"--format gguf-hash and":  {"pin", "--format", "gguf-hash", "--only", "1/2", "-o", dir + "/o", source},
		"no folder given":         {"pin", "--only", "1/2", source},
		"for records alone":       {"pin", "--only", "1/2", "-o", filepath.Dir(source), source},
		"holds no record":         {"assemble", "--wait", "0s", busy},
		"one folder":              {"assemble"},
		"parts of a release":      {"assemble", "-o", dir + "/p.json", newPartsFolder(t, 1).dir},
	} {
		before := folder(t, filepath.Dir(source))
		r := ggufreap(t, line...)
		if r.code != exitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d, want 2 and %q\n%s", line, r.code, want, r.stderr)
		}
		if exists(dir+"/o") || !maps.Equal(folder(t, filepath.Dir(source)), before) {
			t.Errorf("%q: what was refused left something", line)
		}
	}
}
