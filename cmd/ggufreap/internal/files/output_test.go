package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOutputsThatAreARelease are refused with force too, and change nothing.
func TestOutputsThatAreARelease(t *testing.T) {
	dir := t.TempDir()
	sum := strings.Repeat("0", 64)
	mustWrite(t, filepath.Join(dir, "MANIFEST.sha256"), sum+"  a.gguf\n"+sum+"  plan.json\n")
	mustWrite(t, filepath.Join(dir, "plan.json"), "{}")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plan.json", "PLAN.json", "MANIFEST.sha256", "manifest.SHA256", "UNFINISHED.jsonl", "x.part", "x.gguf", "x.GGUF"} {
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(link, name), dir + "/./" + name} {
			if _, err := Write(path, true, nil, Bytes([]byte("new"))); err == nil {
				t.Errorf("%s was written", path)
			}
			if CheckOutput(path, true, nil) == nil {
				t.Errorf("%s was accepted", path)
			}
		}
	}
	if _, err := Write(filepath.Join(dir, "other.json"), false, nil, Bytes([]byte("new"))); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("the folder holds %v", entries)
	}
}

// TestOutputsInAFolder are told by any spelling of the folder, and before it is there.
func TestOutputsInAFolder(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.Mkdir(there, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"there", "new", "new/er"} {
		folder := filepath.Join(dir, folder)
		for _, path := range []string{folder + "/p", folder + "/../" + filepath.Base(folder) + "/p", strings.Replace(folder, dir, dir+"/link", 1) + "/p"} {
			if CheckApart(path, folder) == nil {
				t.Errorf("%s is apart from %s", path, folder)
			}
		}
		for _, path := range []string{folder + "/deeper/p", filepath.Dir(folder) + "/p", filepath.Join(dir, "link", "p2")} {
			if err := CheckApart(path, folder); err != nil && filepath.Dir(folder) != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// TestPartsOfKilledRuns removes what a killed run left, and nothing that a run is writing.
func TestPartsOfKilledRuns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pin.json")
	mustWrite(t, filepath.Join(dir, ".pin.json.abcdefgh.part"), "left")
	mustWrite(t, filepath.Join(dir, ".pin.json.abc.part"), "somebody else's")
	alive, err := createPart(path)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if _, err := Write(path, false, nil, Bytes([]byte("text"))); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) != 3 || !strings.Contains(strings.Join(names, " "), filepath.Base(alive.Name())) {
		t.Errorf("the folder holds %q", names)
	}
}
