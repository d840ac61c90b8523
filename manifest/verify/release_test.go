package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

func mustVerify(t *testing.T, path string, o Options) *Report {
	t.Helper()
	r, err := Release(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has reports whether some finding is of this kind, about this file, and says what.
func has(r *Report, kind Kind, file, what string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Kind == kind && f.File == file && strings.Contains(f.What, what)
	})
}

func TestVerifySoundRelease(t *testing.T) {
	dir, pin := mustRelease(t)
	r := mustVerify(t, dir, Options{Expect: mustExpect(t, "experts=6,shards=3,architecture=test,weights_digest="+pin.WeightsDigest.String())})
	for _, f := range r.Findings {
		t.Errorf("finding: %+v", f)
	}
	if r.Artifact == nil || *r.Artifact != pin.Artifact {
		t.Errorf("model is %+v, want %+v", r.Artifact, pin.Artifact)
	}
	for _, want := range []string{"names: 4 listed, 4 of them there, 5 files", "3 of 3 shards, 8 tensors", "sums: 4 of 4 files", "experts=6, shards=3"} {
		if !slices.ContainsFunc(r.Checked, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nothing checked says %q: %q", want, r.Checked)
		}
	}
}

// The data of the model and the other files are read one after the other, and are one
// task to whoever watches.
func TestVerifyReportsProgress(t *testing.T) {
	dir, pin := mustRelease(t)
	for _, expect := range []string{"shards=3", "weights_digest=" + pin.WeightsDigest.String()} {
		var last, end int64
		mustVerify(t, dir, Options{Expect: mustExpect(t, expect), Progress: func(done, total int64) {
			if done < last || done > total {
				t.Errorf("%s: from %d to %d of %d", expect, last, done, total)
			}
			last, end = done, total
		}})
		var want int64
		for _, name := range folderNames(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if name != manifest.SumsName {
				want += info.Size()
			}
		}
		if last != want || end != want {
			t.Errorf("%s: ended at %d of %d, want %d", expect, last, end, want)
		}
	}
}

func mustExpect(t *testing.T, s string) []Expectation {
	t.Helper()
	list, err := ParseExpectations(s)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// change reads a file, changes its bytes and writes it back.
func change(t *testing.T, path string, edit func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, edit(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

func flipLast(data []byte) []byte { data[len(data)-1] ^= 1; return data }

func TestVerifyFindsDamage(t *testing.T) {
	const first, second, third = "out-00001-of-00003.gguf", "out-00002-of-00003.gguf", "out-00003-of-00003.gguf"
	tests := map[string]struct {
		damage func(t *testing.T, dir string)
		kind   Kind
		file   string
		what   string
	}{
		"flipped byte": {func(t *testing.T, dir string) { change(t, filepath.Join(dir, second), flipLast) },
			KindDigest, second, "MANIFEST.sha256 says"},
		"flipped document": {func(t *testing.T, dir string) { change(t, filepath.Join(dir, "plan.json"), flipLast) },
			KindDigest, "plan.json", "sha256 is"},
		"missing shard": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, second)) },
			KindMissing, second, "not there"},
		"missing shard, set": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, second)) },
			KindStructure, "", "incomplete: 1 of 3 shards"},
		"missing document": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "plan.json")) },
			KindMissing, "plan.json", "not there"},
		"extra model file": {func(t *testing.T, dir string) { touch(filepath.Join(dir, "other.gguf")) },
			KindExtra, "other.gguf", "does not list"},
		"truncated": {func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, third), 1200) },
			KindStructure, third, "truncated"},
		"truncated in the header": {func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, third), 23) },
			KindStructure, third, "truncated"},
		"swapped shards": {func(t *testing.T, dir string) {
			os.Rename(filepath.Join(dir, first), filepath.Join(dir, "t"))
			os.Rename(filepath.Join(dir, second), filepath.Join(dir, first))
			os.Rename(filepath.Join(dir, "t"), filepath.Join(dir, second))
		}, KindStructure, first, "the name says shard 1 of 3, the keys say shard 2 of 3"},
		"page instead of a model": {func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, first), []byte("<!DOCTYPE html>"), 0o666)
		}, KindStructure, first, "HTML"},
		"list cut": {func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte { return b[:len(b)-20] })
		}, KindList, manifest.SumsName, "line 4: line has no line end"},
		"line of the list gone": {func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] })
		}, KindExtra, first, "does not list"},
		"empty list": {func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, manifest.SumsName), func([]byte) []byte { return nil })
		}, KindList, manifest.SumsName, "no entries"},
		"flipped list": {func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte { b[0] = "01"[(b[0]^1)&1]; return b })
		}, KindDigest, first, "sha256 is"},
		"list lists itself": {func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte { return append(b, hexA+"  "+manifest.SumsName+"\n"...) })
		}, KindList, manifest.SumsName, "lists itself"},
		"listed folder": {func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, "plan.json"))
			os.Mkdir(filepath.Join(dir, "plan.json"), 0o777)
		}, KindUnreadable, "plan.json", "not a regular file"},
		"no model": {func(t *testing.T, dir string) {
			for _, name := range folderNames(t, dir) {
				os.Remove(filepath.Join(dir, name))
			}
		}, KindStructure, "", "no model file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, _ := mustRelease(t)
			test.damage(t, dir)
			r := mustVerify(t, dir, Options{})
			if !has(r, test.kind, test.file, test.what) {
				t.Errorf("no %s finding about %q says %q:\n%+v", test.kind, test.file, test.what, r.Findings)
			}
		})
	}
}

