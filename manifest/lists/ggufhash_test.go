package lists

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

func TestWriteGGUFHashes(t *testing.T) {
	var b bytes.Buffer
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0])
	if err := WriteGGUFHashes(context.Background(), &b, m, 0, nil); err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(modeltest.ABCHashes) {
		if strings.HasPrefix(line, "sha256") {
			want = append(want, strings.Replace(line, "models/", "", 1))
		}
	}
	if b.String() != strings.Join(want, "") {
		t.Errorf("got\n%swant\n%s", b.String(), strings.Join(want, ""))
	}
}

// A name of nothing but colons is not looked up at each of them.
func TestGGUFHashOfColons(t *testing.T) {
	asked := 0
	name := strings.Repeat(":", 60_000)
	path, tensor := GGUFHash{Name: name}.Split(func(string) bool { asked++; return false })
	if asked > manifest.MaxFileName+1 || path != name[:len(name)-1] || tensor != "" {
		t.Errorf("asked %d times, path of %d bytes, tensor %q", asked, len(path), tensor)
	}
	long := strings.Repeat("x", manifest.MaxFileName)
	path, tensor = GGUFHash{Name: long + ":a:b"}.Split(func(tensor string) bool { return tensor == "a:b" })
	if path != long || tensor != "a:b" {
		t.Errorf("path of %d bytes, tensor %q", len(path), tensor)
	}
}

func TestWriteGGUFHashesRefuses(t *testing.T) {
	spaced := modeltest.ABC()
	spaced.Views[0].Name = "fir st"
	unknown := modeltest.ABC()
	unknown.Views[0].Type = gguf.Type(4000)
	for want, path := range map[string]string{
		`name "x y.gguf" has white space`: modeltest.Write(t, t.TempDir(), "x y", modeltest.ABC(), gguf.Split{})[0],
		`name "fir st" has white space`:   modeltest.Write(t, t.TempDir(), "x", spaced, gguf.Split{})[0],
		"no known block size":             modeltest.Write(t, t.TempDir(), "x", unknown, gguf.Split{})[0],
	} {
		var b bytes.Buffer
		err := WriteGGUFHashes(context.Background(), &b, modeltest.Open(t, path), 0, nil)
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("got %v and %d bytes, want %s", err, b.Len(), want)
		}
	}
}

// TestTakeHashesReadsWhatIsAskedFor takes digests of a tensor, of the whole, and of nothing,
// and counts the bytes that are read and announced.
func TestTakeHashesReadsWhatIsAskedFor(t *testing.T) {
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0])
	tensors := m.Files[0].Tensors
	for name, test := range map[string]struct {
		wanted []int
		bytes  int64
	}{
		"a tensor":  {[]int{1}, tensors[1].Size},
		"the whole": {[]int{-1}, tensors[0].Size + tensors[1].Size},
		"nothing":   {nil, 0},
	} {
		task := NewHashTask()
		for _, tensor := range test.wanted {
			task.Want(tensor, "sha1")
		}
		var done, total int64
		err := TakeHashes(context.Background(), m, []*HashTask{task}, 1, func(d, n int64) { done, total = d, n })
		if err != nil {
			t.Fatal(err)
		}
		if done != test.bytes || total != test.bytes {
			t.Errorf("%s: read %d of %d bytes, want %d", name, done, total, test.bytes)
		}
		for _, tensor := range test.wanted {
			if len(task.Got(tensor, "sha1")) != sha1.Size {
				t.Errorf("%s: no digest of %d", name, tensor)
			}
		}
	}
}

func TestGGUFHashesNameThePlaceOfAReadError(t *testing.T) {
	m := modeltest.Broken(t, modeltest.ABC(), 33, modeltest.ErrInjected) // within the second tensor
	place := fmt.Sprintf("disk/m.gguf: reading at byte %d ", m.Files[0].DataOffset+33)
	err := WriteGGUFHashes(context.Background(), &bytes.Buffer{}, m, 0, nil)
	if !errors.Is(err, modeltest.ErrInjected) || !strings.HasPrefix(err.Error(), place) {
		t.Errorf("got %v", err)
	}
}

func TestReadGGUFHashesRefuses(t *testing.T) {
	line := "sha256    " + hexA + "  x.gguf\n"
	for in, want := range map[string]string{
		"":                                  "no lines",
		"\n\n":                              "no lines",
		line[:40]:                           "line 1: line has no line end",
		line + line[:len(line)-1]:           "line 2: line has no line end",
		line + line:                         `line 2: sha256 of "x.gguf" comes twice`,
		"md5       " + hexA + "  x\n":       `algorithm is "md5"`,
		"sha256    " + hexA[:40] + "  x\n":  "want 64 hexadecimal digits",
		"sha1      " + hexA[:39] + "g  x\n": "want 40 hexadecimal digits",
		"xxh64     " + hexA[:16] + "\n":     "not an algorithm, a digest and a name",
		"sha256    " + hexA + "  x.gguf  -  Ok\n": "what a check printed",
		"manifest  x  sha256\n":                   `algorithm is "manifest"`,
		line + strings.Repeat("x", 1<<17):         "buffer full",
	} {
		if _, err := ReadGGUFHashes(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want an error with %q", in, err, want)
		}
	}
}

func FuzzReadGGUFHashes(f *testing.F) {
	f.Add(modeltest.ABCHashes)
	f.Fuzz(func(t *testing.T, in string) {
		rows, err := ReadGGUFHashes(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, row := range rows {
			if row.Digest != nil && !strings.Contains(strings.ToLower(in), hex.EncodeToString(row.Digest)) {
				t.Errorf("digest %x is not in the text", row.Digest)
			}
			row.Split(func(string) bool { return false })
		}
	})
}
