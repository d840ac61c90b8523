package documents

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// all has every document tried; without it, of those that cost the same way one is.
var all = flag.Bool("all", false, "try all documents")

// alike are lists that cost what another one costs that is tried: long absent names, hashes of
// tensors, and files of very many folders.
var alike = []string{"absent names of a release", "absent names as evidence", "such a list as evidence", "sums of another program"}

// What a list, pin or plan of up to 64 MiB may cost, whatever stands in it.
const (
	maxListMemory = 128 << 20
	maxListTime   = 10 * time.Second
)

// TestHostileLists holds a model against documents of 64 MiB that are made to cost most, in a
// child of the program that tells its peak of memory. "make hostile" tries all of them.
func TestHostileLists(t *testing.T) {
	binary := programtest.Path(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if _, err := programtest.SmallK3().Write(path("model"), gguf.Split{Shards: 3}); err != nil {
		t.Fatal(err)
	}
	programtest.Succeed(t, "prune", "--keep", "16", "-o", path("release"), path("model"))
	digits := strings.Repeat("0", 64)
	sums := func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  %x\n", digits, i) }
	namesakes := func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  %x/small-00001-of-00003.gguf\n", digits, i) }
	for name, hostile := range map[string]struct {
		line  func(b []byte, i int) []byte // appends
		end   string
		lay   func(t *testing.T, text string) []string // returns arguments
		wants string
	}{
		"absent names of a release": {sums, "", inRelease(path("release")), "findings more"},
		"absent names as evidence":  {sums, "", asEvidence(path("model")), "names other files too"},
		"long absent names": {func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  %s%x\n", digits, strings.Repeat("x", 200), i) }, "",
			inRelease(path("release")), "findings more"},
		"one name a million times": {func(b []byte, _ int) []byte { return append(b, digits+"  x\n"...) }, "", inRelease(path("release")), "is on line 1 already"},
		"names that leave":         {func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  ../%x\n", digits, i) }, "", inRelease(path("release")), "leaves the folder"},
		"hashes of tensors":        {func(b []byte, i int) []byte { return fmt.Appendf(b, "xxh64     %016x  x.gguf:%x\n", i, i) }, "", asEvidence(path("model")), "more than 300000 lines"},
		"a tree of files": {func(b []byte, i int) []byte {
			return fmt.Appendf(b, `%s{"type":"file","path":"%x","size":1,"oid":"x"}`, map[bool]string{true: "[", false: ","}[i == 0], i)
		}, "]", asEvidence(path("model")), "more than 200000 entries"},
		"sums of another program":       {sums, "", asSums(path("model")), "names other files too"},
		"one file in very many folders": {namesakes, "", asSums(path("model")), `files of the name "small-00001-of-00003.gguf" in other folders`},
		"such a list as evidence":       {namesakes, "", asEvidence(path("model")), "entries have names of the model's files"},
		"lines that are none":           {func(b []byte, i int) []byte { return fmt.Appendf(b, "zz%062x  x\n", i) }, "", inRelease(path("release")), "lines 1 to "},
	} {
		if slices.Contains(alike, name) && !*all {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text := filepath.Join(t.TempDir(), "text")
			writeLines(t, text, hostile.line, hostile.end)
			runHostile(t, binary, hostile.wants, hostile.lay(t, text)...)
		})
	}
	t.Run("very many lists", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(path("model"))); err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			programtest.WriteText(t, filepath.Join(dir, fmt.Sprintf("%x.sha256", i)), digits+"\n")
		}
		runHostile(t, binary, "2,000 lists name other files too, 2,000: ", "verify", dir)
	})
	if *all { // one of very many experts takes more memory
		t.Run("a pin of very many tensors", func(t *testing.T) {
			large := path("large.pin.json")
			largePin(t, large)
			runHostile(t, binary, "is a tensor of the source, and not there", "verify", "--source-pin", large, path("model"))
			runHostile(t, binary, "is pinned and not there", "pin", "--check", large, path("model"))
			runHostile(t, binary, "tensors more; --json lists them", "diff", large, path("model"))
		})
	}
	t.Run("a pin of very many experts", func(t *testing.T) {
		large := path("experts.pin.json")
		expertsPin(t, large, manySlabs(1))
		others, err := manySlabs(2).Write(path("others"), gguf.Split{Shards: 4})
		if err != nil {
			t.Fatal(err)
		}
		runHostile(t, binary, "are not among the source's", "verify", "--source-pin", large, others[0])
		runHostile(t, binary, "are not as pinned", "pin", "--check", large, others[0])
	})
	programtest.Succeed(t, "prune", "--keep", "16", "-o", path("pruned"), path("model"))
	kinds := []string{"ids that repeat", "keys for blocks", "64 MiB"} // values, members, bytes
	for name, text := range hostilePlans() {
		t.Run("a plan with "+name, func(t *testing.T) {
			plan := path("plan.json")
			programtest.WriteText(t, plan, text)
			runHostile(t, binary, "error: ", "prune", "--dry-run", "--plan", plan, "-o", path("none"), path("model"))
			if !slices.Contains(kinds, name) && !*all {
				return // verify reads as prune does
			}
			programtest.WriteText(t, filepath.Join(path("pruned"), "plan.json"), text)
			runHostile(t, binary, "plan            plan.json", "verify", path("pruned"))
		})
	}
}

