package stage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/verify"
)

// testRelease is testModel as so many shards, and a document.
func testRelease(t testing.TB, shards int) Release {
	t.Helper()
	return Release{
		Stem: "out", Layout: testLayout(t, gguftest.Mixed(1), shards, nil), Slabs: gguftest.MixedSlabs, Documents: []string{"plan.json"},
		Origin: []Fact{{Name: "plan", Digest: manifest.DigestBytes([]byte("{}\n"))}},
	}
}

// writeAll writes what testRelease announces, and publishes it.
func writeAll(f *Folder) (*manifest.Pin, error) {
	pin, err := f.WriteShards(context.Background())
	if err != nil {
		return nil, err
	}
	err = f.WriteFile("plan.json", func(w io.Writer) error {
		_, err := io.WriteString(w, "{}\n")
		return err
	})
	if err != nil {
		return nil, err
	}
	return pin, f.Publish(context.Background())
}

// releaseNames are the files of a testRelease of three shards without the list of sums.
var releaseNames = []string{"out-00001-of-00003.gguf", "out-00002-of-00003.gguf", "out-00003-of-00003.gguf", "plan.json"}

// mustOpen opens a folder that is closed when the test ends.
func mustOpen(t testing.TB, dir string, r Release, o Options) *Folder {
	t.Helper()
	f, err := Open(dir, r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// folderNames lists what is in a folder.
func folderNames(t *testing.T, dir string) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestReleaseHoldsWhatItsPinSays reads the folder again: its pin is then the same, and
// verifying finds no difference.
func TestReleaseHoldsWhatItsPinSays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	pin, err := writeAll(mustOpen(t, dir, testRelease(t, 3), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := folderNames(t, dir), append([]string{manifest.SumsName}, releaseNames...); !slices.Equal(got, want) {
		t.Fatalf("folder holds %q, want %q", got, want)
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
	m, err := gguf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	read, err := manifest.BuildPin(t.Context(), m, manifest.BuildOptions{Slabs: gguftest.MixedSlabs})
	if err != nil || !reflect.DeepEqual(read, pin) {
		t.Errorf("read again %+v, %v, want %+v", read, err, pin)
	}
	report, err := verify.Release(t.Context(), dir, verify.Options{})
	if err != nil || !report.OK() {
		t.Errorf("verified %+v, %v", report, err)
	}
}

func TestReleaseIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	var first *manifest.Pin
	for _, workers := range []int{1, 2, 8} {
		pin, err := writeAll(mustOpen(t, filepath.Join(t.TempDir(), "r"), testRelease(t, 3), Options{Workers: workers}))
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
	f := mustOpen(t, filepath.Join(t.TempDir(), "r"), r, Options{Progress: func(done, of int64) {
		if done < last {
			t.Errorf("went back from %d to %d", last, done)
		}
		last, total = done, of
	}})
	if _, err := f.WriteShards(context.Background()); err != nil {
		t.Fatal(err)
	}
	if last != r.Layout.Bytes() || total != r.Layout.Bytes() {
		t.Errorf("ended at %d of %d, want %d", last, total, r.Layout.Bytes())
	}
	if read, written := f.Traffic(); read != r.Layout.TensorBytes() || written != r.Layout.Bytes() {
		t.Errorf("read %d and wrote %d bytes, want %d and %d", read, written, r.Layout.TensorBytes(), r.Layout.Bytes())
	}
}

func TestStageRefusesFolders(t *testing.T) {
	sources, err := gguftest.Mixed(1).Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	source := sources[0]
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
			_, err := Open(dir, testRelease(t, 3), Options{Sources: []string{source}, Force: test.force})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if got := folderNames(t, dir); !slices.Equal(got, []string{test.name}) {
				t.Errorf("folder holds %q afterwards", got)
			}
		})
	}
	t.Run("the source's own folder", func(t *testing.T) {
		if _, err := Open(filepath.Dir(source), testRelease(t, 3), Options{Sources: []string{source}, Force: true}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("a link to the source's folder", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(filepath.Dir(source), link); err != nil {
			t.Fatal(err)
		}
		_, err := Open(link, testRelease(t, 3), Options{Sources: []string{source}, Force: true})
		if err == nil || !strings.Contains(err.Error(), "holds the source") {
			t.Errorf("got %v, want an error with %q", err, "holds the source")
		}
	})
	t.Run("a file", func(t *testing.T) {
		if _, err := Open(source, testRelease(t, 3), Options{}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("missing source", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := Open(dir, testRelease(t, 3), Options{Sources: []string{source + "x"}}); err == nil {
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
		func(r *Release) { r.Documents = []string{manifest.SumsName} },
		func(r *Release) { r.Documents = []string{manifest.JournalName} },
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
		if f, err := Open(dir, r, Options{}); err == nil {
			f.Close()
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
	f := mustOpen(t, filepath.Join(t.TempDir(), "r"), r, Options{})
	nothing := func(io.Writer) error { return nil }
	if _, err := f.WriteShards(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", manifest.SumsName, releaseNames[0]} {
		if err := f.WriteFile(name, nothing); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if err := f.WriteFile("a", nothing); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("a", nothing); err == nil {
		t.Error("a file was written twice")
	}
	if err := f.Publish(context.Background()); err == nil || !strings.Contains(err.Error(), `"b" was announced`) {
		t.Errorf("published without a file: %v", err)
	}
}

func TestForceReplacesAndLists(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README.md", "plan.json", manifest.SumsName} {
		if err := touch(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writeAll(mustOpen(t, dir, testRelease(t, 3), Options{Force: true})); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(dir, manifest.SumsName))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := lists.ReadSums(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	if want := (lists.FileSum{Name: "README.md", SHA256: sha256.Sum256([]byte("kept"))}); len(sums) != 5 || sums[0] != want {
		t.Errorf("list is %v, want README.md and four files", sums)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "plan.json")); string(data) != "{}\n" {
		t.Errorf("plan.json holds %q", data)
	}
}

// TestForceRemovesVouchers removes what vouched for the list that is replaced, and names it. A
// kill at any operation leaves no such file beside a new list.
func TestForceRemovesVouchers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.sig", "b.sig", "README.md", manifest.SumsName} {
		if err := touch(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := testRelease(t, 3)
	r.Vouchers = []string{"b.sig", "a.sig", "c.sig"}
	f := mustOpen(t, dir, r, Options{Force: true})
	if _, err := writeAll(f); err != nil {
		t.Fatal(err)
	}
	if got := f.Voided(); !slices.Equal(got, []string{"a.sig", "b.sig"}) {
		t.Errorf("voided are %q", got)
	}
	for _, name := range []string{"a.sig", "b.sig"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, manifest.SumsName))
	if err != nil || bytes.Contains(list, []byte(".sig")) || !bytes.Contains(list, []byte("README.md")) {
		t.Errorf("the list is %s, %v", list, err)
	}
}

// TestNamesWithoutADigest are written like any others: only the pin lacks something.
func TestNamesWithoutADigest(t *testing.T) {
	layout := testLayout(t, gguftest.Mixed(1), 3, func(c *gguf.Contents) {
		viewNamed(c, "blk.0.scale").Name = "blk.0\nscale"
		c.Metadata.Set("test.\x1f", gguf.Uint8Value(1))
	})
	dir := filepath.Join(t.TempDir(), "r")
	f, err := Open(dir, Release{Stem: "out", Layout: layout}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pin, err := f.WriteShards(t.Context())
	if err != nil || !pin.WeightsDigest.IsZero() {
		t.Fatalf("got %v, want a pin without a weights digest", err)
	}
	if err := f.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, shard := range layout.Shards {
		var want bytes.Buffer
		if err := shard.Write(t.Context(), &want, make([]byte, 4096), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, gguf.ShardName("out", i, 3))); err != nil || !bytes.Equal(got, want.Bytes()) || pin.Files[i].SHA256 != sha256.Sum256(got) {
			t.Errorf("shard %d: %v, or other bytes or another sum than its layout has", i+1, err)
		}
	}
}

// TestWriteShardsStops lets each of a release's tensors be what it should not be, while it
// is written and while it is checked again.
func TestWriteShardsStops(t *testing.T) {
	r := testRelease(t, 3)
	for _, finished := range []int{0, 2} {
		for _, shard := range r.Layout.Shards {
			for _, v := range shard.Views {
				d := &memDisk{}
				if finished > 0 {
					unfinished(t, d, r, finished)
				}
				err := runOn(d, r, Options{Resume: true, Check: func(t *manifest.Tensor) error {
					if t.Name == v.Name {
						return errInjected
					}
					return nil
				}})
				if !errors.Is(err, errInjected) {
					t.Errorf("%s, with %d shards finished: got %v, want %v", v.Name, finished, err, errInjected)
				}
			}
		}
	}
}

// TestSlabsThatDoNotFit are refused before the first byte.
func TestSlabsThatDoNotFit(t *testing.T) {
	r := testRelease(t, 3)
	r.Slabs = func(name string) int { return 2 * gguftest.MixedSlabs(name) }
	d := &memDisk{}
	if err := runOn(d, r, Options{}); err == nil || !strings.Contains(err.Error(), "does not end in 12 experts") || d.names != nil {
		t.Errorf("got %v, and left %d files", err, len(d.names))
	}
}
