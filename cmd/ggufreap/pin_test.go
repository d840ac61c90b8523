package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// pinFolder makes a folder with smallMoE as small.gguf, the same in three shards, and
// one with a changed expert, a changed tensor and changed metadata.
func pinFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	write(t, smallMoE(), gguf.Split{Shards: 3})
	changed := smallMoE().Clone()
	changed.Name = "changed"
	changeBytes(t, &changed, "blk.1.ffn_up_exps.weight", 5*32*34+7) // 32 rows of a block of 34 bytes
	changeBytes(t, &changed, "blk.2.exp_probs_b.bias", 3*4)
	changeBytes(t, &changed, "output.weight", 0)
	changed.Metadata.Set("general.name", gguf.TextValue("another"))
	changed.Metadata.Set("general.license", gguf.TextValue("mit"))
	write(t, changed, gguf.Split{})
}

func changeBytes(t *testing.T, s *gguftest.Spec, tensor string, at int) {
	t.Helper()
	data, err := s.Bytes(tensor)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	s.Tensor(tensor).Data = data
}

// sumLines lists files as sha256sum does.
func sumLines(t *testing.T, paths ...string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x *%s\n", sha256.Sum256(data), path)
	}
	return b.String()
}

// treeListing lists files as the hub does.
func treeListing(t *testing.T, paths ...string) string {
	t.Helper()
	var entries []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, fmt.Sprintf(`{"type":"file","oid":"%040x","size":%d,"path":"Q8_0/%s","lfs":{"oid":"%x","size":%d,"pointerSize":134},"xetHash":"%064x"}`,
			1, len(data), path, sha256.Sum256(data), len(data), 2))
	}
	return "[" + strings.Join(entries, ",") + `,{"type":"file","oid":"x","size":1,"path":"README.md"}]`
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestPinScreens(t *testing.T) {
	pinFolder(t)
	shards := []string{"small-00001-of-00003.gguf", "small-00002-of-00003.gguf", "small-00003-of-00003.gguf"}
	writeText(t, "sums.txt", sumLines(t, shards...))
	writeText(t, "tree.json", treeListing(t, shards...))
	writeText(t, "uuid.txt", "uuid      ef001206-dadc-5f6d-a15f-3359e577d4e5  small.gguf\n")
	succeed(t, "pin", "-o", "made.pin.json", "small.gguf")
	succeed(t, "pin", "--format", "gguf-hash", "-o", "hashes.txt", shards[0])
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"pin", []string{"small.gguf"}},
		{"declared", []string{"-o", "small.pin.json.zst", "--repo", "org/small", "--revision", "main", "--license", "mit", "--quantization-label", "Q8_0", "--base-model", "org/base", "small.gguf"}},
		{"exists", []string{"-o", "small.pin.json.zst", "small.gguf"}},
		{"is-the-source", []string{"-o", "small.gguf", "--force", "small.gguf"}},
		{"check-same", []string{"--check", "small.pin.json.zst", "small.gguf"}},
		{"check-shards", []string{"--check", "made.pin.json", shards[1]}},
		{"check-changed", []string{"--check", "small.pin.json.zst", "changed.gguf"}},
		{"check-changed-json", []string{"--check", "small.pin.json.zst", "--json", "changed.gguf"}},
		{"check-quick", []string{"--check", "small.pin.json.zst", "--quick", "small.gguf"}},
		{"check-quick-changed", []string{"--check", "small.pin.json.zst", "--quick", "changed.gguf"}},
		{"check-sums", []string{"--check", "sums.txt", shards[0]}},
		{"check-sums-of-others", []string{"--check", "sums.txt", "small.gguf"}},
		{"check-sums-quick", []string{"--check", "sums.txt", "--quick", shards[0]}},
		{"check-tree", []string{"--check", "tree.json", "--repo", "org/small-GGUF", "--revision", "main", shards[0]}},
		{"check-tree-untold", []string{"--check", "tree.json", "--quick", shards[0]}},
		{"check-hashes", []string{"--check", "hashes.txt", shards[0]}},
		{"check-uuid", []string{"--check", "uuid.txt", "small.gguf"}},
		{"check-plan", []string{"--check", "plan.json", "small.gguf"}},
		{"check-model", []string{"--check", "small.gguf", "small.gguf"}},
		{"check-and-write", []string{"--check", "made.pin.json", "-o", "x.json", "small.gguf"}},
		{"quick-alone", []string{"--quick", "small.gguf"}},
		{"unknown-format", []string{"--format", "md5", "small.gguf"}},
		{"hashes-with-facts", []string{"--format", "gguf-hash", "--repo", "x", "small.gguf"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "check-plan" {
				succeed(t, "plan", "--keep", "4", "-o", "plan.json", "small.gguf")
			}
			args := append([]string{"pin"}, tc.args...)
			golden(t, "pin/"+tc.name+".txt", transcript(ggufreap(t, args...), args...))
		})
	}
}

