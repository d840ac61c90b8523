package gguf

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wholeFile is a model of one file.
func wholeFile() []byte {
	b := little().head(2, 1).pair(KeyArchitecture, Text, "test")
	b.info("a", F32, 0, 256)
	b.info("b", F32, 1024, 300)
	return b.pad().data(1024 + 1200).b
}

// cut cuts bytes into files of these names, all but the last of one size.
func cut(b []byte, names ...string) map[string][]byte {
	files := map[string][]byte{}
	size := (len(b) + len(names) - 1) / len(names)
	for i, name := range names {
		files[name] = b[min(i*size, len(b)):min((i+1)*size, len(b))]
	}
	return files
}

// TestPiecesAreOneFile opens a file that was cut in every way that is known, by the folder, by
// any piece, by all of them and by the name of the whole.
func TestPiecesAreOneFile(t *testing.T) {
	want := wholeFile()
	for whole, names := range map[string][]string{
		"1/m.gguf": {"m.gguf.part1of11", "m.gguf.part2of11", "m.gguf.part3of11", "m.gguf.part4of11", "m.gguf.part5of11", "m.gguf.part6of11",
			"m.gguf.part7of11", "m.gguf.part8of11", "m.gguf.part9of11", "m.gguf.part10of11", "m.gguf.part11of11"},
		"2/m.gguf":    {"m.gguf-split-a", "m.gguf-split-b"},
		"3/m.gguf":    {"m.gguf.aa", "m.gguf.ab", "m.gguf.ac"},
		"4/m.gguf":    {"m.gguf.001", "m.gguf.002"},
		"5/m.gguf":    {"m.gguf.00", "m.gguf.01", "m.gguf.02", "m.gguf.03"},
		"6/x":         {"xaa", "xab"},
		"7/x":         {"x000", "x001", "x002"},
		"8/m.gguf":    {"m.ggufaa", "m.ggufab"},
		"9/m.gguf":    {"m.gguf.part1of1"},
		"10/m k.gguf": {"m k.gguf.aaa", "m k.gguf.aab"},
		"11/m.gguf":   {"m.gguf-split-aa", "m.gguf-split-ab", "m.gguf-split-ac"},
		"12/m.gguf":   {"m.gguf-split-00", "m.gguf-split-01"},
		"13/m.gguf":   {"m.gguf.part-aa", "m.gguf.part-ab"},
		"14/m.gguf":   {"m.gguf-aa", "m.gguf-ab"},
		"15/m.gguf":   {"m.gguf_001", "m.gguf_002"},
		"16/m.gguf":   {"m.gguf.part01", "m.gguf.part02"},
		"17/m.gguf":   {"m.gguf.1", "m.gguf.2", "m.gguf.3"},
		"18/m.gguf":   {"m.gguf.part1", "m.gguf.part2"},
		"19/m.gguf":   {"m.gguf.part00of2", "m.gguf.part01of2"},
		"20/m.gguf":   {"m.gguf.part01of02", "m.gguf.part02of02"},
		"21/m.gguf":   {"m.gguf.part-1-of-2", "m.gguf.part-2-of-2"},
		"22/m.gguf":   {"m.gguf (part 1 of 2)", "m.gguf (part 2 of 2)"},
		"23/m.gguf":   {"m.gguf-part-0", "m.gguf-part-1"},
	} {
		dir := filepath.Join(t.TempDir(), filepath.Dir(whole))
		put(t, dir, cut(want, names...))
		put(t, dir, map[string][]byte{"README.md": nil, "other.gguf.bak": nil, "xyz": nil})
		var pieces []string
		for _, name := range names {
			pieces = append(pieces, filepath.Join(dir, name))
		}
		open := map[string]func() (*Model, error){
			"folder": func() (*Model, error) { return Open(dir) },
			"last":   func() (*Model, error) { return Open(pieces[len(pieces)-1]) },
			"whole":  func() (*Model, error) { return Open(filepath.Join(dir, filepath.Base(whole))) },
			"list":   func() (*Model, error) { return OpenFiles(pieces) },
		}
		for by, open := range open {
			m, err := open()
			if err != nil {
				t.Errorf("%s, by %s: %v", whole, by, err)
				continue
			}
			if got, err := io.ReadAll(io.NewSectionReader(m.Files[0], 0, m.Files[0].Size)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, by %s: %d bytes, want %d, %v", whole, by, len(got), len(want), err)
			}
			if m.Err() != nil || filepath.Base(m.Files[0].Name) != filepath.Base(whole) || !slices.Equal(m.OnDisk(), pieces) || len(m.Joined()) != 1 {
				t.Errorf("%s, by %s: %q of %q, %v", whole, by, m.Files[0].Name, m.OnDisk(), m.Err())
			}
			m.Close()
		}
	}
}

