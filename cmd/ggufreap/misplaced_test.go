package main

import (
	"os"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// TestFilesInTheWrongPlace gives each reader the files of every other kind: each is named, with
// where it goes.
func TestFilesInTheWrongPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	model := write(t, smallK3(), gguf.Split{})[0]
	succeed(t, "pin", "-o", "pin.json", model)
	succeed(t, "pin", "-o", "pin.json.zst", model)
	succeed(t, "plan", "--keep", "16", "-o", "plan.json", model)
	sum := strings.Repeat("0f", 32)
	writeFile(t, "npz", []byte("PK\x03\x04"+strings.Repeat("\x00", 22)+"\x0c\x00\x00\x00saliency.npy"))
	writeFile(t, "hotness.csv", []byte("layer,expert,count\n1,3,7\n"))
	writeFile(t, "tree.json", []byte(`[{"type":"file","oid":"1","size":1,"path":"a.gguf"}]`))
	writeFile(t, "sums", []byte(sum+"  a.gguf\n"))
	names := map[string]string{
		model: "a model", "pin.json": "a pin", "pin.json.zst": "a pin", "plan.json": "a plan", "npz": "scores",
		"hotness.csv": "scores", "tree.json": "a listing of the hub", "sums": "a list of SHA-256 sums",
	}
	for _, reader := range []struct {
		want string
		args []string // the file comes in place of "FILE"
		not  []string // kinds that it takes
	}{
		{"a plan", []string{"prune", "-o", "out", "--plan", "FILE", model}, []string{"a plan"}},
		{"a plan", []string{"plan", "--keep", "8", "--always-keep", "FILE", model}, []string{"a plan"}},
		{"a plan or scores", []string{"plan", "--keep", "8", "--compare", "FILE", model}, []string{"a plan", "scores"}},
		{"scores", []string{"plan", "--keep", "8", "--from", "FILE", model}, []string{"scores"}},
		{"a pin", []string{"plan", "--keep", "8", "--pin", "FILE", model}, []string{"a pin"}},
		{"a pin", []string{"prune", "-o", "out", "--keep", "8", "--source-pin", "FILE", model}, []string{"a pin"}},
		{"a pin or a list of digests", []string{"pin", "--check", "FILE", model}, []string{"a pin", "a listing of the hub", "a list of SHA-256 sums"}},
		{"a model", []string{"inspect", "FILE"}, []string{"a model"}},
	} {
		for file, name := range names {
			if strings.Contains(strings.Join(reader.not, ", "), name) {
				continue
			}
			var args []string
			for _, a := range reader.args {
				args = append(args, strings.ReplaceAll(a, "FILE", file))
			}
			said := refuse(t, file+": "+name+", want "+reader.want+"\n", args...)
			if !strings.Contains(said, "hint: ") {
				t.Errorf("%q has no hint:\n%s", args, said)
			}
			if _, err := os.Stat("out"); err == nil {
				t.Fatalf("%q wrote something", args)
			}
		}
	}
}

// TestMisusedReleaseFlags says what --card and -o take.
func TestMisusedReleaseFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 1)[0]
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--card", "README.md", "-o", "out", source}, `--card takes no file name, got "README.md"`},
		{[]string{"--card=README.md", "-o", "out", source}, `--card takes no value, got "README.md"`},
		{[]string{"-o", "-", source}, "a folder of this name is ./-"},
		{[]string{"-o", "out.gguf", source}, "-o names a folder"},
	} {
		r := ggufreap(t, append([]string{"prune", "--keep", "16"}, test.args...)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, test.want) || exists("out") || exists("-") {
			t.Errorf("%q: exit %d, want %q\n%s", test.args, r.code, test.want, r.stderr)
		}
	}
}
