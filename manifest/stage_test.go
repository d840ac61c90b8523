package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

// testRelease is testContents as so many shards, and a document.
func testRelease(t testing.TB, shards int) Release {
	t.Helper()
	layout, err := gguf.NewLayout(testContents(1), gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return Release{
		Stem: "out", Layout: layout, Slabs: testSlabs, Documents: []string{"plan.json"},
		Origin: []Fact{{"plan", DigestBytes([]byte("{}\n"))}},
	}
}

// fillStage writes what testRelease announces, and publishes it.
func fillStage(s *Stage) (*Pin, error) {
	pin, err := s.WriteShards(context.Background())
	if err != nil {
		return nil, err
	}
	err = s.WriteFile("plan.json", func(w io.Writer) error {
		_, err := io.WriteString(w, "{}\n")
		return err
	})
	if err != nil {
		return nil, err
	}
	return pin, s.Publish(context.Background())
}

// releaseNames are the files of a testRelease of three shards without the list of sums.
var releaseNames = []string{"out-00001-of-00003.gguf", "out-00002-of-00003.gguf", "out-00003-of-00003.gguf", "plan.json"}

// newTestStage prepares a stage that is closed when the test ends.
func newTestStage(t testing.TB, dir string, r Release, o StageOptions) *Stage {
	t.Helper()
	s, err := NewStage(dir, r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// mustRelease makes a release in a fresh folder.
func mustRelease(t *testing.T) (dir string, pin *Pin) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "release")
	pin, err := fillStage(newTestStage(t, dir, testRelease(t, 3), StageOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	return dir, pin
}

func folderNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestReleaseHoldsWhatItsPinSays(t *testing.T) {
	dir, pin := mustRelease(t)
	if got, want := folderNames(t, dir), append([]string{SumsName}, releaseNames...); !slices.Equal(got, want) {
		t.Fatalf("folder holds %q, want %q", got, want)
	}
	m := openModel(t, dir)
	if pin.Artifact.FileBytes != m.FileBytes() || pin.Artifact.TensorBytes != m.TensorBytes() {
		t.Errorf("artifact is %+v, want %d file and %d tensor bytes", pin.Artifact, m.FileBytes(), m.TensorBytes())
	}
	for _, f := range pin.Files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if f.SHA256 != sha256.Sum256(data) || f.Size != int64(len(data)) {
			t.Errorf("%s: pinned as %d bytes with %s", f.Name, f.Size, f.SHA256)
		}
	}
	checkTensors(t, pin, m)
}

// checkTensors compares a pin with whole reads of the tensors.
func checkTensors(t *testing.T, pin *Pin, m *gguf.Model) {
	t.Helper()
	if len(pin.Tensors) != len(m.Tensors()) {
		t.Fatalf("pin has %d tensors, want %d", len(pin.Tensors), len(m.Tensors()))
	}
	for i, want := range m.Tensors() {
		got := pin.Tensors[i]
		data, err := io.ReadAll(want.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || got.Type != want.Type.String() || got.Size != want.Size || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("tensor %d is pinned as %+v, want %+v", i, got, want)
		}
		if got.BLAKE3 != blake3.Sum256(data) {
			t.Errorf("%s: wrong digest", got.Name)
		}
		if (got.Slabs != nil) != (testSlabs(got.Name) > 0) {
			t.Errorf("%s: slabs are %v", got.Name, got.Slabs)
		}
		for s := range testSlabs(got.Name) {
			slab := data[s*len(data)/testExperts : (s+1)*len(data)/testExperts]
			want := slab
			if len(slab) > 32 {
				sum := blake3.Sum256(slab)
				want = sum[:]
			}
			if !bytes.Equal(got.Slabs.At(s), want) {
				t.Errorf("%s: wrong digest of slab %d", got.Name, s)
			}
		}
	}
}

func TestReleaseIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	var first *Pin
	for _, workers := range []int{1, 2, 8} {
		pin, err := fillStage(newTestStage(t, filepath.Join(t.TempDir(), "r"), testRelease(t, 3), StageOptions{Workers: workers}))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = pin
		} else if !reflect.DeepEqual(pin, first) {
			t.Errorf("%d workers give another pin", workers)
		}
	}
}

