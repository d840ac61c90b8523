package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// succeed runs the program, which must exit with 0, and returns what it printed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := ggufreap(t, args...)
	if r.code != exitOK {
		t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// routedNames are the tensors of a kimi-k3 block that have a slab for each expert,
// spelled out here so that the test does not ask the code under test.
var routedNames = []string{"ffn_gate_inp.weight", "exp_probs_b.bias", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"}

func isRouted(name string) bool {
	return slices.ContainsFunc(routedNames, func(suffix string) bool { return strings.HasSuffix(name, "."+suffix) })
}

// readKeep reads the keep lists of a plan with nothing but encoding/json.
func readKeep(t *testing.T, path string) map[string][]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Layers map[string]struct{ Keep []int }
	}
	if err := json.Unmarshal(data, &plan); err != nil {
		t.Fatal(err)
	}
	keep := map[string][]int{}
	for layer, l := range plan.Layers {
		keep[layer] = l.Keep
	}
	return keep
}

// TestPruneWritesTheParentsBytes follows the README's way through the fixture and
// compares the release with its source tensor by tensor.
func TestPruneWritesTheParentsBytes(t *testing.T) {
	files := writeModel(t, gguftest.K3(gguftest.K3Options{}), gguftest.K3Shards)
	dir := filepath.Join(t.TempDir(), "release")
	succeed(t, "prune", "--preset", "reap568", "-o", dir, files[4])
	succeed(t, "verify", "--expect", "experts=568,shards=14,architecture=kimi-k3", dir)

	source, pruned := openModel(t, files[0]), openModel(t, dir)
	if pruned.Shards != 14 || pruned.Name != "K3-REAP568" {
		t.Errorf("release is %s in %d shards, want K3-REAP568 in 14", pruned.Name, pruned.Shards)
	}
	keep := readKeep(t, filepath.Join(dir, release.PlanName))
	if len(pruned.Tensors()) != len(source.Tensors()) {
		t.Fatalf("%d tensors, want %d", len(pruned.Tensors()), len(source.Tensors()))
	}
	for i, want := range source.Tensors() {
		if got := pruned.Tensors()[i]; got.Name != want.Name || got.Type != want.Type {
			t.Fatalf("tensor %d is %s %s, want %s %s", i, got.Name, got.Type, want.Name, want.Type)
		}
		data := tensorData(t, source, want.Name)
		if isRouted(want.Name) {
			data = keptSlabs(data, 896, keep[strings.Split(want.Name, ".")[1]])
		}
		if !bytes.Equal(tensorData(t, pruned, want.Name), data) {
			t.Errorf("tensor %s holds other bytes than its source", want.Name)
		}
	}
	checkMetadata(t, source, pruned)
}

// keptSlabs cuts data into n slabs and joins those of the given numbers.
func keptSlabs(data []byte, n int, keep []int) []byte {
	size := len(data) / n
	var kept []byte
	for _, id := range keep {
		kept = append(kept, data[id*size:(id+1)*size]...)
	}
	return kept
}

// checkMetadata holds the metadata of a pruned model to what pruning may change.
func checkMetadata(t *testing.T, source, pruned *gguf.Model) {
	t.Helper()
	changed := map[string]bool{"kimi-k3.expert_count": true, "split.no": true, "split.count": true, "split.tensors.count": true}
	var order []string
	for key, want := range source.Metadata().All() {
		order = append(order, key)
		got, ok := pruned.Metadata().Get(key)
		if !ok || got.Type() != want.Type() {
			t.Errorf("key %q: got type %s, want %s", key, got.Type(), want.Type())
			continue
		}
		a, _ := got.Raw()
		b, _ := want.Raw()
		if !changed[key] && !bytes.Equal(a, b) {
			t.Errorf("key %q changed", key)
		}
	}
	if got := pruned.Metadata().Keys()[:len(order)]; !slices.Equal(got, order) {
		t.Errorf("keys are in the order %q, want %q", got, order)
	}
	for _, key := range pruned.Metadata().Keys()[len(order):] {
		if !strings.HasPrefix(key, "reap.") {
			t.Errorf("key %q was added", key)
		}
	}
	for key, want := range map[string]gguf.ValueType{"kimi-k3.expert_count": gguf.Uint32, "split.no": gguf.Uint16, "split.count": gguf.Uint16, "split.tensors.count": gguf.Int32} {
		if v, _ := pruned.Metadata().Get(key); v.Type() != want {
			t.Errorf("key %q is %s, want %s", key, v.Type(), want)
		}
	}
	if n, _ := pruned.Metadata().Uint("kimi-k3.expert_count"); n != 568 {
		t.Errorf("expert_count is %d, want 568", n)
	}
}

