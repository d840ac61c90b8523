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

func TestPruneRefusals(t *testing.T) {
	dir := t.TempDir()
	model := smallK3()
	files, err := model.Write(filepath.Join(dir, "in"), gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	other, err := gguftest.K3(gguftest.K3Options{Name: "other", Experts: 32, Used: 4, Layers: 4}).Write(filepath.Join(dir, "other"), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	succeed(t, "plan", "--keep", "16", "-o", filepath.Join(dir, "plan-other.json"), other[0])
	t.Chdir(dir)
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"no-choice", []string{files[0]}},
		{"two-choices", []string{"--preset", "reap568", "--keep", "16", files[0]}},
		{"plan-and-choice", []string{"--plan", "plan-other.json", "--keep", "16", files[0]}},
		{"wrong-preset", []string{"--preset", "reap568", files[0]}},
		{"unknown-preset", []string{"--preset", "reap567", files[0]}},
		{"too-few-kept", []string{"--keep", "3", files[0]}},
		{"too-many-kept", []string{"--keep", "33", files[0]}},
		{"unknown-criterion", []string{"--keep", "16", "--criterion", "vibes", files[0]}},
		{"plan-of-another", []string{"--plan", "plan-other.json", files[0]}},
		{"plan-with-faults", []string{"--plan", write("faults.json", `{"layers":{"1":{"keep":[0,1,2,2,32]},"3":{"keep":[0,1,2,3,4]}}}`), files[0]}},
		{"plan-not-json", []string{"--plan", write("broken.json", `{"layers":`), files[0]}},
		{"too-many-shards", []string{"--keep", "16", "--shards", "1000", files[0]}},
		{"no-shards", []string{"--keep", "16", "--shards", "0", files[0]}},
		{"small-shards", []string{"--keep", "16", "--max-shard-size", "20kB", files[0]}},
		{"ambiguous-size", []string{"--keep", "16", "--max-shard-size", "20G", files[0]}},
		{"two-splits", []string{"--keep", "16", "--max-shard-size", "20GB", "--shards", "3", files[0]}},
		{"source-folder", []string{"--keep", "16", "--force", "-o", "in", files[0]}},
		{"not-empty", []string{"--keep", "16", "-o", "other", files[0]}},
		{"bad-name", []string{"--keep", "16", "--name", "../x", files[0]}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"prune"}
			if !slices.Contains(tc.args, "-o") {
				args = append(args, "-o", "out")
			}
			args = append(args, tc.args...)
			r := ggufreap(t, args...)
			if r.code != exitFailed || r.stdout != "" {
				t.Errorf("exit %d and %q, want %d and nothing on stdout", r.code, r.stdout, exitFailed)
			}
			golden(t, "prune/"+tc.name+".txt", strings.ReplaceAll(transcript(r, args...), dir, "DIR"))
			if _, err := os.Stat("out"); err == nil {
				t.Error("an output folder was left behind")
			}
		})
	}
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	files := writeModel(t, smallK3(), 1)
	for _, tc := range []struct {
		name   string
		change func(dir string) error
		args   []string
		want   string
	}{
		{"a flipped byte", func(dir string) error { return flip(filepath.Join(dir, "small-REAP16-00002-of-00003.gguf"), -1) }, nil, "small-REAP16-00002-of-00003.gguf"},
		{"a flipped byte of the plan", func(dir string) error { return flip(filepath.Join(dir, release.PlanName), 5) }, nil, release.PlanName},
		{"a missing shard", func(dir string) error { return os.Remove(filepath.Join(dir, "small-REAP16-00003-of-00003.gguf")) }, nil, "missing"},
		{"a cut shard", func(dir string) error {
			return os.Truncate(filepath.Join(dir, "small-REAP16-00003-of-00003.gguf"), 5000)
		}, nil, "small-REAP16-00003-of-00003.gguf"},
		{"an extra model", func(dir string) error { return os.WriteFile(filepath.Join(dir, "x.gguf"), nil, 0o666) }, nil, "x.gguf"},
		{"an empty manifest", func(dir string) error { return os.Truncate(filepath.Join(dir, "MANIFEST.sha256"), 0) }, nil, "MANIFEST.sha256"},
		{"another expectation", func(string) error { return nil }, []string{"--expect", "experts=17"}, "experts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "release")
			succeed(t, "prune", "--keep", "16", "--shards", "3", "-o", dir, files[0])
			succeed(t, "verify", dir)
			if err := tc.change(dir); err != nil {
				t.Fatal(err)
			}
			r := ggufreap(t, append(append([]string{"verify"}, tc.args...), dir)...)
			if r.code != exitDiffers || !strings.Contains(r.stdout, tc.want) {
				t.Errorf("exit %d, want %d and %q in:\n%s%s", r.code, exitDiffers, tc.want, r.stdout, r.stderr)
			}
		})
	}
}

func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	golden(t, "demo.txt", transcript(ggufreap(t, "demo"), "demo"))
	if r := ggufreap(t, "demo"); r.code != exitFailed || !strings.Contains(r.stderr, "is not empty") {
		t.Errorf("a second demo: exit %d, %s", r.code, r.stderr)
	}
}
