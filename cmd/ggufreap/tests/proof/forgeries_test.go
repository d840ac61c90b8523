package proof

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// A forgery is a release that somebody changed, and gave a fresh pin and list of sums.
type forgery struct {
	*testing.T
	dir    string
	source *gguf.Model
}

// A forgeryKind is one way to change a release. Contents are changed before its files are
// written, files and documents behind that, before pin and list are made.
type forgeryKind struct {
	name     string
	contents func(f *forgery, c *gguf.Contents)
	files    func(f *forgery)
	unlisted func(f *forgery)                        // behind that
	pin      func(f *forgery, genuine string) string // makes another pin of the source, which is refused
	args     []string                                // of verify beside the source's pin and its digest
	want     string                                  // of what is found
}

// TestForgeries makes a release of every kind of forgery that is known, and proves that
// verify finds each of them. Run with -v it prints how many.
func TestForgeries(t *testing.T) {
	t.Chdir(t.TempDir())
	k3 := newForgeries(t, programtest.SmallK3(), "--keep", "16", "--criterion", "seeded-random")
	ids, err := gguftest.Architecture("deepseek4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	tables := newForgeries(t, ids, "--keep", "8", "--criterion", "seeded-random", "--remap-dropped", "nearest-kept")
	found, all := 0, 0
	for _, suite := range []forgerySuite{
		{k3, slices.Concat(expertForgeries, tensorForgeries, keyForgeries, fileForgeries, byteForgeries, documentForgeries, pinForgeries)},
		{tables, tableForgeries},
		withExchanges(t, "gpt-oss"), // biases, scales, a bias of the router
		withExchanges(t, "gemma4"),  // gate and up in one
	} {
		suite.expectNothing(t)
		for _, kind := range suite.kinds {
			all++
			t.Run(kind.name, func(t *testing.T) {
				if suite.finds(t, kind) {
					found++
				}
			})
		}
	}
	t.Logf("forgeries: found %d of %d", found, all)
}

// A forgerySuite is forgeries with the kinds to make of them.
type forgerySuite struct {
	forgeries
	kinds []forgeryKind
}

// withExchanges exchanges two experts in each single tensor of a layer that follows the experts.
func withExchanges(t *testing.T, architecture string) forgerySuite {
	t.Helper()
	spec, err := gguftest.Architecture(architecture, gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	suite := forgerySuite{forgeries: newForgeries(t, spec, "--keep", "8", "--criterion", "seeded-random")}
	experts, faults := reap.FindExperts(programtest.OpenModel(t, filepath.Join(suite.home, "release")))
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	for _, tensor := range experts.Layers[0].Tensors {
		suite.kinds = append(suite.kinds, forgeryKind{name: fmt.Sprintf("%s: experts exchanged in %s", architecture, tensor.Name), want: "do not fit the other tensors of the layer",
			contents: edited(tensor.Name, func(data []byte) {
				a := bytes.Clone(slab(data, 8, 0))
				copy(slab(data, 8, 0), slab(data, 8, 1))
				copy(slab(data, 8, 1), a)
			})})
	}
	if len(suite.kinds) < 5 {
		t.Fatalf("%s: only %d tensors follow the experts", architecture, len(suite.kinds))
	}
	return suite
}

// forgeries are made of one source and one release of it.
type forgeries struct {
	home, digest string
}

// newForgeries makes a source, its pin, and a release.
func newForgeries(t *testing.T, spec gguftest.Spec, choice ...string) forgeries {
	t.Helper()
	home := t.TempDir()
	if _, err := spec.Write(filepath.Join(home, "source"), gguf.Split{Shards: 9}); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(home, name) }
	programtest.Succeed(t, "pin", "-o", path("source.pin.json"), path("source"))
	programtest.Succeed(t, slices.Concat([]string{"prune"}, choice, []string{"--source-pin", path("source.pin.json"), "--shards", "9", "-o", path("release"), path("source")})...)
	pin, err := manifest.ReadPin(path("source.pin.json"))
	if err != nil {
		t.Fatal(err)
	}
	return forgeries{home, pin.PinDigest.String()}
}

func (s forgeries) verify(t *testing.T, dir string, args ...string) programtest.Result {
	return programtest.Run(t, slices.Concat([]string{"verify", "--source-pin", filepath.Join(s.home, "source.pin.json"), "--source-digest", s.digest}, args, []string{dir})...)
}

// expectNothing makes the release anew without a change.
func (s forgeries) expectNothing(t *testing.T) {
	t.Helper()
	dir := s.make(t, forgeryKind{contents: func(*forgery, *gguf.Contents) {}})
	if r := s.verify(t, dir, "--strict"); r.Code != programtest.OK {
		t.Fatalf("the release itself: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// finds makes a forgery and reports whether verify finds it and says what it is.
func (s forgeries) finds(t *testing.T, kind forgeryKind) bool {
	if kind.pin != nil {
		return s.refuses(t, kind)
	}
	r := s.verify(t, s.make(t, kind), kind.args...)
	if r.Code != programtest.Differs || !strings.Contains(r.Stdout, kind.want) {
		t.Errorf("exit %d, want %q in\n%s%s", r.Code, kind.want, r.Stdout, r.Stderr)
		return false
	}
	return true
}

// refuses gives verify a forged pin of the source.
func (s forgeries) refuses(t *testing.T, kind forgeryKind) bool {
	f := &forgery{T: t, dir: t.TempDir(), source: programtest.OpenModel(t, filepath.Join(s.home, "source"))}
	genuine, err := os.ReadFile(filepath.Join(s.home, "source.pin.json"))
	if err != nil {
		t.Fatal(err)
	}
	programtest.WriteText(t, f.path("forged.json"), kind.pin(f, string(genuine)))
	r := programtest.Run(t, "verify", "--source-pin", f.path("forged.json"), "--source-digest", s.digest, filepath.Join(s.home, "release"))
	if r.Code != programtest.Failed || !strings.Contains(r.Stderr, kind.want) {
		t.Errorf("exit %d, want %q in\n%s%s", r.Code, kind.want, r.Stdout, r.Stderr)
		return false
	}
	return true
}

func (s forgeries) make(t *testing.T, kind forgeryKind) string {
	t.Helper()
	f := &forgery{T: t, dir: t.TempDir(), source: programtest.OpenModel(t, filepath.Join(s.home, "source"))}
	if err := os.CopyFS(f.dir, os.DirFS(filepath.Join(s.home, "release"))); err != nil {
		t.Fatal(err)
	}
	if kind.contents != nil {
		f.rewrite(filepath.Join(s.home, "release"), kind.contents)
	}
	if kind.files != nil {
		kind.files(f)
	}
	// A folder with a list is a release, which keeps its pin; without one it may hold one artifact
	// only, so that the pin is made of a shard.
	for _, name := range []string{manifest.PinName, manifest.SumsName} {
		os.Remove(f.path(name))
	}
	if first := f.shards(); len(first) > 0 {
		programtest.Run(t, "pin", "-o", f.path(manifest.PinName), first[0])
	}
	f.list()
	if kind.unlisted != nil {
		kind.unlisted(f)
	}
	return f.dir
}

func (f *forgery) path(name string) string { return filepath.Join(f.dir, name) }

func (f *forgery) shards() []string {
	paths, err := filepath.Glob(f.path("*-of-*.gguf"))
	if err != nil {
		f.Fatal(err)
	}
	return paths
}

func (f *forgery) list() {
	programtest.WriteText(f.T, f.path(manifest.SumsName), programtest.ListFolder(f.T, f.dir))
}

// rewrite writes the model of the release anew, edited, in as many shards.
func (f *forgery) rewrite(release string, edit func(f *forgery, c *gguf.Contents)) {
	f.Helper()
	old := f.shards()
	c := programtest.OpenModel(f.T, release).Contents()
	c.Metadata = c.Metadata.Clone()
	c.Views = slices.Clone(c.Views)
	edit(f, &c)
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: len(old)})
	if err != nil {
		f.Fatal(err)
	}
	for i, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(f.Context(), &b, make([]byte, 1<<16), nil); err != nil {
			f.Fatal(err)
		}
		programtest.WriteText(f.T, old[i], b.String())
	}
}

// data returns and set replaces what a tensor holds.
func (f *forgery) data(c *gguf.Contents, tensor string) []byte {
	return viewBytes(f.T, *viewOf(f.T, c, tensor))
}

func (f *forgery) set(c *gguf.Contents, tensor string, data []byte) {
	v := viewOf(f.T, c, tensor)
	v.Extents = nil
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
}

// slab returns expert i of n.
func slab(data []byte, n, i int) []byte { return data[i*len(data)/n : (i+1)*len(data)/n] }

// swapped exchanges two kept experts in tensors.
func swapped(i, j int, tensors ...string) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		for _, tensor := range tensors {
			data := f.data(c, tensor)
			a := bytes.Clone(slab(data, 16, i))
			copy(slab(data, 16, i), slab(data, 16, j))
			copy(slab(data, 16, j), a)
			f.set(c, tensor, data)
		}
	}
}

// edited changes the data of a tensor.
func edited(tensor string, edit func(data []byte)) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		data := f.data(c, tensor)
		edit(data)
		f.set(c, tensor, data)
	}
}

// fromSource puts an expert of the source into place i of a tensor.
func fromSource(tensor string, i int, from string, expert int) func(f *forgery, c *gguf.Contents) {
	return func(f *forgery, c *gguf.Contents) {
		data := f.data(c, tensor)
		copy(slab(data, 16, i), slab(programtest.TensorData(f.T, f.source, from), 32, expert))
		f.set(c, tensor, data)
	}
}

func flipBit(at int) func(data []byte) { return func(data []byte) { data[at] ^= 1 } }