// asSums lays a list beside the model as other programs do.
func asSums(model string) func(t *testing.T, text string) []string {
	return func(t *testing.T, text string) []string {
		list := filepath.Join(model, "SHA256SUMS")
		if err := os.Rename(text, list); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(list) })
		return []string{"verify", model}
	}
}

// hostilePlans are plans with as much in them as is read, and one of 64 MiB, which is not.
func hostilePlans() map[string]string {
	const values, keys = 1<<19 - 64, 1<<17 - 64
	layers := func(text string) string {
		return `{"schema":"ggufreap/plan/v1","source":{"structure_digest":"x","weights_digest":null,"architecture":"kimi-k3","name":"x"},"mode":"uniform",` +
			`"num_experts":32,"keep_count":16,"criterion":{"name":"given","version":1,"evidence":"given","parameters":{},"inputs":[]},` +
			`"scores_digest":null,"rules":{"always_keep":null,"draft_layers":null,"dropped_ids":null},"layers":{` + text + `}}`
	}
	many := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	pad := strings.Repeat("x", 100)
	return map[string]string{
		"ids below zero":  layers(`"1":{"keep":[` + many(values, func(i int) string { return fmt.Sprintf("-%d%20s", i+1, "") }) + `]}`),
		"ids that repeat": layers(`"1":{"keep":[` + many(values, func(int) string { return "1" }) + `]}`),
		"texts for ids":   layers(`"1":{"keep":[` + many(values, func(int) string { return `"` + pad[:20] + `"` }) + `]}`),
		"keys for blocks": layers(many(keys, func(i int) string { return fmt.Sprintf(`"%s%d":[]`, pad, i) })),
		"unknown members": `{"schema":"ggufreap/plan/v1",` + many(keys, func(i int) string { return fmt.Sprintf(`"%s%d":1`, pad, i) }) + `}`,
		"pairs":           `{"pruned_experts":[` + many(values/3, func(i int) string { return fmt.Sprintf("[%d,1]", i) }) + `]}`,
		"64 MiB":          `{"layers":{"` + strings.Repeat("x", 64<<20-100) + `":1}}`,
	}
}

// manySlabs is a model with as many experts, of 34 bytes each, as a pin can list.
func manySlabs(seed uint64) gguftest.Spec {
	spec := gguftest.Spec{Name: "many", Seed: seed, Metadata: gguf.NewMetadata()}
	spec.Metadata.Set(gguf.KeyArchitecture, gguf.TextValue("kimi-k3"))
	for i := range 1 << 20 / 4096 {
		spec.Tensors = append(spec.Tensors, gguftest.Tensor{Name: fmt.Sprintf("blk.%d.ffn_up_exps.weight", i), Type: gguf.I8, Shape: []uint64{34, 1, 4096}})
	}
	return spec
}

// expertsPin writes the pin of such a model, with the digest of each expert.
func expertsPin(t *testing.T, path string, spec gguftest.Spec) {
	t.Helper()
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	pin, err := manifest.BuildPin(t.Context(), programtest.OpenModel(t, paths[0]), manifest.BuildOptions{Slabs: func(string) int { return 4096 }})
	if err != nil {
		t.Fatal(err)
	}
	writeLarge(t, path, 40<<20, pin)
}

