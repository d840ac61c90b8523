package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/lists"
)

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// sumsOf returns the list that sha256sum prints of files, with their base names.
func sumsOf(t *testing.T, paths []string) lists.Sums {
	t.Helper()
	var list lists.Sums
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, lists.FileSum{Name: filepath.Base(path), SHA256: sha256.Sum256(data)})
	}
	return list
}

func TestCheckAgainstSums(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "q8")
	os.Mkdir(dir, 0o777)
	paths := modeltest.Write(t, dir, "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	sums := sumsOf(t, paths)
	m := modeltest.Open(t, paths[0])

	r := mustCheck(t, m, append(sums, lists.FileSum{Name: "README.md", SHA256: manifest.Sum{}}), CheckOptions{})
	if !r.OK() || !says(r.Checked, "sha256: 3 of 3 files") || !says(gapTexts(r), "names other files too: 1") {
		t.Errorf("got %+v", r)
	}
	// The same name in several folders: the one that ends as the path does is meant.
	wrong := lists.FileSum{Name: "q4/" + sums[0].Name, SHA256: manifest.Sum{}}
	right := lists.FileSum{Name: "repo/q8/" + sums[0].Name, SHA256: sums[0].SHA256}
	if r := mustCheck(t, m, lists.Sums{wrong, right, sums[1], sums[2]}, CheckOptions{}); !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
	name := sums[0].Name
	for what, test := range map[string]struct {
		sums lists.Sums
		want Finding
	}{
		"wrong":     {lists.Sums{{Name: name}, sums[1], sums[2]}, finding(KindDigest, name, "", manifest.NoExpert, "the list of sums says 0000")},
		"missing":   {sums[1:], finding(KindExtra, name, "", manifest.NoExpert, "is not in the list of sums")},
		"ambiguous": {lists.Sums{{Name: "a/" + name}, {Name: "b/" + name}, sums[1], sums[2]}, finding(KindList, name, "", manifest.NoExpert, `"a/`+name+`" and "b/`)},
	} {
		t.Run(what, func(t *testing.T) {
			checkFindings(t, mustCheck(t, m, test.sums, CheckOptions{}).Findings, []Finding{test.want})
		})
	}
	if r := mustCheck(t, m, lists.Sums{{Name: "x"}}, CheckOptions{}); len(r.Findings) != 3 || !says(r.Checked, "0 of 3") {
		t.Errorf("a list of other files: %+v", r)
	}
	if _, err := Check(context.Background(), m, sums, CheckOptions{Quick: true}); err == nil {
		t.Error("a list without sizes was checked without reading")
	}
}

func treeOf(t *testing.T, paths []string, folder string) string {
	t.Helper()
	var entries []string
	for _, s := range sumsOf(t, paths) {
		info, err := os.Stat(filepath.Join(filepath.Dir(paths[0]), s.Name))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, fmt.Sprintf(`{"type":"file","oid":"%s","size":%d,"path":"%s%s","lfs":{"oid":"%s","size":%d,"pointerSize":134},"xetHash":"%s","lastCommit":{"id":"x"}}`,
			strings.Repeat("0123456789", 4), info.Size(), folder, s.Name, s.SHA256, info.Size(), strings.Repeat("ab", 32)))
	}
	entries = append(entries, `{"type":"directory","oid":"x","size":0,"path":"docs"}`, `{"type":"file","oid":"x","size":7,"path":"README.md"}`)
	return "[" + strings.Join(entries, ",\n") + "]"
}

func mustTree(t *testing.T, text string) lists.Tree {
	t.Helper()
	tree, err := lists.ReadTree(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestCheckAgainstATree(t *testing.T) {
	paths := modeltest.Write(t, t.TempDir(), "m", modeltest.Contents(1), gguf.Split{Shards: 3})
	m := modeltest.Open(t, paths[0])
	text := treeOf(t, paths, "IQ1_S/")
	commit := strings.Repeat("0123456789", 4)

	r := mustCheck(t, m, mustTree(t, text), CheckOptions{Repo: "a/b", Revision: commit})
	if !r.OK() || !says(r.Checked, "sha256: 3 of 3 files") || len(r.Notes) != 1 || !strings.Contains(r.Notes[0].What, `repository "a/b" at revision "0123456789`) {
		t.Errorf("got %+v", r)
	}
	r = mustCheck(t, m, mustTree(t, text), CheckOptions{Repo: "a/b", Revision: "main"})
	if len(r.Notes) != 2 || !strings.Contains(r.Notes[1].What, `"main" is no commit`) {
		t.Errorf("got %+v", r.Notes)
	}
	if r := mustCheck(t, m, mustTree(t, text), CheckOptions{}); !says(gapTexts(r), "nobody said both") || len(r.Notes) != 0 {
		t.Errorf("got %+v", r)
	}
	read := false
	r = mustCheck(t, m, mustTree(t, text), CheckOptions{Quick: true, Progress: func(int64, int64) { read = true }})
	if !r.OK() || read || !says(r.Checked, "sizes: 3 of 3") || says(r.Checked, "sha256") {
		t.Errorf("got %+v", r)
	}

	name := filepath.Base(paths[0])
	sum, size := sumsOf(t, paths)[0].SHA256, m.Files[0].Size
	for what, test := range map[string]struct {
		old, new string
		want     Finding
	}{
		"wrong sha256": {sum.String(), strings.Repeat("0", 64), finding(KindDigest, name, "", manifest.NoExpert, "the tree listing says 0000")},
		"wrong size": {fmt.Sprintf(`"size":%d`, size), `"size":5`, // in both places
			finding(KindDigest, name, "", manifest.NoExpert, fmt.Sprintf("has %s, the tree listing says 5", words.Count(size, "byte")))},
		"git object only": {fmt.Sprintf(`,"lfs":{"oid":"%s","size":%d,"pointerSize":134}`, sum, size), "",
			finding(KindList, name, "", manifest.NoExpert, "no sha256 of it")},
	} {
		t.Run(what, func(t *testing.T) {
			edited := strings.Replace(text, test.old, test.new, 1)
			if what == "wrong size" {
				edited = strings.Replace(text, test.old, test.new, 2)
			}
			checkFindings(t, mustCheck(t, m, mustTree(t, edited), CheckOptions{}).Findings, []Finding{test.want})
		})
	}
}
