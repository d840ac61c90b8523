package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

// testLayout lays testContents out as shards and returns the file names too.
func testLayout(t *testing.T, shards int) (*gguf.Layout, []string) {
	t.Helper()
	layout, err := gguf.NewLayout(testContents(1), gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range shards {
		names = append(names, gguf.ShardName("out", i, shards))
	}
	return layout, names
}

// stageRelease writes a release of three shards and a document, and publishes it.
func stageRelease(t *testing.T, s *Stage) (*Pin, error) {
	t.Helper()
	layout, _ := testLayout(t, 3)
	pin, err := s.WriteShards(context.Background(), "out", layout, testSlabs)
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

// releaseNames are the files of stageRelease without the list of sums.
var releaseNames = []string{"out-00001-of-00003.gguf", "out-00002-of-00003.gguf", "out-00003-of-00003.gguf", "plan.json"}

// mustRelease makes a release in a fresh folder.
func mustRelease(t *testing.T) (dir string, pin *Pin) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "release")
	s, err := NewStage(dir, releaseNames, StageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	if pin, err = stageRelease(t, s); err != nil {
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
		s, err := NewStage(filepath.Join(t.TempDir(), "r"), releaseNames, StageOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Discard()
		pin, err := stageRelease(t, s)
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
	layout, names := testLayout(t, 3)
	var last, total int64
	s, err := NewStage(filepath.Join(t.TempDir(), "r"), names, StageOptions{Progress: func(done, of int64) {
		if done < last {
			t.Errorf("went back from %d to %d", last, done)
		}
		last, total = done, of
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	if _, err := s.WriteShards(context.Background(), "out", layout, nil); err != nil {
		t.Fatal(err)
	}
	if last != layout.Bytes() || total != layout.Bytes() {
		t.Errorf("ended at %d of %d, want %d", last, total, layout.Bytes())
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
			_, err := NewStage(dir, releaseNames, StageOptions{Sources: []string{source}, Force: test.force})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if got := folderNames(t, dir); !slices.Equal(got, []string{test.name}) {
				t.Errorf("folder holds %q afterwards", got)
			}
		})
	}
	t.Run("the source's own folder", func(t *testing.T) {
		if _, err := NewStage(filepath.Dir(source), releaseNames, StageOptions{Sources: []string{source}, Force: true}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("a file", func(t *testing.T) {
		if _, err := NewStage(source, releaseNames, StageOptions{}); err == nil {
			t.Error("was accepted")
		}
	})
	t.Run("missing source", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := NewStage(dir, releaseNames, StageOptions{Sources: []string{source + "x"}}); err == nil {
			t.Error("was accepted")
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the folder was made")
		}
	})
}

func touch(path string) error { return os.WriteFile(path, []byte("kept"), 0o666) }

func TestStageRefusesNames(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {"../a"}, {"d/a"}, {`d\a`}, {""}, {SumsName}, {strings.Repeat("x", 251)}} {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := NewStage(dir, names, StageOptions{}); err == nil {
			t.Errorf("names %q were accepted", names)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("names %q: the folder was made", names)
		}
	}
	s, err := NewStage(filepath.Join(t.TempDir(), "r"), []string{"a", "b"}, StageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	nothing := func(io.Writer) error { return nil }
	for _, name := range []string{"c", SumsName} {
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
	s, err := NewStage(dir, releaseNames, StageOptions{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	if _, err := stageRelease(t, s); err != nil {
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
	layout, names := testLayout(t, 1)
	for what, slabs := range map[string]SlabCount{
		"count":  func(name string) int { return testSlabs(name) / 2 },
		"scalar": func(name string) int { return map[string]int{"blk.0.scale": 1}[name] },
		"less":   func(string) int { return -1 },
		"empty":  func(name string) int { return map[string]int{"blk.0.empty": 3}[name] },
	} {
		s, err := NewStage(filepath.Join(t.TempDir(), "r"), names, StageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Discard()
		if _, err := s.WriteShards(context.Background(), "out", layout, slabs); err == nil || !strings.Contains(err.Error(), "tensor ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestDiscardAfterCancel(t *testing.T) {
	layout, names := testLayout(t, 3)
	dir := filepath.Join(t.TempDir(), "r")
	ctx, cancel := context.WithCancel(context.Background())
	s, err := NewStage(dir, names, StageOptions{Workers: 1, Progress: func(int64, int64) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteShards(ctx, "out", layout, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

var errInjected = errors.New("injected fault")

// faultyFolder fails at one operation, counted over all of a folder and its files.
type faultyFolder struct {
	Folder
	mu     sync.Mutex
	count  int
	failAt int
	failed string // the operation that failed
}

func (f *faultyFolder) fault(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.count == f.failAt {
		f.failed = op
		return fmt.Errorf("%s: %w", op, errInjected)
	}
	return nil
}

func (f *faultyFolder) Create(name string) (OutputFile, error) {
	if err := f.fault("create"); err != nil {
		return nil, err
	}
	file, err := f.Folder.Create(name)
	return &faultyFile{file, f}, err
}

func (f *faultyFolder) Rename(from, to string) error {
	if err := f.fault("rename"); err != nil {
		return err
	}
	return f.Folder.Rename(from, to)
}

func (f *faultyFolder) Sync() error { return errors.Join(f.fault("sync folder"), f.Folder.Sync()) }

type faultyFile struct {
	OutputFile
	folder *faultyFolder
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.folder.fault("write"); err != nil {
		n, _ := f.OutputFile.Write(p[:len(p)/2])
		return n, err
	}
	return f.OutputFile.Write(p)
}

func (f *faultyFile) Reserve(size int64) error {
	return errors.Join(f.folder.fault("reserve"), f.OutputFile.Reserve(size))
}
func (f *faultyFile) Sync() error  { return errors.Join(f.folder.fault("sync"), f.OutputFile.Sync()) }
func (f *faultyFile) Close() error { return errors.Join(f.OutputFile.Close(), f.folder.fault("close")) }

// TestFaultsLeaveNothing makes each operation of a release fail in turn. The run must
// fail with the cause, and leave neither a file nor the folder.
func TestFaultsLeaveNothing(t *testing.T) {
	seen := map[string]int{}
	for failAt := 1; ; failAt++ {
		dir := filepath.Join(t.TempDir(), "r")
		s, err := NewStage(dir, releaseNames, StageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		faulty := &faultyFolder{Folder: s.folder, failAt: failAt}
		s.folder = faulty
		_, err = stageRelease(t, s)
		if faulty.failed == "" {
			if err != nil {
				t.Fatal(err)
			}
			s.Discard()
			break
		}
		seen[faulty.failed]++
		if !errors.Is(err, errInjected) {
			t.Errorf("operation %d, %s: got %v, want the injected fault", failAt, faulty.failed, err)
		}
		if !strings.Contains(err.Error(), dir) {
			t.Errorf("operation %d: %v does not name the place", failAt, err)
		}
		if err := s.Discard(); err != nil {
			t.Errorf("operation %d: %v", failAt, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("operation %d, %s: left %q", failAt, faulty.failed, folderNames(t, dir))
		}
	}
	for _, op := range []string{"create", "reserve", "write", "sync", "close", "rename", "sync folder"} {
		if seen[op] == 0 {
			t.Errorf("%s was never made to fail", op)
		}
	}
}