func TestReleaseReportsProgress(t *testing.T) {
	r := testRelease(t, 3)
	var last, total int64
	s := newTestStage(t, filepath.Join(t.TempDir(), "r"), r, StageOptions{Progress: func(done, of int64) {
		if done < last {
			t.Errorf("went back from %d to %d", last, done)
		}
		last, total = done, of
	}})
	if _, err := s.WriteShards(context.Background()); err != nil {
		t.Fatal(err)
	}
	if last != r.Layout.Bytes() || total != r.Layout.Bytes() {
		t.Errorf("ended at %d of %d, want %d", last, total, r.Layout.Bytes())
	}
	if read, written := s.Traffic(); read != r.Layout.TensorBytes() || written != r.Layout.Bytes() {
		t.Errorf("read %d and wrote %d bytes, want %d and %d", read, written, r.Layout.TensorBytes(), r.Layout.Bytes())
	}
}

func TestStageRefusesFolders(t *testing.T) {
	source := writeModel(t, t.TempDir(), "m", testContents(1), gguf.Split{})[0]
	fill := map[string]struct {
		make  func(path string) error // makes path, in the output folder
		name  string
		force bool
		want  string
	}{
		"not empty":       {touch, "x", false, "is not empty"},
		"source, link":    {func(p string) error { return os.Symlink(source, p) }, "x", true, "holds the source"},
		"source, hard":    {func(p string) error { return os.Link(source, p) }, "plan.json", true, "holds the source"},
		"other model":     {touch, "other.gguf", true, "no part of the release"},
		"part of another": {touch, "out-00004-of-00004.GGUF", true, "no part of the release"},
		"a folder":        {func(p string) error { return os.Mkdir(p, 0o777) }, "d", true, "not a regular file"},
		"a link":          {func(p string) error { return os.Symlink("nowhere", p) }, "l", true, "not a regular file"},
		"unfinished":      {touch, "a.part", true, "unfinished"},
	}
	for name, test := range fill {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.make(filepath.Join(dir, test.name)); err != nil {
				t.Fatal(err)
			}
			_, err := NewStage(dir, testRelease(t, 3), StageOptions{Sources: []string{source}, Force: test.force})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if got := folderNames(t, dir); !slices.Equal(got, []string{test.name}) {
				t.Errorf("folder holds %q afterwards", got)
			}
		})
	}
	t.Run("the source's own folder", func(t *testing.T) {
		if _, err := NewStage(filepath.Dir(source), testRelease(t, 3), StageOptions{Sources: []string{source}, Force: true}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("a link to the source's folder", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(filepath.Dir(source), link); err != nil {
			t.Fatal(err)
		}
		_, err := NewStage(link, testRelease(t, 3), StageOptions{Sources: []string{source}, Force: true})
		if err == nil || !strings.Contains(err.Error(), "holds the source") {
			t.Errorf("got %v, want an error with %q", err, "holds the source")
		}
	})
	t.Run("a file", func(t *testing.T) {
		if _, err := NewStage(source, testRelease(t, 3), StageOptions{}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("missing source", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := NewStage(dir, testRelease(t, 3), StageOptions{Sources: []string{source + "x"}}); err == nil {
			t.Error("was accepted")
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the folder was made")
		}
	})
}

func touch(path string) error { return os.WriteFile(path, []byte("kept"), 0o666) }

func TestStageRefusesNames(t *testing.T) {
	for _, change := range []func(r *Release){
		func(r *Release) { r.Documents = []string{"a", "a"} },
		func(r *Release) { r.Documents = []string{"../a"} },
		func(r *Release) { r.Documents = []string{"/a"} },
		func(r *Release) { r.Documents = []string{"d/a"} },
		func(r *Release) { r.Documents = []string{`d\a`} },
		func(r *Release) { r.Documents = []string{"."} },
		func(r *Release) { r.Documents = []string{".."} },
		func(r *Release) { r.Documents = []string{""} },
		func(r *Release) { r.Documents = []string{"a\x00"} },
		func(r *Release) { r.Documents = []string{SumsName} },
		func(r *Release) { r.Documents = []string{JournalName} },
		func(r *Release) { r.Documents = []string{"a.part"} },
		func(r *Release) { r.Documents = []string{"out-00002-of-00003.gguf"} },
		func(r *Release) { r.Documents = []string{strings.Repeat("x", 251)} },
		func(r *Release) { r.Stem = "../out" },
		func(r *Release) { r.Stem = "/out" },
		func(r *Release) { r.Stem = "a/out" },
		func(r *Release) { r.Stem = strings.Repeat("x", 240) },
	} {
		r := testRelease(t, 3)
		change(&r)
		dir := filepath.Join(t.TempDir(), "r")
		if s, err := NewStage(dir, r, StageOptions{}); err == nil {
			s.Close()
			t.Errorf("stem %q and documents %q were accepted", r.Stem, r.Documents)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("stem %q and documents %q: the folder was made", r.Stem, r.Documents)
		}
	}
}

func TestStageWantsWhatWasAnnounced(t *testing.T) {
	r := testRelease(t, 3)
	r.Documents = []string{"a", "b"}
	s := newTestStage(t, filepath.Join(t.TempDir(), "r"), r, StageOptions{})
	nothing := func(io.Writer) error { return nil }
	if _, err := s.WriteShards(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", SumsName, releaseNames[0]} {
		if err := s.WriteFile(name, nothing); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if err := s.WriteFile("a", nothing); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteFile("a", nothing); err == nil {
		t.Error("a file was written twice")
	}
	if err := s.Publish(context.Background()); err == nil || !strings.Contains(err.Error(), `"b" was announced`) {
		t.Errorf("published without a file: %v", err)
	}
}

func TestForceReplacesAndLists(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README.md", "plan.json", SumsName} {
		if err := touch(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fillStage(newTestStage(t, dir, testRelease(t, 3), StageOptions{Force: true})); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(dir, SumsName))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := ReadSums(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	if want := (FileSum{"README.md", sha256.Sum256([]byte("kept"))}); len(sums) != 5 || sums[0] != want {
		t.Errorf("list is %v, want README.md and four files", sums)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "plan.json")); string(data) != "{}\n" {
		t.Errorf("plan.json holds %q", data)
	}
}

func TestWriteShardsChecksSlabs(t *testing.T) {
	r := testRelease(t, 1)
	for what, slabs := range map[string]SlabCount{
		"count":  func(name string) int { return testSlabs(name) / 2 },
		"scalar": func(name string) int { return map[string]int{"blk.0.scale": 1}[name] },
		"less":   func(string) int { return -1 },
		"empty":  func(name string) int { return map[string]int{"blk.0.empty": 3}[name] },
	} {
		r.Slabs = slabs
		s := newTestStage(t, filepath.Join(t.TempDir(), "r"), r, StageOptions{})
		if _, err := s.WriteShards(context.Background()); err == nil || !strings.Contains(err.Error(), "tensor ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// A name that has no digest is refused before the first byte, by whatever would take a
// digest of it.
func TestNamesWithoutADigest(t *testing.T) {
	for want, edit := range map[string]func(c *gguf.Contents){
		`tensor name "blk.0\nscale" has the control character "\n", so no digest is defined for it`: func(c *gguf.Contents) { viewNamed(*c, "blk.0.scale").Name = "blk.0\nscale" },
		`key name "test.\x1f" has the control character "\x1f", so no digest is defined for it`:     func(c *gguf.Contents) { c.Metadata.Set("test.\x1f", gguf.Uint8Value(1)) },
	} {
		c := testContents(1)
		edit(&c)
		layout, err := gguf.NewLayout(c, gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "r")
		_, err = NewStage(dir, Release{Stem: "out", Layout: layout}, StageOptions{})
		if err == nil || err.Error() != want {
			t.Errorf("a stage: got %v, want %s", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the folder was made")
		}
		m := newModel(t, c, gguf.Split{})
		read := int64(0)
		o := BuildOptions{Progress: func(done, _ int64) { read = done }}
		if _, err := BuildPin(t.Context(), m, o); err == nil || err.Error() != want || read > 0 {
			t.Errorf("a pin: got %v after %d bytes, want %s", err, read, want)
		}
		if _, err := NewRecorder(t.Context(), m, o); err == nil || err.Error() != want {
			t.Errorf("a recorder: got %v, want %s", err, want)
		}
		if warnings := Warnings(m); len(warnings) != 1 || warnings[0].Severity != gguf.Warning || !strings.HasSuffix(want, strings.TrimPrefix(warnings[0].What, "the name")) {
			t.Errorf("warnings %+v, want %s", warnings, want)
		}
	}
}
