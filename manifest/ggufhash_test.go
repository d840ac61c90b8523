package manifest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// abcManifest is what llama-gguf-hash --all prints of abcContents in "models/x.gguf",
// but for its xxh3 lines: the digests are those that xxhsum -H64, sha1sum and sha256sum
// give for "a", "abc" and "aabc".
const abcManifest = `xxh64     d24ec4f1a98c6e5b  models/x.gguf:first
sha1      86f7e437faa5a7fce15d1ddcb9eaeaea377667b8  models/x.gguf:first
sha256    ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  models/x.gguf:first
xxh64     44bc2cf5ad770999  models/x.gguf:second
sha1      a9993e364706816aba3e25717850c26c9cd0d89d  models/x.gguf:second
sha256    ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  models/x.gguf:second
xxh64     e59c882d2faffba2  models/x.gguf
sha1      84bb906a0633227fc09c15558cda30058d7fb41a  models/x.gguf
sha256    223189358b15aac5609ec6d35ccfa7df93b8f2507344c03445351586b0459228  models/x.gguf
`

func abcContents() gguf.Contents {
	c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
	c.Metadata.Set("general.architecture", gguf.TextValue("test"))
	for _, t := range []struct{ name, data string }{{"first", "a"}, {"second", "abc"}} {
		v := gguf.View{Name: t.name, Type: gguf.I8, Shape: []uint64{uint64(len(t.data))}}
		v.Append(gguf.Extent{Source: strings.NewReader(t.data), Length: int64(len(t.data))})
		c.Views = append(c.Views, v)
	}
	return c
}

