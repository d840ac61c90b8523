package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// refuse runs the program, which must fail and say what is wanted, and returns what it says.
func refuse(t *testing.T, want string, args ...string) string {
	t.Helper()
	r := ggufreap(t, args...)
	if r.code != exitFailed || !strings.Contains(r.stderr, want) {
		t.Errorf("%q: exit %d, want %d and %q in\n%s", args, r.code, exitFailed, want, r.stderr)
	}
	return r.stderr
}

func TestNamesOfReleases(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	for name, want := range map[string]string{
		"a\nb": "hides or acts on", "a\x1b[2Jb": "hides or acts on", "a\u202eb": "hides or acts on", "a\xffb": "hides or acts on",
		"a\u3164b": "hides or acts on", "..": "hidden file", ".a": "hidden file", "-a": "taken for a flag", "../a": "it is a path", `a\b`: "it is a path",
		" a": "blank", "a ": "blank", ".gguf": "nothing is left", "a-00001-of-00002": "taken for a shard", "a-00002-of-00002.gguf": "taken for a shard",
		"": "--name has an empty value",
	} {
		refuse(t, want, "reshard", "--shards", "1", "--dry-run", "--name="+name, source)
		refuse(t, want, "prune", "--keep", "4", "--dry-run", "--name="+name, source)
	}
	for _, name := range []string{"a", "a.b..c", "模型", "a-00001-of-0002", "a b.gguf"} {
		out := succeed(t, "reshard", "--shards", "1", "--dry-run", "--name", name, source)
		if file := strings.TrimSuffix(name, ".gguf") + ".gguf"; !strings.Contains(out, "\n"+file+" ") {
			t.Errorf("%q: no file %q in\n%s", name, file, out)
		}
	}
}

