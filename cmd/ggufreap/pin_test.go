package main

import (
	"bytes"
	"encoding/json"
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
	write(t, changedMoE(), gguf.Split{})
}

// changedMoE is smallMoE with a changed expert, changed tensors and changed metadata.
func changedMoE() gguftest.Spec {
	s := smallMoE().Clone()
	s.Name = "changed"
	changeBytes(&s, "blk.1.ffn_up_exps.weight", 5*32*34+7) // 32 rows of a block of 34 bytes
	changeBytes(&s, "blk.2.exp_probs_b.bias", 3*4)
	changeBytes(&s, "output.weight", 0)
	s.Metadata.Set("general.name", gguf.TextValue("another"))
	s.Metadata.Set("general.license", gguf.TextValue("mit"))
	return s
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
