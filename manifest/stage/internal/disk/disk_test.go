package disk

import (
	"io"
	"testing"
)

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
