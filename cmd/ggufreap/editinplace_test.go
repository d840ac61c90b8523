package main

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditInPlace changes a value of the same size where the model lies: the header differs from
// the old one there alone, and all else stays.
func TestEditInPlace(t *testing.T) {
	files := writeModel(t, smallK3(), 3)
	before := map[string][]byte{}
	read := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, path := range files {
		before[path] = read(path)
	}
	name := mustOpenModel(t, files[0]).Metadata().Text("general.name")
	other := strings.ToUpper(name[:1]) + name[1:]
	if other == name {
		other = strings.ToLower(name[:1]) + name[1:]
	}
	line := []string{"edit", "--in-place", "--no-provenance-keys", "--set", "general.name=" + other, files[0]}
	if said := succeed(t, append(line, "--dry-run")...); !strings.Contains(said, "the new header fits") || !bytes.Equal(read(files[0]), before[files[0]]) {
		t.Errorf("a dry run: %s", said)
	}
	succeed(t, line...)
	for i, path := range files {
		got, want := read(path), before[path]
		if i == 0 {
			want = bytes.Replace(want, []byte(name), []byte(other), 1)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("shard %d is not what it should be", i+1)
		}
	}
	if got := mustOpenModel(t, files[0]).Metadata().Text("general.name"); got != other {
		t.Errorf("the name is %q", got)
	}
	if entries, err := os.ReadDir(filepath.Dir(files[0])); err != nil || len(entries) != 3 {
		t.Errorf("left %v, %v", entries, err)
	}
	if said := succeed(t, line...); !strings.Contains(said, "nothing: the model says all of that already") {
		t.Errorf("again: %s", said)
	}
}

// TestEditInPlaceBesideDocuments refuses a model beside which a document of any name says a digest
// of its file, and no other.
func TestEditInPlaceBesideDocuments(t *testing.T) {
	t.Chdir(t.TempDir())
	model := writeModel(t, smallK3(), 1)[0]
	data := readText(t, model)
	sum, short := fmt.Sprintf("%x", sha256.Sum256([]byte(data))), fmt.Sprintf("%x", md5.Sum([]byte(data)))
	base := filepath.Base(model)
	other := "x" + base
	pin := func(path string) func() { return func() { succeed(t, "pin", "-o", path, model) } }
	text := func(path, text string) func() {
		return func() { writeText(t, filepath.Join(filepath.Dir(model), path), text) }
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(model), name) }
	for name, put := range map[string]func(){
		"X.pin.json.zst": pin(beside("X.pin.json.zst")),
		"any.json":       pin(beside("any.json")),
		"hashes":         func() { succeed(t, "pin", "--format", "gguf-hash", "-o", beside("hashes"), model) },
		"m.md5":          text("m.md5", short+"  "+base+"\n"),
		"SHA512SUMS":     text("SHA512SUMS", sum+sum+" *"+base+"\n"),
		"bsd.txt":        text("bsd.txt", "SHA256 ("+base+") = "+sum+"\n"),
		"tree.json":      text("tree.json", "[{\n\"path\": \""+base+"\",\n\"oid\": \""+sum+"\"}]\n"),
		"README.md":      text("README.md", "# Model\n| "+base+" | `"+sum+"` |\n"),
	} {
		put()
		if r := ggufreap(t, "edit", "--in-place", "--no-provenance-keys", "--rename", "general.name=general.nome", model); r.code != exitFailed || !strings.Contains(r.stderr, name+" says what bytes it has") {
			t.Errorf("%s: exit %d\n%s", name, r.code, r.stderr)
		}
		if err := os.Remove(beside(name)); err != nil {
			t.Fatal(err)
		}
	}
	if readText(t, model) != data {
		t.Error("the model was changed")
	}
	text("README.md", "# Model\nmade by "+sum[:40]+"\nrun "+base+"\n")()
	text("other.md5", short+"  "+other+"\n")()
	text("plan.json", `{"source": {"structure_digest": "`+sum+`"}}`)()
	succeed(t, "edit", "--in-place", "--no-provenance-keys", "--rename", "general.name=general.nome", model)
}

func TestEditInPlaceRefuses(t *testing.T) {
	files := writeModel(t, smallK3(), 3)
	release := filepath.Join(t.TempDir(), "release")
	succeed(t, "reshard", "--shards", "1", "-o", release, files[0])
	link := filepath.Join(t.TempDir(), "m.gguf")
	single := writeModel(t, smallK3(), 1)[0]
	if err := os.Link(single, link); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--set", "general.name=a name that is much longer than the one that was there before it", files[0]}, "does not fit in its place"},
		{[]string{"--set", "general.architecture=kimi-k3", files[0]}, "--force changes it"},
		{[]string{"--set", "general.url=x", "-o", "x", files[0]}, "--output has no meaning"},
		{[]string{"--set", "general.url=x", release}, "would no longer fit"},
		{[]string{"--no-provenance-keys", "--rename", "general.name=general.nome", link}, "has other names"},
		{[]string{files[0]}, "nothing was interrupted here"},
	} {
		r := ggufreap(t, append([]string{"edit", "--in-place"}, test.args...)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%q: exit %d, want %q\n%s", test.args, r.code, test.want, r.stderr)
		}
	}
}

