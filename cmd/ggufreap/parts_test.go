package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/manifest/parts"
)

// inParts runs a command line once for each part, in random order and some parts twice, and
// joins what they wrote.
func inParts(t *testing.T, rng *rand.Rand, n int, out string, line ...string) {
	t.Helper()
	order := append(rng.Perm(n), rng.IntN(n))
	for _, i := range order {
		succeed(t, append(line, "--only", fmt.Sprintf("%d/%d", i+1, n), "-o", out)...)
	}
	succeed(t, "assemble", out)
}

// TestPartsAreTheWhole writes releases in one run and in parts, as many as there are shards,
// fewer and more, in any order: the folders are the same to the byte.
func TestPartsAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 1))
	source := writeModel(t, smallK3(), 3)[0]
	pin := filepath.Join(t.TempDir(), "source.pin.json.zst")
	succeed(t, "pin", "-o", pin, source)
	for _, line := range [][]string{
		{"prune", "--keep", "16", source},
		{"prune", "--keep", "20", "--shards", "6", "--source-pin", pin, source},
		{"prune", "--keep", "8", "--shards", "1", "--no-provenance-keys", "--set", "general.name=other", source},
		{"reshard", "--shards", "5", source},
		{"reshard", "--max-shard-tensors", "7", source},
	} {
		whole := filepath.Join(t.TempDir(), "whole")
		succeed(t, append(line, "-o", whole)...)
		want := folder(t, whole)
		for _, n := range []int{1, 2 + rng.IntN(3), 5, 7 + rng.IntN(6)} {
			out := filepath.Join(t.TempDir(), "parts")
			inParts(t, rng, n, out, line...)
			if got := folder(t, out); !maps.Equal(got, want) {
				t.Errorf("%s in %d parts: files %q, want %q, or other bytes", strings.Join(line, " "), n, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			if r := ggufreap(t, append(line, "--only", fmt.Sprintf("1/%d", n), "-o", out)...); r.code != exitOK || !strings.Contains(r.stderr, "finished") {
				t.Errorf("a part of a joined release: exit %d\n%s", r.code, r.stderr)
			}
			succeed(t, "assemble", out)
			if got := folder(t, out); !maps.Equal(got, want) {
				t.Errorf("%s in %d parts: a late task and another join changed the folder", strings.Join(line, " "), n)
			}
		}
	}
}

// TestPartsThatAreNotJoined are no release, and no place for another run.
func TestPartsThatAreNotJoined(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	out := filepath.Join(t.TempDir(), "out")
	line := []string{"prune", "--keep", "16", "-o", out, source}
	for _, part := range []string{"1/2", "2/2"} {
		succeed(t, append(line, "--only", part)...)
	}
	before := folder(t, out)
	if r := ggufreap(t, "verify", out); r.code != exitDiffers || !strings.Contains(r.stdout, "the parts of this release are not joined") {
		t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, flags := range [][]string{nil, {"--resume"}, {"--force"}} {
		if r := ggufreap(t, append(line, flags...)...); r.code != exitFailed || !strings.Contains(r.stderr, "is written in parts") {
			t.Errorf("one run, %q: exit %d\n%s", flags, r.code, r.stderr)
		}
	}
	if !maps.Equal(folder(t, out), before) {
		t.Error("what was refused changed the folder")
	}
}

// TestDryRunOfAPart has the shards of all parts, each once, in documents of their own.
func TestDryRunOfAPart(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	line := []string{"prune", "--keep", "16", "--shards", "5", "--dry-run", "--json", source}
	type document struct {
		FileBytes int64 `json:"file_bytes"`
		Shards    []struct {
			File string
			Size int64
		}
	}
	read := func(flags ...string) (d document) {
		if err := json.Unmarshal([]byte(succeed(t, append(line, flags...)...)), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	whole, bytes, shards := read(), int64(0), map[string]int64{}
	for _, part := range []string{"1/7", "2/7", "3/7", "4/7", "5/7", "6/7", "7/7"} {
		d := read("--only", part)
		bytes += d.FileBytes
		for _, s := range d.Shards {
			shards[s.File] = s.Size
		}
	}
	if bytes != whole.FileBytes || len(shards) != len(whole.Shards) {
		t.Errorf("parts have %d bytes in %d shards, the whole %d in %d", bytes, len(shards), whole.FileBytes, len(whole.Shards))
	}
}

// TestPartsOfAPin takes pins in one run and in parts.
func TestPartsOfAPin(t *testing.T) {
	source := writeModel(t, smallMoE(), 5)[0]
	said := []string{"--license", "mit", "--repo", "org/small", source}
	whole := filepath.Join(t.TempDir(), "whole.json.zst")
	succeed(t, append([]string{"pin", "-o", whole}, said...)...)
	for _, n := range []int{1, 2, 5, 9} {
		dir := t.TempDir()
		records, pin := filepath.Join(dir, "parts"), filepath.Join(dir, "joined.json.zst")
		for i := n; i > 0; i-- {
			if i < n {
				r := ggufreap(t, "assemble", "--wait", "0s", "-o", pin, records)
				if want := "--array=" + parts.Array(numbersTo(i)); r.code != exitDiffers || !strings.Contains(r.stdout, want) || exists(pin) {
					t.Errorf("%d of %d parts are there: exit %d, want 1 and %s\n%s%s", n-i, n, r.code, want, r.stdout, r.stderr)
				}
			}
			succeed(t, append([]string{"pin", "--only", fmt.Sprintf("%d/%d", i, n), "-o", records}, said...)...)
		}
		for range 2 {
			succeed(t, "assemble", "-o", pin, records)
		}
		if string(readFile(t, pin)) != string(readFile(t, whole)) {
			t.Errorf("the pin of %d parts is not that of one run", n)
		}
	}
}

// numbersTo returns the numbers from 1 to n.
func numbersTo(n int) []int {
	var numbers []int
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// TestPartsOfAVerification reads a release in parts, sound and with a byte flipped: the part
// that has the file finds it, with the tensor and the expert, and so do all parts together.
func TestPartsOfAVerification(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "prune", "--keep", "16", "--shards", "5", "-o", out, writeModel(t, smallK3(), 3)[0])
	digest := regexp.MustCompile(`pin digest +(\S+)`).FindStringSubmatch(succeed(t, "verify", out))[1]
	damaged := filepath.Join(out, "small-REAP16-00003-of-00005.gguf")
	for _, flipped := range []bool{false, true} {
		if flipped {
			data := readFile(t, damaged)
			data[len(data)/2] ^= 1
			writeFile(t, damaged, data)
		}
		for _, n := range []int{1, 3, 7, 20} {
			records, differ := filepath.Join(t.TempDir(), "checked"), 0
			for i := range n {
				r := ggufreap(t, "verify", "--only", fmt.Sprintf("%d/%d", i+1, n), "-o", records, out)
				switch {
				case r.code == exitDiffers && strings.Contains(r.stdout, filepath.Base(damaged)):
					differ++
				case r.code != exitOK:
					t.Fatalf("part %d of %d: exit %d\n%s%s", i+1, n, r.code, r.stdout, r.stderr)
				}
			}
			r := ggufreap(t, "assemble", "--wait", "0s", records)
			switch found := strings.Contains(r.stdout, "expert"); {
			case flipped && (differ != 1 || r.code != exitDiffers || !found):
				t.Errorf("%d parts, a flipped byte: %d parts found it, exit %d\n%s", n, differ, r.code, r.stdout)
			case !flipped && (differ != 0 || r.code != exitOK || !strings.Contains(r.stdout, digest) || !strings.Contains(r.stdout, fmt.Sprintf("nothing found, all %d parts", n))):
				t.Errorf("%d parts: %d parts found something, exit %d, want the pin digest %s\n%s%s", n, differ, r.code, digest, r.stdout, r.stderr)
			}
		}
	}
}

// TestPartDoneAgainSaysWhy removes a shard, or cuts it short, of a part that was done: the file is
// named once, in plain words.
func TestPartDoneAgainSaysWhy(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	out := filepath.Join(t.TempDir(), "parts")
	line := []string{"prune", "--keep", "16", "--only", "1/3", "-o", out, source}
	succeed(t, line...)
	shards, err := filepath.Glob(filepath.Join(out, "*.gguf"))
	if err != nil || len(shards) != 1 {
		t.Fatal(shards, err)
	}
	name := filepath.Base(shards[0])
	for want, harm := range map[string]func() error{
		fmt.Sprintf("done again: %q: ", name):           func() error { return os.Remove(shards[0]) },
		fmt.Sprintf("done again: %q has 9 bytes", name): func() error { return os.Truncate(shards[0], 9) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		r := ggufreap(t, line...)
		said := strings.ReplaceAll(r.stderr, `\"`, `"`)
		if r.code != exitOK || !strings.Contains(said, want) || strings.Contains(said, "stat") {
			t.Errorf("exit %d, want %q\n%s", r.code, want, said)
		}
	}
}

// TestPartsFromTheHub writes a release from the hub in one run and in parts: each part fetches
// what it writes, and the headers.
func TestPartsFromTheHub(t *testing.T) {
	h, _ := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	line := []string{"prune", "--keep", "24", "--shards", "6", "hf://org/K3"}
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	h.Reset()
	succeed(t, append(line, "-o", whole)...)
	all := h.Written.Load()
	want := folder(t, whole)
	const n = 4
	var fetched, most int64
	for i := range n {
		h.Reset()
		succeed(t, append(line, "--only", fmt.Sprintf("%d/%d", i+1, n), "-o", out)...)
		fetched += h.Written.Load()
		most = max(most, h.Written.Load())
	}
	succeed(t, "assemble", out)
	if !maps.Equal(folder(t, out), want) {
		t.Error("the release in parts is another one")
	}
	if fetched > all*5/4 || most > all/2 {
		t.Errorf("parts fetched %d bytes, the largest %d, one run %d", fetched, most, all)
	}
}