// TestVerifyFindsEveryFlippedByte flips single bytes all over a release.
func TestVerifyFindsEveryFlippedByte(t *testing.T) {
	dir, _ := mustRelease(t)
	for _, name := range folderNames(t, dir) {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(data); at += 1 + len(data)/40 {
			flipped := bytes.Clone(data)
			flipped[at] ^= 0x10
			if err := os.WriteFile(path, flipped, 0o666); err != nil {
				t.Fatal(err)
			}
			if r := mustVerify(t, dir, Options{}); r.OK() {
				t.Errorf("%s: byte %d was flipped and nothing found", name, at)
			}
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustVerify(t, dir, Options{}); !r.OK() {
		t.Errorf("restored release: %+v", r.Findings)
	}
}

func TestVerifyNotesUnlistedFiles(t *testing.T) {
	dir, _ := mustRelease(t)
	touch(filepath.Join(dir, "README.md"))
	os.Mkdir(filepath.Join(dir, ".git"), 0o777)
	touch(filepath.Join(dir, ".git", "config"))
	r := mustVerify(t, dir, Options{})
	if !r.OK() {
		t.Errorf("got findings %+v", r.Findings)
	}
	want := []Note{{".git", "folder: only what MANIFEST.sha256 lists is looked at in it"}, {"README.md", "not listed in MANIFEST.sha256"}}
	if !slices.Equal(r.Notes, want) {
		t.Errorf("got notes %v, want %v", r.Notes, want)
	}
	if r := mustVerify(t, dir, Options{Strict: true}); len(r.Findings) != 2 || !has(r, KindNote, "README.md", want[1].What) {
		t.Errorf("strict: got %+v", r.Findings)
	}
}

// A folder means what it means to gguf.Open: the model files right in it, hidden ones
// excepted, whatever the case of their ending. A list names what else belongs to it.
func TestVerifyTakesAFolderAsOpenDoes(t *testing.T) {
	rename := func(dir, from, to string) { os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)) }
	for name, put := range map[string]func(dir string){
		"a model below": func(dir string) {
			modeltest.Write(t, mustMkdir(t, dir, "other"), "x", modeltest.Contents(2), gguf.Split{})
		},
		"a projector": func(dir string) {
			c := modeltest.Contents(2)
			c.Metadata.Set("general.type", gguf.TextValue("mmproj"))
			modeltest.Write(t, dir, "a", c, gguf.Split{})
		},
		"a hidden file":  func(dir string) { touch(filepath.Join(dir, "._m.gguf")) },
		"upper case":     func(dir string) { rename(dir, "m.gguf", "M.GGUF") },
		"two models":     func(dir string) { modeltest.Write(t, dir, "x", modeltest.Contents(2), gguf.Split{}) },
		"none but below": func(dir string) { rename(dir, "m.gguf", filepath.Join(mustMkdir(t, dir, "d"), "m.gguf")) },
		"two, in upper case": func(dir string) {
			modeltest.Write(t, dir, "x", modeltest.Contents(2), gguf.Split{})
			rename(dir, "x.gguf", "X.GGUF")
		},
	} {
		dir := t.TempDir()
		modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{})
		put(dir)
		m, openErr := gguf.Open(dir)
		if openErr == nil {
			m.Close()
		}
		r, err := Release(t.Context(), dir, Options{})
		if sound := err == nil && r.OK(); sound != (openErr == nil) {
			t.Errorf("%s: open says %v, verify %+v, %v", name, openErr, r, err)
		}
	}
}