func mustHashes(t testing.TB, text string) GGUFHashes {
	t.Helper()
	rows, err := ReadGGUFHashes(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestCheckAgainstGGUFHashes(t *testing.T) {
	m := openModel(t, writeModel(t, t.TempDir(), "x", abcContents(), gguf.Split{})[0])
	renamed := openModel(t, writeModel(t, t.TempDir(), "renamed", abcContents(), gguf.Split{})[0])
	for name, edit := range map[string]func(s string) string{
		"as printed":   func(s string) string { return s },
		"CRLF":         func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"of Windows":   func(s string) string { return strings.ReplaceAll(s, "models/", `C:\my models\`) },
		"without path": func(s string) string { return strings.ReplaceAll(s, "models/", "") },
	} {
		rows := mustHashes(t, edit(abcManifest))
		for _, m := range []*gguf.Model{m, renamed} {
			r := mustCheck(t, m, rows, CheckOptions{})
			if !r.OK() || !says(r.Checked, "9 of 9 are as the manifest says (sha1, sha256, xxh64)") || !says(gapTexts(r), "data of tensors only") {
				t.Errorf("%s: %s: got %+v", name, m.Name, r)
			}
		}
	}
}

func TestCheckAgainstWrongGGUFHashes(t *testing.T) {
	m := openModel(t, writeModel(t, t.TempDir(), "x", abcContents(), gguf.Split{})[0])
	for name, test := range map[string]struct {
		manifest string
		want     []Finding
		gaps     []string
	}{
		"tensor": {strings.Replace(abcManifest, "44bc", "44bd", 1),
			[]Finding{{KindDigest, "x.gguf", "second", NoExpert, "xxh64 is 44bc2cf5ad770999, the manifest says 44bd2cf5ad770999"}}, nil},
		"whole": {strings.Replace(abcManifest, "84bb", "94bb", 1),
			[]Finding{{KindDigest, "x.gguf", "", NoExpert, "of all tensors together sha1 is 84bb"}}, nil},
		"more tensors": {abcManifest + "xxh64     d24ec4f1a98c6e5b  models/x.gguf:third\n",
			[]Finding{{KindMissing, "x.gguf", "third", NoExpert, "in the manifest and not in the file"}}, nil},
		"more files": {abcManifest + "xxh64     d24ec4f1a98c6e5b  models/y.gguf\n",
			[]Finding{{KindMissing, "y.gguf", "", NoExpert, "in the manifest and not in the artifact"}}, nil},
		"fewer tensors": {"xxh64     d24ec4f1a98c6e5b  x.gguf:first\n", nil,
			[]string{"no line for 1 of 2 tensors", "xxh64 is the only hash"}},
		"whole only": {"sha1      84bb906a0633227fc09c15558cda30058d7fb41a  x.gguf\n", nil,
			[]string{"sha1 is the strongest hash"}},
		"uuid": {"uuid      8c2cdb42-98a0-5bc0-9bb5-9a1db3f7e1a0  x.gguf\nxxh3      d24ec4f1a98c6e5b  x.gguf\n",
			[]Finding{{KindList, "", "", NoExpert, "no line of the manifest could be compared"}},
			[]string{"lines of uuid were not compared: 1; a uuid is a name", "lines of xxh3 were not compared: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustCheck(t, m, mustHashes(t, test.manifest), CheckOptions{})
			checkFindings(t, r.Findings, test.want)
			for _, gap := range test.gaps {
				if !says(gapTexts(r), gap) {
					t.Errorf("no gap says %q: %q", gap, gapTexts(r))
				}
			}
		})
	}
	if _, err := Check(context.Background(), m, mustHashes(t, abcManifest), CheckOptions{Quick: true}); err == nil {
		t.Error("digests were checked without reading")
	}
}

// TestGGUFHashesFollowTheTable hashes a file whose data does not lie in the order of its
// table: the whole digest is over the tensors as the table has them.
func TestGGUFHashesFollowTheTable(t *testing.T) {
	path := writeModel(t, t.TempDir(), "x", abcContents(), gguf.Split{})[0]
	change(t, path, func(data []byte) []byte {
		// Both offsets are in the table, 0 and 32: swap them, and the data with them.
		first := bytes.Index(data, []byte("first")) + 5 + 4 + 8 + 4
		second := bytes.Index(data, []byte("second")) + 6 + 4 + 8 + 4
		data[first], data[second] = 32, 0
		start := len(data) - 64
		a, b := bytes.Clone(data[start:start+32]), bytes.Clone(data[start+32:])
		return slices.Concat(data[:start], b, a)
	})
	r := mustCheck(t, openModel(t, path), mustHashes(t, abcManifest), CheckOptions{})
	if !r.OK() || !says(r.Checked, "9 of 9") {
		t.Errorf("got %+v", r)
	}
}

func TestWriteGGUFHashes(t *testing.T) {
	var b bytes.Buffer
	m := openModel(t, writeModel(t, t.TempDir(), "x", abcContents(), gguf.Split{})[0])
	if err := WriteGGUFHashes(context.Background(), &b, m, 0, nil); err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(abcManifest) {
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
	path, tensor := GGUFHash{Name: name}.split(func(string) bool { asked++; return false })
	if asked > maxSumsName+1 || path != name[:len(name)-1] || tensor != "" {
		t.Errorf("asked %d times, path of %d bytes, tensor %q", asked, len(path), tensor)
	}
	long := strings.Repeat("x", maxSumsName)
	path, tensor = GGUFHash{Name: long + ":a:b"}.split(func(tensor string) bool { return tensor == "a:b" })
	if path != long || tensor != "a:b" {
		t.Errorf("path of %d bytes, tensor %q", len(path), tensor)
	}
}

func TestGGUFHashesOfShards(t *testing.T) {
	m := newModel(t, testContents(1), gguf.Split{Shards: 3})
	var first []byte
	for _, workers := range []int{1, 4} {
		var b bytes.Buffer
		var last int64
		if err := WriteGGUFHashes(context.Background(), &b, m, workers, func(done, total int64) { last = total - done }); err != nil {
			t.Fatal(err)
		}
		if last != 0 {
			t.Errorf("progress ends %d bytes short", last)
		}
		if first == nil {
			first = b.Bytes()
		}
		if !bytes.Equal(b.Bytes(), first) {
			t.Errorf("%d workers give another manifest", workers)
		}
	}
	if n := bytes.Count(first, []byte("\n")); n != len(m.Tensors())+3 {
		t.Errorf("%d lines, want %d", n, len(m.Tensors())+3)
	}
	if r := mustCheck(t, m, mustHashes(t, string(first)), CheckOptions{}); !r.OK() || !says(r.Checked, "11 of 11") {
		t.Errorf("got %+v", r)
	}
	swapped := strings.NewReplacer("m-00001", "m-00002", "m-00002", "m-00001").Replace(string(first))
	if r := mustCheck(t, m, mustHashes(t, swapped), CheckOptions{}); r.OK() {
		t.Error("lines of one file were taken for another's")
	}
}

func TestWriteGGUFHashesRefuses(t *testing.T) {
	spaced := abcContents()
	spaced.Views[0].Name = "fir st"
	unknown := abcContents()
	unknown.Views[0].Type = gguf.Type(4000)
	for want, path := range map[string]string{
		`name "x y.gguf" has white space`: writeModel(t, t.TempDir(), "x y", abcContents(), gguf.Split{})[0],
		`name "fir st" has white space`:   writeModel(t, t.TempDir(), "x", spaced, gguf.Split{})[0],
		"no known block size":             writeModel(t, t.TempDir(), "x", unknown, gguf.Split{})[0],
	} {
		var b bytes.Buffer
		err := WriteGGUFHashes(context.Background(), &b, openModel(t, path), 0, nil)
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("got %v and %d bytes, want %s", err, b.Len(), want)
		}
	}
}

func TestGGUFHashesNameThePlaceOfAReadError(t *testing.T) {
	path := writeModel(t, t.TempDir(), "x", abcContents(), gguf.Split{})[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := &brokenAt{bytes.NewReader(data), int64(len(data)), errInjected}
	f, err := gguf.NewFile("disk/x.gguf", broken, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguf.NewModel("x", f)
	if err != nil {
		t.Fatal(err)
	}
	broken.offset = int64(len(data)) - 31
	err = WriteGGUFHashes(context.Background(), &bytes.Buffer{}, m, 0, nil)
	if !errors.Is(err, errInjected) || !strings.HasPrefix(err.Error(), "disk/x.gguf: reading at byte "+fmt.Sprint(broken.offset)) {
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
	f.Add(abcManifest)
	f.Fuzz(func(t *testing.T, in string) {
		rows, err := ReadGGUFHashes(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, row := range rows {
			if row.Digest != nil && !strings.Contains(strings.ToLower(in), hex.EncodeToString(row.Digest)) {
				t.Errorf("digest %x is not in the text", row.Digest)
			}
			row.split(func(string) bool { return false })
		}
	})
}