// TestEditInPlaceNamesTheKeyThatHelps names --no-provenance-keys where the header fits with it,
// and only there.
func TestEditInPlaceNamesTheKeyThatHelps(t *testing.T) {
	file := writeModel(t, smallK3(), 1)[0]
	name := mustOpenModel(t, file).Metadata().Text("general.name")
	for value, helps := range map[string]bool{strings.Repeat("x", len(name)): true, strings.Repeat("x", 5000): false} {
		line := []string{"edit", "--in-place", "--dry-run", "--set", "general.name=" + value, file}
		r := ggufreap(t, line...)
		if r.code != exitFailed || !strings.Contains(r.stderr, "does not fit in its place") || strings.Contains(r.stderr, "--no-provenance-keys") != helps {
			t.Errorf("%d bytes: exit %d\n%s", len(value), r.code, r.stderr)
		}
		if r := ggufreap(t, append(line, "--no-provenance-keys")...); (r.code == exitOK) != helps {
			t.Errorf("%d bytes without the key: exit %d\n%s", len(value), r.code, r.stderr)
		}
	}
}

// TestEditInPlaceKeepsWhatVouches refuses a model beside which anything says what its bytes are,
// and leaves it as it is: a folder that is sound stays so.
func TestEditInPlaceKeepsWhatVouches(t *testing.T) {
	for _, name := range []string{"SHA256SUMS", "sha256sum.txt", "checksums.txt", "*.sha256", "bare.sha256", "pin.json.zst", "model.sig", "MANIFEST.sha256", "above/MANIFEST.sha256", "above/SHA256SUMS"} {
		file := writeModel(t, smallK3(), 1)[0]
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), filepath.Base(file))
		beside := filepath.Join(filepath.Dir(file), name)
		switch name {
		case "*.sha256":
			beside = file + ".sha256"
		case "bare.sha256":
			beside, line = file+".sha256", line[:64]
		case "above/MANIFEST.sha256", "above/SHA256SUMS":
			folder := filepath.Dir(file)
			beside = filepath.Join(filepath.Dir(folder), filepath.Base(name))
			line = line[:66] + filepath.Base(folder) + "/" + line[66:]
		case "pin.json.zst":
			succeed(t, "pin", "-o", beside, file)
		}
		if name != "pin.json.zst" {
			if err := os.WriteFile(beside, []byte(line), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		r := ggufreap(t, "edit", "--in-place", "--no-provenance-keys", "--rename", "general.name=general.nome", file)
		if r.code != exitFailed || !strings.Contains(r.stderr, "would no longer fit") || !strings.Contains(r.stderr, filepath.Base(beside)) {
			t.Errorf("%s: exit %d\n%s", name, r.code, r.stderr)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: the model was changed, %v", name, err)
		}
	}
	file := writeModel(t, smallK3(), 1)[0]
	other := fmt.Sprintf("%064x  other.gguf\n", 1)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "SHA256SUMS"), []byte(other), 0o666); err != nil {
		t.Fatal(err)
	}
	succeed(t, "edit", "--in-place", "--no-provenance-keys", "--rename", "general.name=general.nome", file) // a list of others is no matter
}

// TestEditInPlaceIsTakenBack finds what a killed run left: every command refuses the model, and
// the next edit gives it its old header back.
func TestEditInPlaceIsTakenBack(t *testing.T) {
	file := writeModel(t, smallK3(), 1)[0]
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head := want[:mustOpenModel(t, file).Files[0].DataOffset]
	sum := sha256.Sum256(head)
	for _, torn := range []int{4, 2000} { // a header that cannot be read, and one that can
		half := bytes.Clone(want)
		copy(half[torn:], make([]byte, 8))
		for name, data := range map[string][]byte{file: half, file + ".old-header": append(sum[:], head...)} {
			if err := os.WriteFile(name, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{file, filepath.Dir(file)} {
			if r := ggufreap(t, "inspect", path); r.code != exitFailed || !strings.Contains(r.stderr, "takes it back") {
				t.Errorf("%s: exit %d\n%s", path, r.code, r.stderr)
			}
		}
		for _, path := range []string{file, filepath.Dir(file)} {
			for _, line := range [][]string{{"verify", path}, {"verify", "--fast", path}, {"verify", "--source", path, path}} {
				if r := ggufreap(t, line...); r.code == exitOK || !strings.Contains(r.stdout+r.stderr, "takes it back") {
					t.Errorf("%q: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
				}
			}
		}
		if r := ggufreap(t, "edit", "--in-place", filepath.Dir(file)); r.code != exitOK || !strings.Contains(r.stderr, "was taken back") {
			t.Fatalf("exit %d\n%s", r.code, r.stderr)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) || exists(file+".old-header") {
			t.Errorf("it was not taken back: %v", err)
		}
	}
}
