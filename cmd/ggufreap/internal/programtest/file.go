package programtest

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// Exists reports whether anything has a name, be it a link that leads nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Folder reads every file of a folder.
func Folder(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if files[e.Name()], err = readText(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// readText reads a file into a string, which may be large, with no copy beside it.
func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(info.Size()))
	_, err = io.Copy(&text, f)
	return text.String(), err
}

// ReadFile reads a file.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// WriteText writes a file.
func WriteText(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Flip changes one bit of a file; a negative place counts from the end.
func Flip(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	return os.WriteFile(path, data, 0o666)
}

// LostBytes counts the bytes of want that got has not.
func LostBytes(got, want map[string]string) int {
	lost := 0
	for name, data := range want {
		if got[name] == data {
			continue
		}
		for i := range len(data) {
			if i >= len(got[name]) || got[name][i] != data[i] {
				lost++
			}
		}
		lost += max(len(got[name])-len(data), 0)
	}
	return lost
}

// ListFolder returns the list of sums of a folder's files, as whoever changed one would make it
// anew.
func ListFolder(t testing.TB, dir string) string {
	t.Helper()
	var sums []lists.FileSum
	for name, data := range Folder(t, dir) {
		if name != manifest.SumsName {
			sums = append(sums, lists.FileSum{Name: name, SHA256: sha256.Sum256([]byte(data))})
		}
	}
	var b strings.Builder
	if err := lists.WriteSums(&b, sums); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
