package gguf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// put writes files into a folder, which it makes.
func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// set returns the files of a split with one tensor a shard, by their names.
func set(stem string, n int) map[string][]byte {
	files := map[string][]byte{}
	for i := range n {
		b := little().head(1, 4).pair(KeyArchitecture, Text, "test").pair(KeySplitNo, Uint16, uint16(i)).
			pair(KeySplitCount, Uint16, uint16(n)).pair(KeySplitTensors, Int32, int32(n))
		b.info(fmt.Sprintf("%s.%d", stem, i), F32, 0, 8)
		files[fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, n)] = b.pad().data(32).b
	}
	return files
}

// renamed gives the files of a set other names, in order.
func renamed(files map[string][]byte, names ...string) map[string][]byte {
	out := map[string][]byte{}
	i := 0
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}) {
		out[names[i]] = files[name]
		i++
	}
	return out
}

// kind returns a file of one tensor that says what kind it is.
func kind(kind string) []byte {
	b := little().head(1, 2).pair(KeyArchitecture, Text, "test").pair("general.type", Text, kind)
	return b.info("t", F32, 0, 8).pad().data(32).b
}

// oldProjector returns one that its architecture alone tells.
func oldProjector() []byte {
	return little().head(1, 1).pair(KeyArchitecture, Text, "clip").info("t", F32, 0, 8).pad().data(32).b
}

func merge(sets ...map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for _, s := range sets {
		for name, b := range s {
			out[name] = b
		}
	}
	return out
}

