package lists

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/manifest"
)

// oddName returns a file name of characters that trouble sums files.
func oddName(rng *rand.Rand) string {
	const odd = "ab .*\\()=#-\n\r\t~'\"\x01\x7f\xff\xc3\xa9$"
	for {
		name := make([]byte, 1+rng.IntN(12))
		for i := range name {
			name[i] = odd[rng.IntN(len(odd))]
		}
		if manifest.CheckFileName(string(name)) == nil {
			return string(name)
		}
	}
}

// TestSumsAgreeWithCoreutils gives odd names to sha256sum and to us: what we write
// it must accept, and what it writes we must read.
func TestSumsAgreeWithCoreutils(t *testing.T) {
	seed := uint64(20260812)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	var want []FileSum
	files := []string{}
	for len(want) < 200 {
		name := oddName(rng)
		if slices.Contains(files, name) {
			continue
		}
		data := fmt.Appendf(nil, "data of %q", name)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, FileSum{name, sha256.Sum256(data)})
		files = append(files, name)
	}
	slices.SortFunc(want, func(a, b FileSum) int { return strings.Compare(a.Name, b.Name) })

	var list bytes.Buffer
	if err := WriteSums(&list, want); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", "-")
	check.Dir, check.Stdin = dir, bytes.NewReader(list.Bytes())
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("seed %d: sha256sum refuses our list: %v\n%s", seed, err, out)
	}

	slices.Sort(files)
	for _, form := range [][]string{nil, {"--binary"}, {"--tag"}} {
		theirs := exec.Command("sha256sum", slices.Concat(form, []string{"--"}, files)...)
		theirs.Dir = dir
		out, err := theirs.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadSums(bytes.NewReader(out))
		if err != nil {
			t.Errorf("seed %d: sha256sum %v: %v", seed, form, err)
		} else if !slices.Equal(got, want) {
			t.Errorf("seed %d: sha256sum %v: the list reads differently", seed, form)
		}
		if form == nil && !bytes.Equal(out, list.Bytes()) {
			t.Errorf("seed %d: sha256sum and we write different lists", seed)
		}
	}
}
