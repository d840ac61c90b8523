package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// A patient is a folder that is damaged and repaired over and over.
type patient struct {
	t    *testing.T
	dir  string
	want map[string]string
}

func newPatient(t *testing.T, dir string) *patient {
	t.Helper()
	return &patient{t, dir, folder(t, dir)}
}

// reset gives the folder its right files, and no others.
func (p *patient) reset() {
	p.t.Helper()
	for name := range folder(p.t, p.dir) {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			p.t.Fatal(err)
		}
	}
	for name, data := range p.want {
		programtest.WriteText(p.t, filepath.Join(p.dir, name), data)
	}
}

// change resets the folder and writes one file of it anew.
func (p *patient) change(name string, how func(data []byte) []byte) {
	p.t.Helper()
	p.reset()
	programtest.WriteText(p.t, filepath.Join(p.dir, name), string(how([]byte(p.want[name]))))
}

// repair repairs the folder, compares every byte, and returns what was printed.
func (p *patient) repair(args ...string) string {
	p.t.Helper()
	out := succeed(p.t, append(append([]string{"repair"}, args...), p.dir)...)
	p.check()
	return out
}

// check compares the folder with what it should hold.
func (p *patient) check() {
	p.t.Helper()
	got := folder(p.t, p.dir)
	for name := range p.want {
		if got[name] != p.want[name] {
			p.t.Errorf("%s is not what it was: %d bytes, want %d", name, len(got[name]), len(p.want[name]))
		}
	}
	if len(got) != len(p.want) {
		p.t.Errorf("the folder holds %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(p.want)))
	}
}

// models lists the files of the model.
func (p *patient) models() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.want)), func(name string) bool { return !gguf.IsModelFile(name) })
}

// fileDamages are what happens to files; nil for one that is gone.
var fileDamages = map[string]func([]byte) []byte{
	"first byte":  func(d []byte) []byte { d[0] ^= 1; return d },
	"header":      func(d []byte) []byte { clear(d[40:200]); return d },
	"last byte":   func(d []byte) []byte { d[len(d)-1] ^= 1; return d },
	"cut":         func(d []byte) []byte { return d[:len(d)/2] },
	"cut by 1":    func(d []byte) []byte { return d[:len(d)-1] },
	"empty":       func(d []byte) []byte { return nil },
	"longer":      func(d []byte) []byte { return append(d, "leftover"...) },
	"longer, bad": func(d []byte) []byte { d[len(d)/2] ^= 1; return append(d, "leftover"...) },
	"zeros":       func(d []byte) []byte { clear(d); return d },
}

// everyDamage tries all damages of all files, and a file that is gone.
func (p *patient) everyDamage(args ...string) {
	p.t.Helper()
	for _, name := range p.models() {
		for what, how := range fileDamages {
			p.change(name, how)
			if out := p.repair(args...); !strings.Contains(out, "wrong ") {
				p.t.Errorf("%s, %s: nothing was found\n%s", name, what, out)
			}
		}
		p.reset()
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			p.t.Fatal(err)
		}
		if out := p.repair(args...); !strings.Contains(out, "is not there") {
			p.t.Errorf("%s, gone: prints\n%s", name, out)
		}
	}
}