// TestDownloadsOfOneFile are no pieces: wget numbers what it fetches again.
func TestDownloadsOfOneFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string][]byte{"m.gguf.1": wholeFile(), "m.gguf.2": wholeFile()})
	m, err := Open(filepath.Join(dir, "m.gguf.2"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Err() != nil || len(m.Joined()) > 0 || filepath.Base(m.Files[0].Name) != "m.gguf.2" {
		t.Errorf("%q of %q, %v", m.Files[0].Name, m.OnDisk(), m.Err())
	}
}

// TestLastPieceTooLong says so, where the header tells where the file ends.
func TestLastPieceTooLong(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, cut(append(wholeFile(), make([]byte, 100)...), "m.gguf.aa", "m.gguf.ab"))
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !slices.ContainsFunc(m.Problems, func(p Problem) bool { return strings.Contains(p.What, "m.gguf.ab, may be too long") }) {
		t.Errorf("problems are %v", m.Problems)
	}
}

// TestReadAcrossPieces reads ranges at random from pieces of random sizes, empty ones among
// them, and from behind the end.
func TestReadAcrossPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		dir := t.TempDir()
		want := make([]byte, 1+rng.IntN(500))
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		var paths []string
		for rest := want; len(rest) > 0 || len(paths) < 2; {
			n := min(rng.IntN(100), len(rest))
			name := fmt.Sprintf("p%03d", len(paths))
			put(t, dir, map[string][]byte{name: rest[:n]})
			paths, rest = append(paths, filepath.Join(dir, name)), rest[n:]
		}
		pool := newFilePool()
		s, err := pool.joined(paths)
		if err != nil || s.size() != int64(len(want)) {
			t.Fatal(s.size(), err)
		}
		for range 200 {
			off := rng.IntN(len(want) + 1)
			p := make([]byte, rng.IntN(len(want)+20))
			n, err := s.ReadAt(p, int64(off))
			if fits := off+len(p) <= len(want); fits != (err == nil) || !bytes.Equal(p[:n], want[off:off+n]) || fits && n != len(p) {
				t.Fatalf("%d bytes at %d of %d: %d, %v", len(p), off, len(want), n, err)
			}
		}
		put(t, dir, map[string][]byte{"p000": []byte("more than there was, by far more")})
		if s.Unchanged() == nil {
			t.Error("a piece that was written to is unchanged")
		}
		pool.close()
	}
}

// TestShardsInPieces opens a set of which one shard lies there in pieces.
func TestShardsInPieces(t *testing.T) {
	dir := t.TempDir()
	files := set("m", 3)
	const second = "m-00002-of-00003.gguf"
	put(t, dir, cut(files[second], second+".aa", second+".ab"))
	delete(files, second)
	put(t, dir, files)
	for _, path := range []string{dir, filepath.Join(dir, "m-00001-of-00003.gguf"), filepath.Join(dir, second), filepath.Join(dir, second+".ab")} {
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Err(); err != nil || len(m.Files) != 3 || len(m.OnDisk()) != 4 {
			t.Errorf("%s: %d files, %v", path, len(m.Files), err)
		}
		m.Close()
	}
}

// TestPiecesThatDoNotFit says what is missing, by names, by sizes and by the header.
func TestPiecesThatDoNotFit(t *testing.T) {
	whole := wholeFile()
	third := len(whole) / 3
	for _, test := range []struct {
		files map[string][]byte
		path  string
		fault string
	}{
		{map[string][]byte{"m.gguf.aa": whole[:third], "m.gguf.ac": whole[third:]}, "", "m.gguf is cut into 3 pieces, of which 1 is missing: there are m.gguf.aa, m.gguf.ac"},
		{map[string][]byte{"m.gguf.aa": whole[:third], "m.gguf.ac": whole[third:]}, "m.gguf.aa", "of which 1 is missing"},
		{map[string][]byte{"m.gguf.ab": whole[:third], "m.gguf.ac": whole[third:]}, "", "m.gguf is cut into 3 pieces, of which 1 is missing: there are m.gguf.ab, m.gguf.ac"},
		{map[string][]byte{"m.gguf.aa": whole[:third], "m.gguf.ab": whole[third : 2*third-1], "m.gguf.ac": whole[2*third:]}, "", fmt.Sprintf("m.gguf.ab may not be whole: it has %d bytes, m.gguf.aa has %d", third-1, third)},
		{map[string][]byte{"m.gguf.aa": whole[:third-1], "m.gguf.ab": whole[third : 2*third], "m.gguf.ac": whole[2*third:]}, "m.gguf.ab", fmt.Sprintf("m.gguf.aa may not be whole: it has %d bytes, m.gguf.ab has %d", third-1, third)},
		{map[string][]byte{"m.gguf.aa": {}, "m.gguf.ab": whole[third : 2*third], "m.gguf.ac": whole[2*third:]}, "", "of which m.gguf.aa is empty"},
		{map[string][]byte{"m.gguf.aa": whole[:third], "m.gguf.ab": {}, "m.gguf.ac": whole[2*third:]}, "", "of which m.gguf.ab is empty"},
		{map[string][]byte{"m.gguf.part1of3": {}, "m.gguf.part2of3": whole[third : 2*third], "m.gguf.part3of3": whole[2*third:]}, "", "of which m.gguf.part1of3 is empty"},
		{map[string][]byte{"m.gguf.part1of2": whole[:third], "m.gguf.part2of2": {}}, "m.gguf.part2of2", "of which m.gguf.part2of2 is empty"},
		{map[string][]byte{"m.gguf.part1of3": whole[1:third], "m.gguf.part2of3": whole[third : 2*third], "m.gguf.part3of3": whole[2*third:]}, "",
			fmt.Sprintf("m.gguf.part1of3 may not be whole: it has %d bytes, m.gguf.part2of3 has %d", third-1, third)},
		{map[string][]byte{"m.gguf.part1of2": whole[:third], "m.gguf.part2of3": whole[third:]}, "", "contradict each other"},
		{map[string][]byte{"m.gguf.part4of3": whole[:third]}, "", "contradict each other"},
		{map[string][]byte{"m.gguf.aa": whole, "m.gguf.part1of1": whole}, "", "in two ways"},
		{map[string][]byte{"m.gguf.bak": whole, "m.gguf.old": whole}, "", "no .gguf file"},
		{map[string][]byte{"xaa": []byte("no model"), "xab": whole}, "", "no .gguf file"},
	} {
		dir := t.TempDir()
		put(t, dir, test.files)
		if m, err := Open(filepath.Join(dir, test.path)); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ",", ""), strings.ReplaceAll(test.fault, ",", "")) {
			t.Errorf("%d files: got %v, %v, want %q", len(test.files), m, err, test.fault)
		}
	}
}