// TestNamesOfSources takes no name from a source that --name could not give.
func TestNamesOfSources(t *testing.T) {
	t.Chdir(t.TempDir())
	whole := write(t, smallMoE(), gguf.Split{})[0]
	for file, tc := range map[string]struct{ reshard, prune string }{
		"m-00001-of-00003.GGUF": {reshard: "taken for a shard"}, // the shard's number stays in the stem
		".hid.gguf":             {"hidden file", "hidden file"},
		"-x.gguf":               {"taken for a flag", "taken for a flag"},
		" lead.gguf":            {"blank", "blank"},
		"trail .gguf":           {reshard: "blank"},
		"a\nb.gguf":             {"hides or acts on", "hides or acts on"},
	} {
		if err := os.Rename(whole, file); err != nil {
			t.Fatal(err)
		}
		whole = file
		path := "./" + file
		for _, test := range []struct {
			want string
			args []string
		}{
			{tc.reshard, []string{"reshard", "--shards", "1"}},
			{tc.reshard, []string{"reshard", "--shards", "2"}},
			{tc.prune, []string{"prune", "--keep", "4"}},
		} {
			if test.want == "" {
				succeed(t, append(test.args, "--dry-run", path)...)
				continue
			}
			for _, end := range [][]string{{"--dry-run", path}, {"-o", "out", path}} {
				said := refuse(t, test.want, append(test.args, end...)...)
				if !strings.Contains(said, "the source's name gives the files the stem ") || !strings.Contains(said, "hint: --name STEM") {
					t.Errorf("%q: said %s", file, said)
				}
			}
			if exists("out") {
				t.Fatalf("%q: left an output folder", file)
			}
		}
		succeed(t, "reshard", "--shards", "2", "--name", "good", "-o", "out", path)
		succeed(t, "verify", "out")
		if err := os.RemoveAll("out"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlatScoresHint wants the flag named where it is all that is missing.
func TestFlatScoresHint(t *testing.T) {
	t.Chdir(t.TempDir())
	flat := smallMoE()
	for i := range flat.Tensors {
		if strings.HasSuffix(flat.Tensors[i].Name, "ffn_gate_inp.weight") {
			flat.Tensors[i].Fill = gguftest.Fill{}
			flat.Tensors[i].Data = make([]byte, 4*32*8)
		}
	}
	source := write(t, flat, gguf.Split{})[0]
	text := refuse(t, "hint: --allow-flat", "plan", "--keep", "4", "--criterion", "router-norm", source)
	if !strings.Contains(text, "error: small: layers 1-2: ") {
		t.Errorf("the model is not named:\n%s", text)
	}
	succeed(t, "plan", "--keep", "4", "--criterion", "router-norm", "--allow-flat", source)
}

// TestNamesWithoutADigest are refused by what takes digests, before anything is written.
// inspect counts them and reshard copies them.
func TestNamesWithoutADigest(t *testing.T) {
	t.Chdir(t.TempDir())
	spec := smallMoE()
	spec.Tensors = slices.Insert(spec.Tensors, 0, vector("token\tembd.weight", 9), vector("b\nc", 9))
	spec.Metadata.Set("test.\x1f", gguf.Uint8Value(1))
	source := write(t, spec, gguf.Split{})[0]
	whole, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const fault = `small.gguf: tensor "token\tembd.weight": the name has the control character "\t", so no digest is defined for it; 2 tensors have such names`
	for _, args := range [][]string{
		{"prune", "--keep", "4", "-o", "out", source}, {"prune", "--keep", "4", "--dry-run", source},
		{"plan", "--keep", "4", source}, {"pin", source}, {"diff", source, source},
	} {
		text := refuse(t, "error: "+fault, args...)
		if strings.Contains(text, "go on") || !strings.Contains(text, "hint: inspect and reshard take ") {
			t.Errorf("%q: %s", args, text)
		}
	}
	if exists("out") {
		t.Error("the folder was made")
	}
	for _, command := range []string{"inspect", "verify"} {
		out := succeed(t, command, source)
		for _, want := range []string{fault, `small.gguf: key "test.\x1f": the name has the control character "\x1f"`} {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not say %s:\n%s", command, want, out)
			}
		}
	}
	if r := ggufreap(t, "verify", "--strict", source); r.code != exitDiffers {
		t.Errorf("verify --strict: exit %d", r.code)
	}

	succeed(t, "reshard", "--shards", "3", "--dry-run", source)
	r := ggufreap(t, "reshard", "--shards", "3", "-o", "out", source)
	if want := `warning: the release gets no pin.json.zst: tensor name "token\tembd.weight" has the control character`; r.code != exitOK || !strings.Contains(r.stderr, want) {
		t.Errorf("reshard: exit %d, want %s in\n%s", r.code, want, r.stderr)
	}
	if !strings.Contains(r.stdout, "pin digest      none: ") || exists(filepath.Join("out", "pin.json.zst")) {
		t.Errorf("reshard says\n%s", r.stdout)
	}
	succeed(t, "verify", "out")
	var doc struct {
		WeightsDigest *string `json:"weights_digest"`
	}
	if err := json.Unmarshal([]byte(succeed(t, "reshard", "--json", "--shards", "1", "-o", "back", "out")), &doc); err != nil || doc.WeightsDigest != nil {
		t.Errorf("weights digest %v (%v), want null", doc.WeightsDigest, err)
	}
	if got, err := os.ReadFile(filepath.Join("back", "small.gguf")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%v, or not the file that was split", err)
	}
}

// TestVerifyMissesThePlan verifies a release whose metadata names a plan, and whose folder has
// none. Only --strict calls that wrong.
func TestVerifyMissesThePlan(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	succeed(t, "prune", "--keep", "4", "-o", "out", source)
	succeed(t, "reshard", "--shards", "1", "-o", "merged", "out")
	if err := os.Remove(filepath.Join("merged", "plan.json")); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join("merged", manifest.SumsName), programtest.ListFolder(t, "merged"))
	if out := succeed(t, "verify", "merged"); !strings.Contains(out, "not checked     plan.json is not there") {
		t.Errorf("nothing is said of the plan:\n%s", out)
	}
	if r := ggufreap(t, "verify", "--strict", "merged"); r.code != exitDiffers || !strings.Contains(r.stdout, "plan            plan.json: is not there") {
		t.Errorf("--strict: exit %d\n%s", r.code, r.stdout)
	}
	if r := ggufreap(t, "verify", "--strict", "out"); r.code != exitOK {
		t.Errorf("a fresh release: exit %d\n%s", r.code, r.stdout)
	}
}

func TestJSONCountsShardsFromZero(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{Shards: 2})
	var doc struct{ Tensors []struct{ Shard int } }
	if err := json.Unmarshal([]byte(succeed(t, "inspect", "--json", "--tensors", ".")), &doc); err != nil {
		t.Fatal(err)
	}
	table := strings.Split(strings.TrimSpace(succeed(t, "inspect", "--tensors", ".")), "\n")[1:]
	for i, line := range table {
		if want := fmt.Sprint(doc.Tensors[i].Shard + 1); strings.Fields(line)[0] != want {
			t.Errorf("line %d: shard %s, want %s", i, strings.Fields(line)[0], want)
		}
	}
	if !strings.Contains(succeed(t, "help", "inspect"), "count from 0") {
		t.Error("the help does not say so")
	}
}

// TestFilesOfAWrongCount inspects three shards of which each says that it is the only one.
func TestFilesOfAWrongCount(t *testing.T) {
	t.Chdir(t.TempDir())
	paths := write(t, smallMoE(), gguf.Split{Shards: 3})
	key := "split.count" + "\x02\x00\x00\x00"
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeText(t, path, strings.Replace(string(data), key+"\x03", key+"\x01", 1))
	}
	r := ggufreap(t, "inspect", paths[0])
	if !strings.Contains(r.stdout, "files           3 shards, ") {
		t.Errorf("got\n%s", r.stdout)
	}
}

// TestPresetIsOfferedWhereItFits looks at what the hint names when nothing was chosen.
func TestPresetIsOfferedWhereItFits(t *testing.T) {
	for count, want := range map[int]string{896: "--preset reap568, ", 32: "", 568: ""} {
		if got := presetFor(&reap.Experts{Count: count}); got != want {
			t.Errorf("a model with %d experts is offered %q, want %q", count, got, want)
		}
	}
}
