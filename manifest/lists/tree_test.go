package lists

import (
	"fmt"
	"strings"
	"testing"

	"ggufreap/manifest"
)

func mustTree(t *testing.T, text string) Tree {
	t.Helper()
	tree, err := ReadTree(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
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
		"[1]":                          `at "/0": a number does not belong here`,
		"[" + entry("a", "") + ",":     "EOF",
		"[" + entry("a", lfs):          "EOF",
		"[" + entry("a", lfs) + "] x":  "invalid character",
		"[" + entry("../a", lfs) + "]": "leaves the folder",
		"[" + entry("/a", lfs) + "]":   "absolute",
		"[" + entry("a", "") + "," + entry("a", lfs) + "]":                                               `path "a" comes twice`,
		"[" + entry("a", `,"size":2`) + "]":                                                              `at "/0": key "size" stands twice`,
		"[" + entry("a", lfs+lfs) + "]":                                                                  `at "/0": key "lfs" stands twice`,
		`[{"type":"file","path":"a"}]`:                                                                   `member "size" is missing`,
		`[{"type":"file","path":null,"size":1}]`:                                                         `member "path" is missing`,
		`[{"type":"link","path":"a","size":1}]`:                                                          `type is "link"`,
		`[{"type":"file","path":"a","size":-1}]`:                                                         "size is -1",
		`[{"type":"file","path":"a","size":1.5}]`:                                                        `at "/0/size"`,
		`[{"type":"file","Path":"a","size":1}]`:                                                          `member "path" is missing`,
		"[" + entry("a", `,"lfs":{"size":1}`) + "]":                                                      `lfs: member "oid" is missing`,
		"[" + entry("a", `,"lfs":{"oid":"`+hexA+`","size":2}`) + "]":                                     "size is 1, lfs.size is 2",
		"[" + entry("a", `,"lfs":{"oid":"`+hexA[:40]+`","size":1}`) + "]":                                "git object",
		"[" + entry("a", `,"lfs":{"oid":"`+strings.ToUpper(strings.Repeat("a", 64))+`","size":1}`) + "]": "lower-case",
		"[" + entry("a", `,"lfs":{"oid":"`+hexA+`","oid":"`+hexA+`"}`) + "]":                             `at "/0/lfs": key "oid" stands twice`,
		strings.Repeat("[", 20000):                                                                       "a list does not belong here",
		`[{"type":"file","path":"a","size":1,"x":"` + strings.Repeat("x", 2<<20) + `"}]`:                 "entry 1 has more than 1048576 bytes",
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
			if seen[file.Path] || file.Size < 0 || manifest.CheckFileName(file.Path) != nil {
				t.Errorf("accepted %+v", file)
			}
			seen[file.Path] = true
		}
	})
}