// TestRepairFromTheUnprunedModel mends a release by the model that it was pruned from, which is
// here or far away: whatever is wrong, headers and whole files too. Far away one byte costs one
// expert.
func TestRepairFromTheUnprunedModel(t *testing.T) {
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	pin, out := filepath.Join(dir, "source.json"), filepath.Join(dir, "out")
	succeed(t, "pin", "-o", pin, files[0])
	succeed(t, "prune", "--keep", "12", "--criterion", "seeded-random", "--shards", "3", "--source-pin", pin, "-o", out, files[0])
	p := newPatient(t, out)
	p.everyDamage("--from", files[0])

	parent, release := openModel(t, files[0]), openModel(t, out)
	var headers int64
	for _, f := range parent.Files {
		headers += f.DataOffset
	}
	for name, wrong := range map[string]int64{
		"blk.2.ffn_up_exps.weight":   release.Tensor("blk.2.ffn_up_exps.weight").Size / 12,
		"blk.1.ffn_down_exps.weight": release.Tensor("blk.1.ffn_down_exps.weight").Size / 12,
		"blk.1.ffn_gate_inp.weight":  release.Tensor("blk.1.ffn_gate_inp.weight").Size / 12,
		"blk.2.exp_probs_b.bias":     release.Tensor("blk.2.exp_probs_b.bias").Size,
		"output_norm.weight":         release.Tensor("output_norm.weight").Size,
	} {
		tensor := release.Tensor(name)
		p.change(filepath.Base(tensor.File().Name), func(d []byte) []byte {
			d[tensor.DataOffset()+tensor.Size-2] ^= 8
			return d
		})
		h.Reset()
		printed := p.repair("--from", "hf://org/K3")
		if got := h.Written.Load(); got > wrong+headers*11/10 {
			t.Errorf("%s: %d bytes travelled for %d, and headers of %d", name, got, wrong, headers)
		}
		if want := "taken " + text.Count(wrong, "byte") + " in 1 range from hf://org/K3"; !strings.Contains(squeeze(printed), want) {
			t.Errorf("%s: want %q in\n%s", name, want, printed)
		}
	}

	// Which experts were kept the source's pin tells too, but not all that stands in the first
	// header; without both nobody knows.
	for _, plan := range []string{"{", ""} {
		if p.want["plan.json"] = plan; plan == "" {
			delete(p.want, "plan.json")
		}
		for _, name := range p.models() {
			for _, what := range []string{"last byte", "cut", "longer, bad", "header"} {
				if what != "header" || name != p.models()[0] {
					p.change(name, fileDamages[what])
					p.repair("--from", files[0])
				}
			}
		}
		p.change(p.models()[0], fileDamages["header"])
		refuse(t, "cannot be made anew", "repair", "--from", files[0], out)
	}
	delete(p.want, "source.pin.json.zst")
	p.change(p.models()[0], fileDamages["last byte"])
	refuse(t, "nothing says which", "repair", "--from", files[0], out)
	if got := folder(t, out)[p.models()[0]]; got != string(fileDamages["last byte"]([]byte(p.want[p.models()[0]]))) {
		t.Error("a refused repair has written")
	}
}

// TestRepairOfAnEditedRelease cannot make the header of a release anew to which flags have added
// keys, says so, and mends all else.
func TestRepairOfAnEditedRelease(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 3)
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "prune", "--keep", "16", "--shards", "2", "--set", "general.url=x", "-o", out, files[0])
	p := newPatient(t, out)
	first, second := p.models()[0], p.models()[1]
	for _, what := range []string{"last byte", "cut", "longer", "longer, bad"} {
		for _, name := range []string{first, second} {
			p.change(name, fileDamages[what])
			p.repair("--from", files[0])
		}
	}
	for _, in := range []string{"kimi-k3", "general.architecture", "tokenizer.ggml.tokens", "output_norm.weight"} {
		p.change(first, func(d []byte) []byte { d[bytes.Index(d, []byte(in))+3] ^= 1; return d })
		if printed := p.repair("--from", files[0]); !strings.Contains(printed, "the header is made anew") {
			t.Errorf("%s: prints\n%s", in, printed)
		}
	}
	for _, what := range []string{"header", "empty"} {
		p.change(first, fileDamages[what])
		damaged := folder(t, out)
		refuse(t, "cannot be made anew", "repair", "--from", files[0], out)
		if !maps.Equal(folder(t, out), damaged) {
			t.Errorf("%s: a refused repair has written", what)
		}
	}
}

