package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestErrorsNameTheFile asks for what is not there: errors name the file, and no system call.
func TestErrorsNameTheFile(t *testing.T) {
	dir, err := OS{}.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	of := func(_ any, err error) error { return err }
	gone, err := dir.Create("gone")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if err := dir.Rename("gone", "m.gguf"); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct{ err, is error }{
		"open":     {of(dir.Open("gone")), fs.ErrNotExist},
		"continue": {of(dir.Continue("gone", 0)), fs.ErrNotExist},
		"lock":     {of(dir.Lock("none/gone")), fs.ErrNotExist},
		"create":   {of(dir.Create("m.gguf")), fs.ErrExist},
		"remove":   {dir.Remove("gone"), fs.ErrNotExist},
		"rename":   {dir.Rename("gone", "gone2"), fs.ErrNotExist},
		"named":    {gone.Named(), fs.ErrNotExist},
	} {
		if !errors.Is(test.err, test.is) || !regexp.MustCompile(`^"[^"]*(gone2?|m\.gguf)": `).MatchString(test.err.Error()) {
			t.Errorf("%s: %v", what, test.err)
		}
	}
}

// TestLinkToNothing is told from a folder that is there already.
func TestLinkToNothing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		if runtime.GOOS != "windows" { // which asks for a privilege
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, path := range []string{link, link + "/"} {
		if _, err := (OS{}).Make(path); err == nil || !strings.Contains(err.Error(), `is a link to "nowhere", which is not there`) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestFilesMayBeLarge writes behind 2 and 4 GiB, which 32-bit programs must ask for.
func TestFilesMayBeLarge(t *testing.T) {
	f, err := OS{}.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := f.Create("sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 5 << 30
	if _, err := file.(io.Seeker).Seek(size-1, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	in, err := f.Open("sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b := make([]byte, 1)
	if _, err := in.ReadAt(b, size-1); err != nil || b[0] != 1 {
		t.Errorf("read %v, %v, want [1]", b, err)
	}
}
