package manifest

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
)

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// sumsOf returns the list that sha256sum prints of files, with their base names.
func sumsOf(t *testing.T, paths []string) Sums {
	t.Helper()
	var list Sums
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, FileSum{filepath.Base(path), sha256.Sum256(data)})
	}
	return list
}

func TestCheckAgainstSums(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "q8")
	os.Mkdir(dir, 0o777)
	paths := writeModel(t, dir, "m", testContents(1), gguf.Split{Shards: 3})
	sums := sumsOf(t, paths)
	m := openModel(t, paths[0])

	r := mustCheck(t, m, append(sums, FileSum{"README.md", Sum{}}), CheckOptions{})
	if !r.OK() || !says(r.Checked, "sha256: 3 of 3 files") || !says(gapTexts(r), "names other files too: 1") {
		t.Errorf("got %+v", r)
	}
	// The same name in several folders: the one that ends as the path does is meant.
	wrong := FileSum{"q4/" + sums[0].Name, Sum{}}
	right := FileSum{"repo/q8/" + sums[0].Name, sums[0].SHA256}
	if r := mustCheck(t, m, Sums{wrong, right, sums[1], sums[2]}, CheckOptions{}); !r.OK() {
		t.Errorf("got %+v", r.Findings)
	}
	name := sums[0].Name
	for what, test := range map[string]struct {
		sums Sums
		want Finding
	}{
		"wrong":     {Sums{{name, Sum{}}, sums[1], sums[2]}, Finding{KindDigest, name, "", NoExpert, "the list of sums says 0000"}},
		"missing":   {sums[1:], Finding{KindExtra, name, "", NoExpert, "is not in the list of sums"}},
		"ambiguous": {Sums{{"a/" + name, Sum{}}, {"b/" + name, Sum{}}, sums[1], sums[2]}, Finding{KindList, name, "", NoExpert, `"a/` + name + `" and "b/`}},
	} {
		t.Run(what, func(t *testing.T) {
			checkFindings(t, mustCheck(t, m, test.sums, CheckOptions{}).Findings, []Finding{test.want})
		})
	}
	if r := mustCheck(t, m, Sums{{"x", Sum{}}}, CheckOptions{}); len(r.Findings) != 3 || !says(r.Checked, "0 of 3") {
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

func mustTree(t *testing.T, text string) Tree {
	t.Helper()
	tree, err := ReadTree(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestCheckAgainstATree(t *testing.T) {
	paths := writeModel(t, t.TempDir(), "m", testContents(1), gguf.Split{Shards: 3})
	m := openModel(t, paths[0])
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
		"wrong sha256": {sum.String(), strings.Repeat("0", 64), Finding{KindDigest, name, "", NoExpert, "the tree listing says 0000"}},
		"wrong size": {fmt.Sprintf(`"size":%d`, size), `"size":5`, // in both places
			Finding{KindDigest, name, "", NoExpert, fmt.Sprintf("has %s, the tree listing says 5", words.Count(size, "byte"))}},
		"git object only": {fmt.Sprintf(`,"lfs":{"oid":"%s","size":%d,"pointerSize":134}`, sum, size), "",
			Finding{KindList, name, "", NoExpert, "no sha256 of it"}},
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

// TestTreeInPages joins two answers of the hub as "cat" does.
func TestTreeInPages(t *testing.T) {
	entry := `{"type":"file","path":"%s","size":1,"oid":"x"}`
	tree := mustTree(t, fmt.Sprintf("["+entry+"]\n["+entry+"]", "a", "b"))
	if len(tree) != 2 || tree[1].Path != "b" || tree[1].SHA256 != nil {
		t.Errorf("got %+v", tree)
	}
}

func TestReadTreeRefuses(t *testing.T) {
	lfs := `,"lfs":{"oid":"` + hexA + `","size":1}`
	entry := func(path, rest string) string {
		return `{"type":"file","path":"` + path + `","size":1` + rest + `}`
	}
	for in, want := range map[string]string{
		"":                             "no files",
		"[]":                           "no files",
		"{}":                           "want a list",
		"[1]":                          "want an object",
		"[" + entry("a", "") + ",":     "EOF",
		"[" + entry("a", lfs):          "EOF",
		"[" + entry("a", lfs) + "] x":  "invalid character",
		"[" + entry("../a", lfs) + "]": "leaves the folder",
		"[" + entry("/a", lfs) + "]":   "absolute",
		"[" + entry("a", "") + "," + entry("a", lfs) + "]":                                               `path "a" comes twice`,
		"[" + entry("a", `,"size":2`) + "]":                                                              `member "size" comes twice`,
		"[" + entry("a", lfs+lfs) + "]":                                                                  `member "lfs" comes twice`,
		`[{"type":"file","path":"a"}]`:                                                                   `member "size" is missing`,
		`[{"type":"file","path":null,"size":1}]`:                                                         `member "path" is missing`,
		`[{"type":"link","path":"a","size":1}]`:                                                          `type is "link"`,
		`[{"type":"file","path":"a","size":-1}]`:                                                         "size is -1",
		`[{"type":"file","path":"a","size":1.5}]`:                                                        `member "size"`,
		`[{"type":"file","Path":"a","size":1}]`:                                                          `member "path" is missing`,
		"[" + entry("a", `,"lfs":{"size":1}`) + "]":                                                      `lfs: member "oid" is missing`,
		"[" + entry("a", `,"lfs":{"oid":"`+hexA+`","size":2}`) + "]":                                     "size is 1, lfs.size is 2",
		"[" + entry("a", `,"lfs":{"oid":"`+hexA[:40]+`","size":1}`) + "]":                                "git object",
		"[" + entry("a", `,"lfs":{"oid":"`+strings.ToUpper(strings.Repeat("a", 64))+`","size":1}`) + "]": "lower-case",
		"[" + entry("a", `,"lfs":{"oid":"`+hexA+`","oid":"`+hexA+`"}`) + "]":                             `member "oid" comes twice`,
		strings.Repeat("[", 20000):                                                                       "want an object",
	} {
		if _, err := ReadTree(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzReadTree(f *testing.F) {
	f.Add(`[{"type":"file","path":"a","size":1,"oid":"x","lfs":{"oid":"` + hexA + `","size":1}}]`)
	f.Fuzz(func(t *testing.T, in string) {
		tree, err := ReadTree(strings.NewReader(in))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, file := range tree {
			if seen[file.Path] || file.Size < 0 || CheckSumsName(file.Path) != nil {
				t.Errorf("accepted %+v", file)
			}
			seen[file.Path] = true
		}
	})
}