// TestRepairFromOtherFiles mends a model by the same tensors in more or fewer files, under other
// names, and in a folder whose own files have other names.
func TestRepairFromOtherFiles(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 3)
	dir := t.TempDir()
	pin, other := filepath.Join(dir, "pin.json"), filepath.Join(dir, "other")
	succeed(t, "pin", "-o", pin, files[0])
	p := newPatient(t, filepath.Dir(files[0]))
	for _, shards := range []string{"1", "2", "5"} {
		succeed(t, "reshard", "--shards", shards, "--name", "other", "-o", other+shards, files[0])
		p.everyDamage("--pin", pin, "--from", other+shards)
	}
	renamed := filepath.Join(dir, "renamed")
	if err := os.Mkdir(renamed, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, name := range p.models() {
		programtest.WriteText(t, filepath.Join(renamed, gguf.ShardName("mine", i, 3)), p.want[name])
	}
	p.everyDamage("--pin", pin, "--from", renamed)
	q := newPatient(t, renamed)
	p.reset()
	q.everyDamage("--pin", pin, "--from", files[0])

	// The pin of a copy that is cut otherwise has no sums of these files: their own headers tell,
	// or those of a copy.
	pinned := filepath.Join(other+"2", "pin.json.zst")
	p.everyDamage("--pin", pinned, "--from", renamedAs(t, p))
	p.change(p.models()[1], fileDamages["last byte"])
	if printed := p.repair("--pin", pinned, "--from", other+"5"); !strings.Contains(printed, "no sum of the files is known") || !strings.Contains(printed, "the header is taken as right") {
		t.Errorf("prints\n%s", printed)
	}
	p.change(p.models()[1], fileDamages["longer"])
	damaged := folder(t, p.dir)
	if r := ggufreap(t, "repair", "--pin", pinned, "--from", other+"5", p.dir); !maps.Equal(folder(t, p.dir), damaged) {
		t.Errorf("what nothing shows to be surplus was cut: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// renamedAs copies the right files of a patient elsewhere, under their names.
func renamedAs(t *testing.T, p *patient) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range p.models() {
		programtest.WriteText(t, filepath.Join(dir, name), p.want[name])
	}
	return dir
}

// TestRepairBySums mends a folder of which only the list of sums is there: a file that is too long
// is cut and not fetched, and a wrong one is fetched beside itself. A copy with other bytes costs
// nothing.
func TestRepairBySums(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 3)
	dir := filepath.Dir(files[0])
	programtest.WriteText(t, filepath.Join(dir, manifest.SumsName), programtest.ListFolder(t, dir))
	p := newPatient(t, dir)
	good := renamedAs(t, p)
	p.everyDamage("--from", good)
	name := p.models()[1]
	p.change(name, fileDamages["longer"])
	if out := p.repair("--from", good); !strings.Contains(out, "has 8 bytes too many behind its end") || !strings.Contains(squeeze(out), "result 0 bytes") {
		t.Errorf("prints\n%s", out)
	}
	if err := programtest.Flip(filepath.Join(good, name), -1); err != nil {
		t.Fatal(err)
	}
	p.change(name, fileDamages["cut"])
	damaged := folder(t, dir)
	refuse(t, "it is damaged too, or another one", "repair", "--from", good, dir)
	if got := folder(t, dir); got[name] != damaged[name] || len(got) > len(damaged)+1 {
		t.Errorf("a copy that is damaged too has changed files: now %q", slices.Sorted(maps.Keys(got)))
	}
	// The next one takes over.
	if out := p.repair("--from", good, "--from", renamedAs(t, p)); !strings.Contains(out, "was passed over where it could not help") {
		t.Errorf("prints\n%s", out)
	}
}

// TestRepairFromSeveralSources asks the next source for what one has not got, and keeps every good
// byte where none has it.
func TestRepairFromSeveralSources(t *testing.T) {
	files := programtest.WriteModel(t, programtest.WideExperts(), 3)
	dir := filepath.Dir(files[0])
	succeed(t, "pin", "-o", filepath.Join(dir, manifest.PinName), files[0])
	p := newPatient(t, dir)
	tensor := openModel(t, files[0]).Tensor("blk.2.ffn_up_exps.weight")
	name, at := filepath.Base(tensor.File().Name), int(tensor.DataOffset()+5*tensor.Size/32)
	bad, worse, good := renamedAs(t, p), renamedAs(t, p), renamedAs(t, p)
	for i, other := range []string{bad, worse} {
		if err := programtest.Flip(filepath.Join(other, name), at+100*(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(d []byte) []byte { d[at] ^= 1; d[at+tensor2(tensor)] ^= 1; return d }
	p.change(name, flip)
	out := p.repair("--from", bad, "--from", worse, "--from", good)
	for _, want := range []string{"1 range from " + bad, "1 range from " + good, worse + " was passed over"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	p.change(name, flip)
	refuse(t, "expert 5", "repair", "--from", bad, "--from", worse, dir)
	lost := 0
	for i, b := range []byte(folder(t, dir)[name]) {
		if b != p.want[name][i] {
			lost++
		}
	}
	if lost > 2 {
		t.Errorf("%d bytes are wrong where 2 were", lost)
	}
	out = p.repair("--from", filepath.Join(dir, "nowhere"), "--from", good)
	if strings.Contains(out, "nothing is wrong") {
		t.Errorf("the run that was refused has mended what it could not\n%s", out)
	}
}

// tensor2 is how far the next expert but one is.
func tensor2(t *gguf.Tensor) int { return int(2 * t.Size / 32) }

// TestRepairWritesThroughNoLink gives the folder a file of its own in place of a link into a cache
// that others share, of one that leads nowhere, and of a file with another name. What is in the
// cache stays as it is.
func TestRepairWritesThroughNoLink(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 3)
	dir := filepath.Dir(files[0])
	pin := filepath.Join(t.TempDir(), "pin.json")
	succeed(t, "pin", "-o", pin, files[0])
	programtest.WriteText(t, filepath.Join(dir, manifest.SumsName), programtest.ListFolder(t, dir))
	p := newPatient(t, dir)
	good, cache := renamedAs(t, p), t.TempDir()
	name := p.models()[1]
	for _, how := range []string{"last byte", "longer", "cut", "header"} {
		for _, truth := range [][]string{{"--pin", pin}, nil} {
			for what, link := range map[string]func(blob, path string) error{"link": os.Symlink, "hard link": os.Link} {
				p.reset()
				blob, path := filepath.Join(cache, "blob"), filepath.Join(dir, name)
				damaged := fileDamages[how]([]byte(p.want[name]))
				programtest.WriteText(t, blob, string(damaged))
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := link(blob, path); err != nil {
					t.Fatal(err)
				}
				p.repair(append(slices.Clone(truth), "--from", good)...)
				if !bytes.Equal(programtest.ReadFile(t, blob), damaged) {
					t.Errorf("%s, %s, %s: the file in the cache was written to", what, how, truth)
				}
				if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s, %s, %s: %v, %v", what, how, truth, info.Mode(), err)
				}
				p.reset()
			}
		}
	}
	for _, truth := range [][]string{{"--pin", pin}, nil} {
		p.reset()
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(cache, "nowhere"), path); err != nil {
			t.Fatal(err)
		}
		p.repair(append(slices.Clone(truth), "--from", good)...)
		if exists(filepath.Join(cache, "nowhere")) {
			t.Errorf("%s: what a link led to was made", truth)
		}
	}
}

// TestRepairKeepsOtherModels refuses to make another model of a sound one, by whatever mistake.
func TestRepairKeepsOtherModels(t *testing.T) {
	h := programtest.OnEmptyHub(t)
	good := programtest.WriteModel(t, programtest.SmallK3(), 3)
	spec := programtest.SmallK3()
	spec.Seed++
	other := programtest.WriteModel(t, spec, 3)
	moe := programtest.WriteModel(t, programtest.SmallMoE(), 3)
	pin := filepath.Join(t.TempDir(), "pin.json")
	succeed(t, "pin", "-o", pin, good[0])
	for _, tc := range []struct {
		dir, words string
		args       []string
	}{
		{filepath.Dir(other[0]), "is not a damaged file but another one", []string{"--pin", pin, "--from", filepath.Dir(good[0])}},
		{filepath.Dir(moe[0]), "is not a damaged file but another one", []string{"--pin", pin, "--from", filepath.Dir(good[0])}},
		{filepath.Dir(good[0]), "is not what the pin is of", []string{"--pin", pin, "--from", filepath.Dir(moe[0])}},
		{filepath.Dir(good[0]), "is the good copy itself", []string{"--pin", pin, "--from", filepath.Dir(good[0])}},
	} {
		before := folder(t, tc.dir)
		refuse(t, tc.words, append(append([]string{"repair"}, tc.args...), tc.dir)...)
		if !maps.Equal(folder(t, tc.dir), before) {
			t.Errorf("%s: files were changed", tc.words)
		}
	}
	h.AddFolder(t, "org/small", "", filepath.Dir(good[0])) // under the same names
	small := folder(t, filepath.Dir(moe[0]))
	refuse(t, "is not a damaged file but another one", "repair", "--from", "hf://org/small", filepath.Dir(moe[0]))
	if !maps.Equal(folder(t, filepath.Dir(moe[0])), small) {
		t.Error("files were changed by sums alone")
	}
	// The hub has another revision than the one of which the list is.
	h.AddFolder(t, "org/K3", "", filepath.Dir(other[0]))
	dir := filepath.Dir(good[0])
	programtest.WriteText(t, filepath.Join(dir, manifest.SumsName), programtest.ListFolder(t, dir))
	before := folder(t, dir)
	refuse(t, "one of them is about another model", "repair", "--from", "hf://org/K3", dir)
	if !maps.Equal(folder(t, dir), before) {
		t.Error("files were changed")
	}
}

// squeeze makes one space of several, for words in columns.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestRepairOfRewrittenTables mends tables of expert ids, which pruning writes anew, by the source.
func TestRepairOfRewrittenTables(t *testing.T) {
	spec, err := gguftest.Architecture("deepseek4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := programtest.WriteModel(t, spec, 2)
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "prune", "--keep", "12", "--criterion", "router-norm", "--remap-dropped", "nearest-kept", "-o", out, files[0])
	p, tables := newPatient(t, out), 0
	for _, tensor := range openModel(t, out).Tensors() {
		if strings.Contains(tensor.Name, "tid2eid") {
			tables++
			p.change(filepath.Base(tensor.File().Name), func(d []byte) []byte { d[tensor.DataOffset()] ^= 1; return d })
			if printed := p.repair("--from", files[0]); !strings.Contains(printed, tensor.Name) {
				t.Errorf("want %s in\n%s", tensor.Name, printed)
			}
		}
	}
	if tables == 0 {
		t.Fatal("the model has no table")
	}
	p.everyDamage("--from", files[0])
	pin := filepath.Join(t.TempDir(), "source.pin.json")
	succeed(t, "pin", "-o", pin, files[0])
	delete(p.want, "plan.json")
	p.want["source.pin.json.zst"] = string(programtest.ReadFile(t, pin))
	p.change(p.models()[0], fileDamages["last byte"])
	p.repair("--from", files[0])
}

// TestRepairBesideDamagedDocuments says of a pin and a list that cannot be read what helps, and
// leaves files that are not the model's alone.
func TestRepairBesideDamagedDocuments(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 2)
	dir := filepath.Dir(files[0])
	programtest.WriteText(t, filepath.Join(dir, manifest.SumsName), programtest.ListFolder(t, dir))
	p := newPatient(t, dir)
	good, name := renamedAs(t, p), p.models()[0]
	p.want["other-00001-of-00002.gguf"], p.want["notes.txt"] = "no model", "text"
	p.change(name, fileDamages["last byte"])
	if out := p.repair("--from", good); !strings.Contains(squeeze(out), "not checked MANIFEST.sha256, notes.txt, other-00001-of-00002.gguf") {
		t.Errorf("prints\n%s", out)
	}
	p.change(name, fileDamages["last byte"])
	writeFile(t, filepath.Join(dir, manifest.PinName), []byte("{"))
	r := ggufreap(t, "repair", "--from", good, dir)
	if r.code != exitFailed || !strings.Contains(r.stderr, "--pin FILE names a sound one") {
		t.Errorf("a damaged pin: exit %d, %s", r.code, r.stderr)
	}
	p.change(name, fileDamages["last byte"])
	writeFile(t, filepath.Join(dir, manifest.SumsName), []byte("half a line"))
	refuse(t, manifest.SumsName, "repair", "--from", good, dir)
	p.change(name, fileDamages["last byte"])
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
		t.Fatal(err)
	}
	refuse(t, "not a regular file", "repair", "--from", good, dir)
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
