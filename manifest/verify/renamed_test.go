package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/lists"
)

// renameAll gives files other names, which tell nothing of the split.
func renameAll(t *testing.T, paths []string) []string {
	t.Helper()
	var renamed []string
	for i, path := range paths {
		to := filepath.Join(filepath.Dir(path), "part-"+string(rune('c'-i))+".gguf")
		if err := os.Rename(path, to); err != nil {
			t.Fatal(err)
		}
		renamed = append(renamed, to)
	}
	return renamed
}

// TestRenamedShardsAreNamedByTheirBytes renames all shards of a listed folder: there is one
// finding for each name, the set is looked at as ever, and wrong bytes are found.
func TestRenamedShardsAreNamedByTheirBytes(t *testing.T) {
	dir := t.TempDir()
	paths := modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	list, err := os.Create(filepath.Join(dir, manifest.SumsName))
	if err != nil {
		t.Fatal(err)
	}
	if err := lists.WriteSums(list, sumsOf(t, paths)); err != nil {
		t.Fatal(err)
	}
	list.Close()
	renamed := renameAll(t, paths)
	r, err := Release(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 3 || r.Artifact == nil || r.Artifact.Shards != 3 {
		t.Fatalf("got %+v of %+v", r.Findings, r.Artifact)
	}
	for i, f := range r.Findings {
		if f.Kind != KindExtra || !strings.Contains(f.What, "has the bytes of \"m-0000") || !strings.HasSuffix(f.What, "renamed") {
			t.Errorf("finding %d is %+v", i, f)
		}
	}
	if !says(r.Checked, "sha256") {
		t.Errorf("checked are %q", r.Checked)
	}
	data, err := os.ReadFile(renamed[1])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-40] ^= 1
	if err := os.WriteFile(renamed[1], data, 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err = Release(t.Context(), dir, Options{}); err != nil || len(r.Findings) != 4 {
		t.Fatalf("a wrong bit: got %+v, %v", r.Findings, err)
	}
	var kinds []string
	for _, f := range r.Findings {
		kinds = append(kinds, string(f.Kind)+" "+f.File)
	}
	for _, want := range []string{"missing m-00002-of-00003.gguf", "extra part-b.gguf"} {
		if !says(kinds, want) {
			t.Errorf("got %q, want %q", kinds, want)
		}
	}
}

// TestCheckRenamedAgainstLists holds a renamed set against a list of sums, held or in a file,
// and against a listing.
func TestCheckRenamedAgainstLists(t *testing.T) {
	dir := t.TempDir()
	paths := modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	sums := sumsOf(t, paths)
	var tree lists.Tree
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		tree = append(tree, lists.TreeFile{Path: "q8/" + sums[i].Name, Size: info.Size(), SHA256: &sums[i].SHA256})
	}
	file := filepath.Join(t.TempDir(), "sums.txt")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := lists.WriteSums(f, sums); err != nil {
		t.Fatal(err)
	}
	f.Close()
	m := modeltest.Open(t, renameAll(t, paths)[0])
	for name, evidence := range map[string]Evidence{"sums": sums, "tree": tree, "file": sumsFile(file)} {
		r := mustCheck(t, m, evidence, CheckOptions{Repo: "o/r", Revision: strings.Repeat("a", 40)})
		if !r.OK() || !says(r.Checked, "sha256: 3 of 3 files") || len(r.Notes) < 3 || says(gapTexts(r), "names other files too") {
			t.Errorf("%s: got %+v, %q", name, r.Findings, r.Checked)
		}
	}
	bad := append(lists.Sums{{Name: sums[0].Name}}, sums[1:]...)
	r := mustCheck(t, m, bad, CheckOptions{})
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].What, "is not in the list of sums") || !says(r.Checked, "sha256: 2 of 3 files") {
		t.Errorf("got %+v, %q", r.Findings, r.Checked)
	}
}