func TestVerifyOfListedFolders(t *testing.T) {
	dir, _ := mustRelease(t)
	below := mustMkdir(t, dir, "mmproj")
	path := modeltest.Write(t, below, "x", modeltest.Contents(2), gguf.Split{})[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(dir, manifest.SumsName), func(b []byte) []byte { return fmt.Appendf(b, "%x  mmproj/x.gguf\n", sha256.Sum256(data)) })
	r := mustVerify(t, dir, Options{})
	if !r.OK() || !says(r.Checked, `structure of "x": 1 file`) || !says(r.Checked, "sums: 5 of 5 files") {
		t.Errorf("got %+v", r)
	}
	change(t, path, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	if r := mustVerify(t, dir, Options{}); !has(r, KindDigest, "mmproj/x.gguf", "sha256 is") {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestVerifyNamesAFileOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	touch(path)
	touch(filepath.Join(dir, manifest.PinName))
	r := mustVerify(t, dir, Options{})
	for _, f := range r.Findings {
		if strings.Contains(f.What, dir) {
			t.Errorf("%s is named again: %s", f.File, f.What)
		}
	}
	if !has(r, KindStructure, "m.gguf", "not a GGUF file") || !has(r, KindList, manifest.PinName, "pin: ") {
		t.Errorf("got %+v", r.Findings)
	}
}

func mustMkdir(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerifyBareSets(t *testing.T) {
	dir := t.TempDir()
	paths := modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	for _, path := range append(paths, dir) {
		r := mustVerify(t, path, Options{Expect: mustExpect(t, "shards=3")})
		if !r.OK() || len(r.Gaps) == 0 {
			t.Errorf("%s: findings %+v, gaps %+v", path, r.Findings, r.Gaps)
		}
	}
	link := filepath.Join(dir, "z.gguf")
	if err := os.Symlink(paths[1], link); err != nil {
		t.Fatal(err)
	}
	if r := mustVerify(t, dir, Options{}); !r.OK() || r.Artifact.Shards != 3 {
		t.Errorf("with a link to a shard: %+v", r)
	}
	os.Remove(link)
	change(t, paths[1], func([]byte) []byte { return []byte("<!DOCTYPE html>") })
	for _, path := range append(paths, dir) {
		r := mustVerify(t, path, Options{})
		if len(r.Findings) != 1 || !has(r, KindStructure, filepath.Base(paths[1]), "an HTML page") {
			t.Errorf("%s, the second shard damaged: %+v", path, r.Findings)
		}
	}
	os.Remove(paths[0])
	if r := mustVerify(t, paths[2], Options{}); !has(r, KindStructure, "", "incomplete: 1 of 3") {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestVerifyFollowsLinksOfAHubCache(t *testing.T) {
	real, _ := mustRelease(t)
	dir := t.TempDir()
	for i, name := range folderNames(t, real) {
		blob := filepath.Join(real, fmt.Sprintf("blob%d", i))
		if err := os.Rename(filepath.Join(real, name), blob); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(blob, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustVerify(t, dir, Options{}); !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestVerifyFast(t *testing.T) {
	dir, pin := mustRelease(t)
	change(t, filepath.Join(dir, "out-00003-of-00003.gguf"), func(b []byte) []byte {
		b[len(b)-64] ^= 1 // in the last tensor, whose padding is shorter
		return b
	})
	expect := mustExpect(t, "weights_digest="+pin.WeightsDigest.String())
	r := mustVerify(t, dir, Options{Fast: true, Expect: expect})
	if !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
	for _, what := range []string{"data was not read", "weights_digest was expected and data not read"} {
		if !slices.ContainsFunc(r.Gaps, func(g Gap) bool { return g.What == what }) {
			t.Errorf("no gap says %q: %+v", what, r.Gaps)
		}
	}
	if r := mustVerify(t, dir, Options{Expect: expect}); !has(r, KindExpectation, "", "weights_digest is blake3:") || !has(r, KindDigest, "out-00003-of-00003.gguf", "") {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestVerifyExpectations(t *testing.T) {
	dir, _ := mustRelease(t)
	m := modeltest.Open(t, dir)
	structure, err := manifest.StructureDigest(m)
	if err != nil {
		t.Fatal(err)
	}
	holds := fmt.Sprintf("tensors=8,file_bytes=%d,tensor_bytes=%d,structure_digest=%s", m.FileBytes(), m.TensorBytes(), structure.Sum)
	if r := mustVerify(t, dir, Options{Expect: mustExpect(t, holds)}); !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
	fails := "architecture=other,experts=7,experts_used=2,shards=14,metadata_digest=" + emptyBLAKE3
	r := mustVerify(t, dir, Options{Expect: mustExpect(t, fails)})
	for _, what := range []string{"architecture is test, want other", "experts is 6, want 7", "experts_used is not stated, want 2", "shards is 3, want 14", "metadata_digest is blake3:"} {
		if !has(r, KindExpectation, "", what) {
			t.Errorf("no finding says %q: %+v", what, r.Findings)
		}
	}
}

func TestParseExpectationsRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "not key=value",
		"experts":                       "not key=value",
		"experts=":                      "whole number",
		"experts=5.5":                   "whole number",
		"experts=-1":                    "whole number",
		"colour=red":                    "not known, want one of architecture, experts,",
		"shards=1,shards=1":             "given twice",
		"architecture=":                 "empty",
		"weights_digest=" + hexA[:40]:   "git object",
		"weights_digest=sha256:" + hexA: "characters",
	} {
		if _, err := ParseExpectations(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", in, err, want)
		}
	}
}

func TestVerifyLetsTheCallerInspect(t *testing.T) {
	dir, _ := mustRelease(t)
	finding := Finding{Kind: KindExperts, Tensor: "blk.1.ffn_up_exps.weight", Expert: 3, What: "seen by the caller"}
	r := mustVerify(t, dir, Options{Inspect: func(m *gguf.Model, r *Report) {
		if m.Tensor(finding.Tensor) == nil {
			t.Error("another model was shown")
		}
		r.Findings = append(r.Findings, finding)
	}})
	if !reflect.DeepEqual(r.Findings, []Finding{finding}) {
		t.Errorf("got %+v", r.Findings)
	}
	got, err := json.Marshal(r.Findings)
	want := `[{"kind":"experts","file":null,"tensor":"blk.1.ffn_up_exps.weight","expert":3,"what":"seen by the caller","parts":[]}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestVerifyErrors(t *testing.T) {
	if _, err := Release(context.Background(), filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	dir, _ := mustRelease(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Release(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Release(context.Background(), dir, Options{Expect: []Expectation{{"colour", "red"}}}); err == nil {
		t.Error("an unknown expectation was accepted")
	}
}

// What goes beside a model is no rival of it, however large, and a cache means its snapshot.
func TestVerifySetsAside(t *testing.T) {
	projector := func(dir string) {
		c := modeltest.Contents(2)
		c.Metadata.Set("general.type", gguf.TextValue("mmproj"))
		modeltest.Write(t, dir, "a-projector", c, gguf.Split{Shards: 1})
	}
	root := t.TempDir()
	snapshot := filepath.Join(root, "snapshots", "2c3d")
	for _, dir := range []string{snapshot, filepath.Join(root, "refs"), filepath.Join(root, "snapshots", "0a1b")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, root, "refs/main", []byte("2c3d"))
	modeltest.Write(t, snapshot, "m", modeltest.Contents(1), gguf.Split{Shards: 2})
	projector(snapshot)
	r, err := Release(t.Context(), root, Options{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Artifact == nil || r.Artifact.Name != "m" {
		t.Errorf("the artifact is %+v, want m", r.Artifact)
	}
	if !slices.ContainsFunc(r.Notes, func(n Note) bool {
		return strings.HasPrefix(n.File, "a-projector") && strings.Contains(n.What, "set aside")
	}) {
		t.Errorf("the projector is not said to be set aside: %v", r.Notes)
	}

	below := t.TempDir()
	projector(below)
	if err := os.Mkdir(filepath.Join(below, "Q8_0"), 0o777); err != nil {
		t.Fatal(err)
	}
	modeltest.Write(t, filepath.Join(below, "Q8_0"), "m", modeltest.Contents(1), gguf.Split{Shards: 1})
	if _, err := Release(t.Context(), below, Options{Fast: true}); err == nil || !strings.Contains(err.Error(), "there are models in Q8_0") {
		t.Errorf("a projector above models: %v", err)
	}
}

// TestUnsettledShardIsFound finds what an interrupted edit in place left beside any shard, by
// the folder and by another shard.
func TestUnsettledShardIsFound(t *testing.T) {
	dir := t.TempDir()
	paths := modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	for _, path := range []string{dir, paths[0]} {
		if r := mustVerify(t, path, Options{Fast: true}); !r.OK() {
			t.Fatalf("%s: %+v", path, r.Findings)
		}
	}
	if err := os.WriteFile(paths[1]+manifest.OldHeaderSuffix, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, paths[0], paths[1]} {
		r := mustVerify(t, path, Options{Fast: true})
		if len(r.Findings) != 1 || !has(r, KindStructure, filepath.Base(paths[1]), "an edit in place was interrupted") {
			t.Errorf("%s: %+v", path, r.Findings)
		}
	}
}

// TestBrokenPiecesAreFound says of a folder of which no piece begins like a model why that is.
func TestBrokenPiecesAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"m.gguf.part1of2": "", "m.gguf.part2of2": "more"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustVerify(t, dir, Options{Fast: true}); !has(r, KindStructure, "", "m.gguf.part1of2 is empty") {
		t.Errorf("got %+v", r.Findings)
	}
}

// TestVerifyReadsPaddingOfABareModel looks at what lies in no tensor where nothing is said of the
// data.
func TestVerifyReadsPaddingOfABareModel(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{Shards: 2})
	if r := mustVerify(t, paths[0], Options{}); !r.OK() || !slices.ContainsFunc(r.Checked, func(s string) bool { return strings.HasPrefix(s, `padding of "m": `) }) {
		t.Errorf("got %+v, checked %q", r.Findings, r.Checked)
	}
	var size int64
	change(t, paths[1], func(data []byte) []byte { size = int64(len(data)); return append(data, "payload"...) })
	r := mustVerify(t, paths[0], Options{})
	if want := fmt.Sprintf("7 bytes at byte %s lie in no key and no tensor, and not zero", words.Group(size)); !has(r, KindPadding, filepath.Base(paths[1]), want) {
		t.Errorf("got %+v, want %q", r.Findings, want)
	}
	if r := mustVerify(t, paths[0], Options{Fast: true}); !r.OK() {
		t.Errorf("fast: got %+v", r.Findings)
	}
}