// inRelease puts a text into a release as its list.
func inRelease(release string) func(t *testing.T, text string) []string {
	return func(t *testing.T, text string) []string {
		list := filepath.Join(release, manifest.SumsName)
		if err := os.Rename(text, list); err != nil {
			t.Fatal(err)
		}
		return []string{"verify", release}
	}
}

func asEvidence(model string) func(t *testing.T, text string) []string {
	return func(_ *testing.T, text string) []string { return []string{"pin", "--check", text, model} }
}

// writeLines writes lines up to nearly 64 MiB.
func writeLines(t *testing.T, path string, line func(b []byte, i int) []byte, end string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i, size := 0, 0; size < 64<<20-4096; i++ {
		n, err := w.Write(line(w.AvailableBuffer(), i))
		if err != nil {
			t.Fatal(err)
		}
		size += n
	}
	w.WriteString(end)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// largePin writes the pin, of nearly 64 MiB, of a model with very many empty tensors.
func largePin(t *testing.T, path string) {
	t.Helper()
	spec := gguftest.Mixed(1)
	for i := range 300_000 {
		spec.Tensors = append(spec.Tensors, gguftest.Tensor{Name: fmt.Sprintf("t%x", i), Type: gguf.F32, Shape: []uint64{0}})
	}
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	m := programtest.OpenModel(t, paths[0])
	pin, err := manifest.BuildPin(t.Context(), m, manifest.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	writeLarge(t, path, 50<<20, pin)
}

// writeLarge writes a pin, which must have so many bytes, and no more than are read.
func writeLarge(t *testing.T, path string, least int64, pin *manifest.Pin) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := manifest.EncodePin(f, path, pin); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() < least || info.Size() > 64<<20 {
		t.Fatalf("the pin has %d bytes (%v)", info.Size(), err)
	}
}

func runHostile(t *testing.T, binary, want string, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	peak := programtest.Measured(t, cmd)
	begin := time.Now()
	out, _ := cmd.CombinedOutput()
	took := time.Since(begin)
	if code := cmd.ProcessState.ExitCode(); code != programtest.Differs && code != programtest.Failed && code != programtest.OK {
		t.Errorf("%q: exit %d", args, code)
	}
	if !strings.Contains(string(out), want) || len(out) > 1<<20 {
		t.Errorf("%q: want %q in %d bytes: %.2000s", args, want, len(out), out)
	}
	t.Logf("%s %s: %d MiB at most, %.1f s", args[0], args[1], peak()>>20, took.Seconds())
	if memory := peak(); memory > maxListMemory {
		t.Errorf("%q: %d MiB at most, want no more than %d", args, memory>>20, maxListMemory>>20)
	}
	if took > 3*maxListTime { // busy machines are slow; the log has the time
		t.Errorf("%q took %s", args, took)
	}
}

// TestVerifyTellsWhenTheMachineFails lets verify open few files: that is no finding about the
// release. With fewer than Go's runtime takes for itself there is no program.
func TestVerifyTellsWhenTheMachineFails(t *testing.T) {
	binary := programtest.Path(t)
	release := filepath.Join(t.TempDir(), "release")
	source := programtest.WriteModel(t, programtest.SmallK3(), 3)[0]
	programtest.Succeed(t, "prune", "--keep", "16", "--shards", "9", "-o", release, source)
	failed := 0
	for limit := range 40 {
		cmd := exec.Command("sh", "-c", `ulimit -n "$1" && exec "$0" verify "$2"`, binary, fmt.Sprint(limit+8), release)
		out, _ := cmd.CombinedOutput()
		switch code := cmd.ProcessState.ExitCode(); {
		case code == programtest.OK:
		case strings.HasPrefix(string(out), "runtime: "):
		case code == programtest.TryAgain && strings.Contains(string(out), "too many open files"):
			failed++
		default:
			t.Errorf("%d files: exit %d, %s", limit+8, code, out)
		}
	}
	if failed == 0 {
		t.Error("no limit was too low")
	}
}