func TestOpen(t *testing.T) {
	single := tiny(little(), 3)
	three := set("m", 3)
	without := func(files map[string][]byte, name string) map[string][]byte {
		out := merge(files)
		delete(out, name)
		return out
	}
	page := func(i int) map[string][]byte {
		return map[string][]byte{ShardName("m", i-1, 3): []byte("<!DOCTYPE html>")}
	}
	firstRenamed := renamed(three, "first.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf")
	firstWarning := []string{"warning: first.gguf: is shard 1 of 3 by its keys, but is not named like one"}
	tests := []struct {
		name  string
		files map[string][]byte
		path  string // "" is the folder itself
		model string // name and number of files: "m 3"
		fault string
		want  []string
	}{
		{name: "single file", files: map[string][]byte{"a.gguf": single}, path: "a.gguf", model: "a 1"},
		{name: "single file among others", files: map[string][]byte{"a.gguf": single, "b.gguf": single}, path: "b.gguf", model: "b 1"},
		{name: "single file without suffix", files: map[string][]byte{"a": single}, path: "a", model: "a 1"},
		{name: "folder of one", files: map[string][]byte{"a.gguf": single, "notes.txt": nil, ".b.gguf": single, "sub/c.gguf": single}, model: "a 1"},
		{name: "first shard", files: three, path: "m-00001-of-00003.gguf", model: "m 3"},
		{name: "middle shard", files: three, path: "m-00002-of-00003.gguf", model: "m 3"},
		{name: "last shard", files: three, path: "m-00003-of-00003.gguf", model: "m 3"},
		{name: "folder of a set", files: three, model: "m 3"},
		{name: "path that is not clean", files: three, path: ".//m-00002-of-00003.gguf", model: "m 3"},
		{name: "one of one", files: set("m", 1), path: "m-00001-of-00001.gguf", model: "m 1"},
		{name: "folder of one of one", files: set("m", 1), model: "m 1"},
		{name: "folder that looks like a shard", files: map[string][]byte{"x-00001-of-00013/best-of-breed.gguf": single}, path: "x-00001-of-00013", model: "best-of-breed 1"},
		{name: "folder with a model's suffix", files: map[string][]byte{"x.gguf/a.gguf": single, "b.gguf": single}, model: "b 1"},
		{name: "set beside others", files: merge(three, set("n", 2), map[string][]byte{"a.gguf": single}), path: "m-00002-of-00003.gguf", model: "m 3"},

		{name: "incomplete", files: without(three, "m-00002-of-00003.gguf"), path: "m-00003-of-00003.gguf", model: "m 2",
			want: []string{"error: incomplete: 1 of 3 shards is missing: m-00002-of-00003.gguf"}},
		{name: "one shard damaged", files: merge(three, page(2)), path: "m-00001-of-00003.gguf", model: "m 2", want: []string{"error: m-00002-of-00003.gguf: an HTML page, not a model"}},
		{name: "the named shard damaged", files: merge(three, page(2)), path: "m-00002-of-00003.gguf", model: "m 2", want: []string{"error: m-00002-of-00003.gguf: an HTML page"}},
		{name: "first shard damaged", files: merge(three, page(1)), path: "m-00002-of-00003.gguf", model: "m 2", want: []string{"error: m-00001-of-00003.gguf: an HTML page"}},
		{name: "first shard damaged, by itself", files: merge(three, page(1)), path: "m-00001-of-00003.gguf", model: "m 2", want: []string{"error: m-00001-of-00003.gguf: an HTML page"}},
		{name: "first shard damaged, by the folder", files: merge(three, page(1)), model: "m 2", want: []string{"error: m-00001-of-00003.gguf: an HTML page"}},
		{name: "a folder in a shard's place", files: merge(without(three, "m-00002-of-00003.gguf"), map[string][]byte{"m-00002-of-00003.gguf/x": nil}), path: "m-00001-of-00003.gguf", model: "m 2",
			want: []string{"error: m: incomplete: 1 of 3 shards is missing: m-00002-of-00003.gguf"}},
		{name: "one damaged, one missing", files: without(merge(three, page(1)), "m-00003-of-00003.gguf"), model: "m 1",
			want: []string{"error: m-00001-of-00003.gguf: an HTML page", "error: m: incomplete: 1 of 3 shards is missing: m-00003-of-00003.gguf"}},
		{name: "all shards damaged", files: merge(page(1), page(2), page(3)), path: "m-00002-of-00003.gguf", fault: "m-00002-of-00003.gguf: an HTML page"},
		{name: "all shards damaged, by the folder", files: merge(page(1), page(2), page(3)), fault: "m-00001-of-00003.gguf: an HTML page"},

		{name: "renamed", files: renamed(three, "part-a.gguf", "part-b.gguf", "part-c.gguf"), path: "part-b.gguf", model: "part-a 3",
			want: []string{"warning: part-a.gguf: is shard 1 of 3 by its keys", "warning: part-b.gguf", "warning: part-c.gguf"}},
		{name: "folder of renamed ones", files: renamed(three, "z.gguf", "y.gguf", "x.gguf"), model: "z 3",
			want: []string{"warning: z.gguf: is shard 1 of 3", "warning: y.gguf", "warning: x.gguf"}},
		{name: "renamed beside a page and a model", files: merge(renamed(three, "a.gguf", "b.gguf", "c.gguf"), map[string][]byte{"page.gguf": []byte("<html>"), "other.gguf": single}),
			path: "c.gguf", model: "a 3", want: []string{"warning: a.gguf", "warning: b.gguf", "warning: c.gguf"}},
		{name: "renamed without suffix", files: renamed(three, "a.gguf", "b.gguf", "c"), path: "c", model: "a 3",
			want: []string{"warning: a.gguf", "warning: b.gguf", "warning: c"}},
		{name: "six digits", files: renamed(set("m", 2), "m-000001-of-000002.gguf", "m-000002-of-000002.gguf"), path: "m-000002-of-000002.gguf", model: "m-000001-of-000002 2",
			want: []string{"warning: m-000001-of-000002.gguf: is shard 1 of 2 by its keys, but is not named like one", "warning: m-000002"}},
		{name: "digits too few", files: renamed(set("m", 2), "m-1-of-2.gguf", "m-2-of-2.gguf"), path: "m-1-of-2.gguf", model: "m-1-of-2 2",
			want: []string{"warning: m-1-of-2.gguf", "warning: m-2-of-2.gguf"}},
		{name: "one renamed", files: firstRenamed, path: "m-00003-of-00003.gguf", model: "m 3", want: firstWarning},
		{name: "one renamed, by itself", files: firstRenamed, path: "first.gguf", model: "m 3", want: firstWarning},
		{name: "folder of a set, one renamed", files: firstRenamed, model: "m 3", want: firstWarning},
		{name: "suffix in upper case", files: renamed(three, "m-00001-of-00003.gguf", "m-00002-of-00003.GGUF", "m-00003-of-00003.gguf"), model: "m 3",
			want: []string{"warning: m-00002-of-00003.GGUF: is shard 2 of 3 by its keys"}},
		{name: "one renamed beside another whole set", files: merge(firstRenamed, set("n", 3)), path: "m-00002-of-00003.gguf", model: "m 3", want: firstWarning},
		{name: "one renamed, and two sets that lack it", files: merge(firstRenamed, without(set("n", 3), "n-00001-of-00003.gguf")), path: "m-00002-of-00003.gguf", model: "m 2",
			want: []string{"error: m: incomplete: 1 of 3"}},
		{name: "renamed set beside part of another", files: merge(renamed(set("n", 3), "a.gguf", "b.gguf", "c.gguf"), without(three, "m-00002-of-00003.gguf")), path: "m-00001-of-00003.gguf", model: "m 2",
			want: []string{"error: m: incomplete: 1 of 3"}},
		{name: "folder of two renamed sets", files: merge(renamed(three, "a1.gguf", "a2.gguf", "a3.gguf"), renamed(set("n", 3), "b1.gguf", "b2.gguf", "b3.gguf")),
			fault: "holds renamed shards of more than one model: a1.gguf and b1.gguf are both shard 1 of 3 by their keys; name all files of one model"},
		{name: "two renamed sets", files: merge(renamed(three, "a1.gguf", "a2.gguf", "a3.gguf"), renamed(set("n", 3), "b1.gguf", "b2.gguf", "b3.gguf")), path: "b2.gguf",
			fault: "a1.gguf and b1.gguf are both shard 1 of 3"},
		{name: "two renamed sets of other sizes", files: merge(renamed(three, "a1.gguf", "a2.gguf", "a3.gguf"), renamed(set("n", 2), "b1.gguf", "b2.gguf")), path: "b2.gguf", model: "b1 2",
			want: []string{"warning: b1.gguf", "warning: b2.gguf"}},

		{name: "nothing there", path: "a.gguf", fault: "a.gguf: no such file or directory"},
		{name: "empty folder", fault: "no .gguf file in this folder"},
		{name: "models one folder down", files: map[string][]byte{"UD-IQ1_S/a.gguf": single, "UD-Q2/b.gguf": single, "docs/x.txt": nil}, fault: "no .gguf file in this folder; models are in UD-IQ1_S, UD-Q2"},
		{name: "models in a hub's cache", files: map[string][]byte{"blobs/0123": single, "snapshots/0a1b/m.gguf": single, "snapshots/2c3d/UD-IQ1_S/m.gguf": single},
			fault: "no .gguf file in this folder; models are in " + filepath.Join("snapshots", "0a1b") + ", " + filepath.Join("snapshots", "2c3d", "UD-IQ1_S")},
		{name: "models too far down", files: map[string][]byte{"a/b/c/d/e/f/m.gguf": single}, fault: "no .gguf file in this folder"},
		{name: "a hub's caches of all repositories", files: map[string][]byte{"hub/models--o--n/snapshots/0a/Q8_0/m.gguf": single}, fault: "models are in " + filepath.Join("hub", "models--o--n", "snapshots", "0a", "Q8_0")},
		{name: "unfinished downloads", files: map[string][]byte{"a.gguf.part": nil, "b.gguf.incomplete": nil}, fault: "downloads may be unfinished: a.gguf.part, b.gguf.incomplete"},
		{name: "hub's cache", files: map[string][]byte{"blobs/0123": single, "refs/main": []byte("2c3d\n"), "snapshots/0a1b/m.gguf": single, "snapshots/2c3d/n.gguf": single}, model: "n 1"},
		{name: "hub's cache with one snapshot and no main", files: map[string][]byte{"refs/v1": []byte("0a1b"), "snapshots/0a1b/m.gguf": single}, model: "m 1"},
		{name: "hub's cache of folders", files: map[string][]byte{"refs/main": []byte("0a1b"), "snapshots/0a1b/Q8_0/m.gguf": single, "snapshots/2c3d/m.gguf": single},
			fault: filepath.Join("snapshots", "0a1b") + ": no .gguf file in this folder; models are in Q8_0"},
		{name: "hub's cache without its snapshot", files: map[string][]byte{"refs/main": []byte("9999"), "snapshots/0a1b/m.gguf": single}, fault: `refs/main names the snapshot "9999", which is not there; there are models in ` + filepath.Join("snapshots", "0a1b")},
		{name: "reference that leads out", files: map[string][]byte{"refs/main": []byte("../../x"), "snapshots/0a1b/m.gguf": single}, fault: `is not the name of a snapshot: "../../x"`},
		{name: "model beside a folder of snapshots", files: map[string][]byte{"m.gguf": single, "refs/main": []byte("0a1b"), "snapshots/0a1b/n.gguf": single}, model: "m 1"},

		{name: "what goes beside a model", files: merge(three, map[string][]byte{"mmproj-F16.gguf": kind("mmproj"), "imatrix.gguf": kind("imatrix"), "lora.gguf": kind("adapter")}), model: "m 3"},
		{name: "projector by architecture", files: map[string][]byte{"a.gguf": oldProjector(), "m.gguf": single}, model: "m 1"},
		{name: "what goes beside a model, by other keys", files: merge(three, map[string][]byte{
			"a.gguf": little().head(1, 1).pair(KeyArchitecture, Text, "controlvector").info("direction.1", F32, 0, 8).pad().data(32).b,
			"b.gguf": little().head(1, 1).pair("adapter.lora.alpha", Float32, float32(16)).info("t", F32, 0, 8).pad().data(32).b,
			"c.gguf": little().head(1, 1).pair("imatrix.chunk_count", Uint32, uint32(1)).info("t", F32, 0, 8).pad().data(32).b,
			"d.gguf": little().head(2, 1).pair(KeyArchitecture, Text, "llama").info("blk.0.attn_q.weight.lora_a", F32, 0, 8).info("blk.0.attn_q.weight.lora_b", F32, 32, 8).pad().data(64).b}), model: "m 3"},
		{name: "a tensor that is no factor", files: merge(three, map[string][]byte{
			"d.gguf": little().head(2, 1).pair(KeyArchitecture, Text, "llama").info("blk.0.attn_q.weight.lora_a", F32, 0, 8).info("blk.0.attn_q.weight", F32, 32, 8).pad().data(64).b}),
			fault: "holds 2 models"},
		{name: "projector named", files: map[string][]byte{"a.gguf": kind("mmproj"), "m.gguf": single}, path: "a.gguf", model: "a 1"},
		{name: "projector alone", files: map[string][]byte{"a.gguf": kind("mmproj")}, model: "a 1"},
		{name: "projector and models below", files: map[string][]byte{"mmproj-F16.gguf": kind("mmproj"), "Q8_0/m.gguf": single, "Q4_K/m.gguf": single},
			fault: "holds no model, but mmproj-F16.gguf (projector); there are models in Q4_K, Q8_0"},
		{name: "two that go beside", files: map[string][]byte{"a.gguf": kind("mmproj"), "b.gguf": kind("imatrix")}, fault: "holds 2 models, name one of them: a.gguf, b.gguf"},
		{name: "pieces", files: map[string][]byte{"m.gguf.part10of10": nil, "m.gguf.part1of10": nil, "m.gguf.part2of10": nil},
			fault: "m.gguf is cut into 10 pieces, of which 7 are missing: there are m.gguf.part1of10, m.gguf.part2of10, m.gguf.part10of10"},
		{name: "pieces and a part", files: map[string][]byte{"m.gguf.part2of2": nil, "m.gguf.part": nil}, fault: "m.gguf is cut into 2 pieces, of which 1 is missing: there are m.gguf.part2of2"},
		{name: "two models", files: map[string][]byte{"a.gguf": single, "mmproj-F16.gguf": single}, fault: "holds 2 models, name one of them: a.gguf, mmproj-F16.gguf"},
		{name: "two sets", files: merge(three, set("m", 2)), fault: "holds 2 models, name one of them: m-00001-of-00002.gguf, m-00001-of-00003.gguf"},
		{name: "many models", files: map[string][]byte{"1.gguf": single, "2.gguf": single, "3.gguf": single, "4.gguf": single, "5.gguf": single, "6.gguf": single, "7.gguf": single},
			fault: "holds 7 models, name one of them: 1.gguf, 2.gguf, 3.gguf, 4.gguf, 5.gguf, and 2 more"},
		{name: "folder with a damaged file", files: map[string][]byte{"a.gguf": []byte("GGU")}, fault: "a.gguf: the file is truncated: it has 3 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, test.files)
			m, err := Open(dir + string(filepath.Separator) + test.path)
			if test.fault != "" {
				wantError(t, err, test.fault)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if got := fmt.Sprint(m.Name, " ", len(m.Files)); got != test.model {
				t.Errorf("opened %s, want %s", got, test.model)
			}
			var problems []Problem
			for _, p := range m.Problems {
				if !strings.HasPrefix(p.What, "is missing: llama.cpp refuses") {
					problems = append(problems, p)
				}
			}
			wantProblems(t, problems, test.want...)
			if err := m.Unchanged(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAside(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string][]byte{"m.gguf": tiny(little(), 3), "mm.gguf": kind("mmproj"), "i.gguf": kind("imatrix")})
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if want := []Aside{{"i.gguf", "imatrix"}, {"mm.gguf", "projector"}}; !slices.Equal(m.Aside, want) {
		t.Errorf("set aside %v, want %v", m.Aside, want)
	}
}

func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, renamed(set("m", 3), "a", "b", "c"))
	path := func(names ...string) []string {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
		}
		return names
	}
	m, err := OpenFiles(path("c", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := m.Paths(); !slices.Equal(got, path("a", "b", "c")) || m.Err() != nil {
		t.Errorf("opened %q: %v", got, m.Err())
	}
	_, err = OpenFiles(path("a", "x"))
	wantError(t, err, "x: no such file")
	_, err = OpenFiles(nil)
	wantError(t, err, "no files to open")
	_, err = OpenFiles(path("a", "b", "a"))
	wantError(t, err, "a and "+filepath.Join(dir, "a")+" are the same file")
	_, err = OpenFiles([]string{filepath.Join(dir, "a"), dir + "/./a"})
	wantError(t, err, "/./a are the same file")
}

// Every header is read once, however many files a folder has to be searched for.
func TestNoHeaderIsReadTwice(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("part%d.gguf", i)
	}
	put(t, dir, renamed(set("m", 300), names...))
	o := &opener{pool: newFilePool(), parsed: map[string]parsedFile{}}
	defer o.pool.close()
	m, err := o.artifact(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 300 || len(o.parsed) != 300 || o.pool.tick > 2*300 {
		t.Errorf("%d files, %d parsed, %d reads", len(m.Files), len(o.parsed), o.pool.tick)
	}
}