// TestPieceAtFaultIsNamed opens pieces of which one is cut short or not there, and is told which
// it may be.
func TestPieceAtFaultIsNamed(t *testing.T) {
	whole := wholeFile()
	third := len(whole) / 3
	one, two, three := whole[:third], whole[third:2*third], whole[2*third:]
	short := func(b []byte) []byte { return b[:len(b)-1] }
	for _, test := range []struct {
		files map[string][]byte
		want  string
	}{
		{map[string][]byte{"m.gguf.aa": one, "m.gguf.ab": two}, "one behind m.gguf.ab may be missing"},
		{map[string][]byte{"m.gguf.aa": short(one), "m.gguf.ab": two}, "m.gguf.aa may not be whole"},
		{map[string][]byte{"m.gguf.part1of3": short(one), "m.gguf.part2of3": two, "m.gguf.part3of3": three}, "m.gguf.part1of3 may not be whole"},
		{map[string][]byte{"m.gguf.part1of3": one, "m.gguf.part2of3": short(two), "m.gguf.part3of3": three}, "m.gguf.part2of3 may not be whole"},
		{map[string][]byte{"m.gguf.part1of3": one, "m.gguf.part2of3": two, "m.gguf.part3of3": three[:9]}, "most likely the last, m.gguf.part3of3, may not be whole"},
		{map[string][]byte{"m.gguf.part1of1": short(whole)}, "m.gguf.part1of1, may not be whole"},
	} {
		dir := t.TempDir()
		put(t, dir, test.files)
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if said := fmt.Sprint(m.Problems); m.Err() == nil || !strings.Contains(said, test.want) || strings.Count(said, "may ") != 1 {
			t.Errorf("got %s, want %q", said, test.want)
		}
		m.Close()
	}
}

// TestWholeFileBeforePieces reads the file that is whole, where its pieces lie beside it.
func TestWholeFileBeforePieces(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, cut(wholeFile(), "m.gguf.aa", "m.gguf.ab"))
	put(t, dir, map[string][]byte{"m.gguf": wholeFile()})
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Joined()) != 0 {
		t.Error("the pieces were read")
	}
}

// TestPiecesOfSplit opens what the system's split makes.
func TestPiecesOfSplit(t *testing.T) {
	split, err := exec.LookPath("split")
	if err != nil {
		t.Skip("split is not there (Windows has none)")
	}
	for _, args := range [][]string{{"-b", "700"}, {"-n", "3"}, {"-b", "600", "-d", "-a", "3"}, {"-b", "100"}} {
		for _, prefix := range []string{"", "m.gguf.", "m.gguf", "m.gguf-", "m.gguf_", "m.gguf-split-", "m.gguf.part", "m.gguf.part-"} {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "from"), map[string][]byte{"m.gguf": wholeFile()})
			if err := os.Mkdir(filepath.Join(dir, "to"), 0o777); err != nil {
				t.Fatal(err)
			}
			line := append(slices.Clone(args), filepath.Join(dir, "from", "m.gguf"))
			if prefix != "" {
				line = append(line, prefix)
			}
			cmd := exec.Command(split, line...)
			cmd.Dir = filepath.Join(dir, "to")
			if out, err := cmd.CombinedOutput(); err != nil {
				if args[0] == "-b" && len(args) == 2 { // which every split has
					t.Fatalf("%q: %v\n%s", line, err, out)
				}
				t.Logf("split of this system lacks %q: %v\n%s", args, err, out)
				break
			}
			m, err := Open(cmd.Dir)
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if got, err := io.ReadAll(io.NewSectionReader(m.Files[0], 0, m.Files[0].Size)); m.Err() != nil || err != nil || !bytes.Equal(got, wholeFile()) {
				t.Errorf("%q: %v, %v", line, m.Err(), err)
			}
			m.Close()
		}
	}
}