// TestPinPrintsTheDocument wants --json to be the very document that -o writes.
func TestPinPrintsTheDocument(t *testing.T) {
	pinFolder(t)
	printed := succeed(t, "pin", "--json", "-o", "x.json", "--repo", "a/b", "small.gguf")
	written, err := os.ReadFile("x.json")
	if err != nil {
		t.Fatal(err)
	}
	if printed != string(written) {
		t.Error("--json printed another document than -o wrote")
	}
	pin, err := manifest.ReadPin("x.json")
	if err != nil || *pin.Declared.Repo != "a/b" || pin.Declared.License != nil {
		t.Errorf("got %+v, %v", pin, err)
	}
	for _, args := range [][]string{{"--workers", "1"}, {"--workers", "7"}} {
		again := succeed(t, slices.Concat([]string{"pin", "--json"}, args, []string{"small-00003-of-00003.gguf"})...)
		first := succeed(t, "pin", "--json", "small-00001-of-00003.gguf")
		if again != first {
			t.Errorf("%q gives another document", args)
		}
	}
}

// TestPinKnowsExperts wants slabs on the tensors of the routed experts and on no other.
func TestPinKnowsExperts(t *testing.T) {
	pinFolder(t)
	succeed(t, "pin", "-o", "x.json", "small.gguf")
	pin, err := manifest.ReadPin("x.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range pin.Tensors {
		if (tensor.Slabs != nil) != isRouted(tensor.Name) || tensor.Slabs != nil && tensor.Slabs.Count != 8 {
			t.Errorf("%s: slabs %+v", tensor.Name, tensor.Slabs)
		}
	}
}

// TestGGUFHashesAreThoseOfOtherTools recomputes every line of a manifest with sha256sum
// from bytes that inspect's list of tensors locates.
func TestGGUFHashesAreThoseOfOtherTools(t *testing.T) {
	pinFolder(t)
	text := succeed(t, "pin", "--format", "gguf-hash", "small-00001-of-00003.gguf")
	var list struct {
		Shards  []struct{ File string }
		Tensors []struct {
			Name         string
			Size, Offset int64
			Shard        int
		}
	}
	if err := json.Unmarshal([]byte(succeed(t, "inspect", "--json", "--tensors", "small-00001-of-00003.gguf")), &list); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	whole := map[string][]byte{}
	for _, tensor := range list.Tensors {
		file := list.Shards[tensor.Shard].File
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		part := data[tensor.Offset : tensor.Offset+tensor.Size]
		want[file+":"+tensor.Name] = sha256sum(t, part)
		whole[file] = append(whole[file], part...)
	}
	for file, data := range whole {
		want[file] = sha256sum(t, data)
	}
	lines := 0
	for line := range strings.Lines(text) {
		lines++
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "sha256" || want[fields[2]] != fields[1] {
			t.Errorf("line %q, want the sum %s", line, want[fields[2]])
		}
	}
	if lines != len(want) {
		t.Errorf("%d lines, want %d", lines, len(want))
	}
}

func sha256sum(t *testing.T, data []byte) string {
	t.Helper()
	cmd := exec.Command("sha256sum")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))[0]
}

func TestPinOfADamagedModel(t *testing.T) {
	pinFolder(t)
	succeed(t, "pin", "-o", "x.json", "small.gguf")
	if err := os.Truncate("small-00003-of-00003.gguf", 5000); err != nil {
		t.Fatal(err)
	}
	if r := ggufreap(t, "pin", "-o", "y.json", "small-00001-of-00003.gguf"); r.code != exitFailed || !strings.Contains(r.stderr, "truncated") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat("y.json"); err == nil {
		t.Error("a pin was written")
	}
	r := ggufreap(t, "pin", "--check", "x.json", "small-00001-of-00003.gguf")
	if r.code != exitDiffers || !strings.Contains(r.stdout, "truncated") {
		t.Errorf("exit %d, %s", r.code, r.stdout)
	}
}

// TestReleaseOfNamesThatAreNoText writes a release without a pin and says so.
func TestReleaseOfNamesThatAreNoText(t *testing.T) {
	t.Chdir(t.TempDir())
	spec := smallMoE()
	spec.Tensors = append(spec.Tensors, gguftest.Tensor{Name: "odd\xff", Type: gguf.F32, Shape: []uint64{3}})
	write(t, spec, gguf.Split{})
	r := ggufreap(t, "reshard", "--shards", "2", "-o", "out", "small.gguf")
	if r.code != exitOK || !strings.Contains(r.stderr, "gets no pin.json.zst") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join("out", manifest.PinName)); err == nil {
		t.Error("a pin was written")
	}
	succeed(t, "verify", "out")
	for _, args := range [][]string{
		{"pin", "-o", "x.json", "--progress", "plain", "small.gguf"},
		{"prune", "--keep", "4", "--pin-source", "x.json", "-o", "pruned", "small.gguf"},
		{"prune", "--keep", "4", "--pin-source", "x.json", "--dry-run", "small.gguf"},
	} {
		r := ggufreap(t, args...)
		if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, `small.gguf: pin: tensor name "odd\xff" is not UTF-8`) {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr, "pin  ") { // progress: it comes before the first byte of data
			t.Errorf("%q: read before it was refused: %s", args, r.stderr)
		}
		if _, err := os.Stat("pruned"); err == nil {
			t.Errorf("%q: an output folder was left behind", args)
		}
	}
}