func TestManifestSatisfiesSha256sum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	succeed(t, "prune", "--keep", "20", "--shards", "5", "-o", dir, writeModel(t, smallK3(), 3)[0])
	cmd := exec.Command("sha256sum", "--strict", "-c", "MANIFEST.sha256")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := strings.Count(string(out), ": OK"), len(folder(t, dir))-1; got != want {
		t.Errorf("sha256sum checked %d files, want %d", got, want)
	}
}

func TestIdentityPruneGivesTheFileBack(t *testing.T) {
	for _, shards := range []int{1, 4} {
		spec := smallK3()
		want, err := spec.File()
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "same")
		succeed(t, "prune", "--keep", "32", "--shards", "1", "--name", "same", "--no-provenance-keys", "-o", dir, writeModel(t, spec, shards)[0])
		got, err := os.ReadFile(filepath.Join(dir, "same.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("from %d shards: %d bytes that differ from the %d of the canonical file", shards, len(got), len(want))
		}
	}
}

func TestPruneGivesTheSameFolderForAnyWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	files := writeModel(t, smallK3(), 3)
	var first map[string]string
	for _, run := range []struct{ procs, workers int }{{1, 0}, {8, 0}, {8, 0}, {8, 1}, {1, 8}} {
		runtime.GOMAXPROCS(run.procs)
		dir := filepath.Join(t.TempDir(), "release")
		succeed(t, "prune", "--keep", "21", "--shards", "7", "--workers", fmt.Sprint(run.workers), "-o", dir, files[0])
		got := folder(t, dir)
		if first == nil {
			first = got
		}
		for name, data := range first {
			if got[name] != data {
				t.Errorf("%+v: %s differs", run, name)
			}
		}
		if len(got) != len(first) {
			t.Errorf("%+v: %d files, want %d", run, len(got), len(first))
		}
	}
}

func TestDryRunSaysWhatIsWritten(t *testing.T) {
	files := writeModel(t, smallK3(), 3)
	for _, split := range [][]string{{"--shards", "6"}, {"--max-shard-size", "100kB"}, {"--max-shard-tensors", "20"}, {"--max-shard-tensors", "20", "--empty-first"}, nil} {
		run := func(more ...string) (doc release.Document) {
			args := slices.Concat([]string{"prune", "--keep", "16", "--json"}, split, more, files[1:2])
			if err := json.Unmarshal([]byte(succeed(t, args...)), &doc); err != nil {
				t.Fatal(err)
			}
			return doc
		}
		dir := filepath.Join(t.TempDir(), "release")
		planned, written := run("--dry-run"), run("-o", dir)
		if planned.FileBytes != written.FileBytes || len(planned.Shards) != len(written.Shards) {
			t.Fatalf("%q: planned %+v, wrote %+v", split, planned, written)
		}
		for i, s := range planned.Shards {
			info, err := os.Stat(filepath.Join(dir, string(s.File)))
			if err != nil {
				t.Error(err)
			} else if info.Size() != s.Size || written.Shards[i].Size != s.Size {
				t.Errorf("%q: %s has %d bytes, the dry run said %d", split, s.File, info.Size(), s.Size)
			}
		}
	}
}

func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	golden(t, "demo.txt", transcript(ggufreap(t, "demo"), "demo"))
	if r := ggufreap(t, "demo"); r.code != exitFailed || !strings.Contains(r.stderr, "is not empty") {
		t.Errorf("a second demo: exit %d, %s", r.code, r.stderr)
	}
}
