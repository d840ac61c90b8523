package proof

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

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
)

// proofFolder makes a folder with a source of nine shards and its pin.
func proofFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if _, err := programtest.SmallK3().Write("source", gguf.Split{Shards: 9}); err != nil {
		t.Fatal(err)
	}
	programtest.Succeed(t, "pin", "-o", "source.pin.json.zst", "source")
}

// shuffledPlan keeps 16 of 32 experts out of order.
const shuffledPlan = `{"1":[31,2,17,4,5,6,7,8,9,10,11,12,13,14,15,0],"2":[30,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29]}`

// TestPruneHoldsTheSourceAgainstItsPin changes one byte of the source after it was pinned.
func TestPruneHoldsTheSourceAgainstItsPin(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "plan.json", shuffledPlan)
	prune := func(out string) programtest.Result {
		return programtest.Run(t, "prune", "--plan", "plan.json", "--source-pin", "source.pin.json.zst", "--shards", "5", "-o", out, "source")
	}
	if r := prune("good"); r.Code != programtest.OK || !strings.Contains(r.Stdout, "every one that was read is the pinned one") {
		t.Fatalf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	m := programtest.OpenModel(t, "source")
	for what, test := range map[string]struct {
		tensor string
		expert int // NoExpert for a whole tensor
		stops  bool
	}{
		"a kept expert":      {"blk.1.ffn_up_exps.weight", 17, true},
		"a kept router row":  {"blk.2.ffn_gate_inp.weight", 30, true},
		"a kept bias":        {"blk.2.exp_probs_b.bias", 1, true},
		"a dropped expert":   {"blk.1.ffn_up_exps.weight", 1, false},
		"a tensor":           {"blk.0.ffn_up.weight", manifest.NoExpert, true},
		"the last expert":    {"blk.2.ffn_down_exps.weight", 29, true},
		"a dropped bias":     {"blk.2.exp_probs_b.bias", 0, false},
		"the last of a file": {"output.weight", manifest.NoExpert, true},
	} {
		t.Run(what, func(t *testing.T) {
			tensor := m.Tensor(test.tensor)
			at := tensor.DataOffset()
			if test.expert != manifest.NoExpert {
				at += int64(test.expert) * tensor.Size / 32
			}
			file := tensor.File().Name
			if err := programtest.Flip(file, int(at)); err != nil {
				t.Fatal(err)
			}
			defer programtest.Flip(file, int(at))
			out := strings.ReplaceAll(what, " ", "-")
			r := prune(out)
			place := fmt.Sprintf("%s: tensor %q", file, test.tensor)
			if test.expert != manifest.NoExpert {
				place += fmt.Sprintf(": expert %d", test.expert)
			}
			switch {
			case !test.stops && r.Code != programtest.OK:
				t.Errorf("exit %d, %s", r.Code, r.Stderr)
			case test.stops && (r.Code != programtest.Failed || !strings.Contains(r.Stderr, place+": ") || !strings.Contains(r.Stderr, "the source's pin says")):
				t.Errorf("exit %d, want %q in %s", r.Code, place, r.Stderr)
			}
			if _, err := os.Stat(filepath.Join(out, manifest.SumsName)); (err == nil) == test.stops {
				t.Errorf("manifest: %v", err)
			}
		})
	}
}

func TestPruneRefusesOtherPins(t *testing.T) {
	proofFolder(t)
	other := programtest.SmallK3().Clone()
	other.Name = "other"
	other.Metadata.Set("tokenizer.chat_template", gguf.TextValue("another"))
	programtest.Write(t, other, gguf.Split{})
	programtest.Succeed(t, "pin", "-o", "other.pin.json", "other.gguf")
	seeded := gguftest.K3(gguftest.K3Options{Name: "seeded", Experts: 32, Used: 4, Layers: 3, Seed: 9})
	programtest.Write(t, seeded, gguf.Split{})
	programtest.Succeed(t, "pin", "-o", "seeded.pin.json", "seeded.gguf")
	programtest.Succeed(t, "plan", "--keep", "16", "--pin", "seeded.pin.json", "-o", "seeded.plan.json", "seeded.gguf")
	programtest.WriteText(t, "there.json", "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--keep", "16", "--source-pin", "other.pin.json"}, `other.pin.json: the pin of another model, "other": key "tokenizer.chat_template"`},
		{[]string{"--keep", "16", "--source-pin", "source.pin.json.zst", "--pin-source", "x.json"}, "contradict each other"},
		{[]string{"--keep", "16", "--pin-source", "there.json"}, "output there.json exists"},
		{[]string{"--keep", "16", "--pin-source", "source/small-00001-of-00009.gguf", "--force"}, "is the source"},
		{[]string{"--plan", "seeded.plan.json", "--source-pin", "source.pin.json.zst"}, "made for other weights"},
		{[]string{"--keep", "16", "--source-pin", "none.json"}, "none.json: no such file"},
	} {
		args := slices.Concat([]string{"prune"}, tc.args, []string{"-o", "out", "source"})
		r := programtest.Run(t, args...)
		if r.Code != programtest.Failed || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%q: exit %d, want %q in %s", tc.args, r.Code, tc.want, r.Stderr)
		}
		if _, err := os.Stat("out"); err == nil {
			t.Errorf("%q: an output folder was left behind", tc.args)
		}
	}
}

// TestPrunePinsItsSource wants the pin that pin makes, from the pass that prunes, and the
// release that prune writes without it.
func TestPrunePinsItsSource(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "shuffled.json", shuffledPlan)
	want, err := os.ReadFile("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	for name, choice := range map[string][]string{
		"sorted":   {"--keep", "16"},
		"all":      {"--keep", "32"},
		"shuffled": {"--plan", "shuffled.json"},
	} {
		for _, workers := range []string{"1", "8"} {
			args := slices.Concat([]string{"prune", "--shards", "7", "--workers", workers}, choice)
			dir := name + workers
			programtest.Succeed(t, append(args, "-o", dir, "source")...)
			out := programtest.Succeed(t, append(args, "--pin-source", dir+".pin.json.zst", "--no-source-pin", "-o", dir+"-pinned", "source")...)
			if !strings.Contains(out, "pinned as they were read, in "+dir+".pin.json.zst") {
				t.Errorf("%s: %s", dir, out)
			}
			got, err := os.ReadFile(dir + ".pin.json.zst")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: another pin of the source", dir)
			}
			a, b := programtest.Folder(t, dir), programtest.Folder(t, dir+"-pinned")
			for file, data := range a {
				if b[file] != data {
					t.Errorf("%s: %s differs", dir, file)
				}
			}
			programtest.Succeed(t, "verify", "--source-pin", dir+".pin.json.zst", dir+"-pinned")
		}
	}
	if r := programtest.Run(t, "prune", "--keep", "16", "--pin-source", "dry.json", "--dry-run", "source"); r.Code != programtest.OK || !strings.Contains(r.Stdout, "pinned as they are read, in dry.json") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if _, err := os.Stat("dry.json"); err == nil {
		t.Error("a dry run wrote a pin")
	}
}

// TestReleaseStatesPinnedWeightsOnly wants the key with the source's weights digest where
// the bytes were held against a pin, and not where the plan alone names it.
func TestReleaseStatesPinnedWeightsOnly(t *testing.T) {
	proofFolder(t)
	programtest.Succeed(t, "plan", "--keep", "16", "--pin", "source.pin.json.zst", "-o", "plan.json", "source")
	pin, err := manifest.ReadPin("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	for dir, args := range map[string][]string{"pinned": {"--source-pin", "source.pin.json.zst"}, "unpinned": nil} {
		programtest.Succeed(t, slices.Concat([]string{"prune", "--plan", "plan.json", "-o", dir}, args, []string{"source"})...)
		got := programtest.OpenModel(t, dir).Metadata().Text("reap.source_weights_digest")
		want := ""
		if dir == "pinned" {
			want = pin.WeightsDigest.String()
		}
		if got != want {
			t.Errorf("%s: source_weights_digest is %q, want %q", dir, got, want)
		}
		programtest.Succeed(t, "verify", "--source-pin", "source.pin.json.zst", dir)
	}
}

// forge writes the model in dir anew, edited, as a release whose own pin and list of sums
// are right: nothing but the source's pin can tell.
func forge(t *testing.T, dir, out string, edit func(c *gguf.Contents, source *gguf.Model)) {
	t.Helper()
	c := programtest.OpenModel(t, dir).Contents()
	edit(&c, programtest.OpenModel(t, "source"))
	layout, err := gguf.NewLayout(c, gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(out + ".gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := layout.Shards[0].Write(t.Context(), f, make([]byte, 1<<16), nil); err != nil {
		t.Fatal(err)
	}
	programtest.Succeed(t, "reshard", "--shards", "3", "-o", out, out+".gguf")
}

// setSlab replaces an expert of a tensor.
func setSlab(t *testing.T, c *gguf.Contents, tensor string, expert int, slab []byte) {
	t.Helper()
	v := viewOf(t, c, tensor)
	data := viewBytes(t, *v)
	copy(data[expert*len(slab):], slab)
	v.Extents = nil
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
}

func viewOf(t *testing.T, c *gguf.Contents, tensor string) *gguf.View {
	t.Helper()
	i := slices.IndexFunc(c.Views, func(v gguf.View) bool { return v.Name == tensor })
	if i < 0 {
		t.Fatalf("no tensor %q", tensor)
	}
	return &c.Views[i]
}

func viewBytes(t *testing.T, v gguf.View) []byte {
	t.Helper()
	var data []byte
	for _, e := range v.Extents {
		part := make([]byte, e.Length)
		if n, err := e.Source.ReadAt(part, e.Offset); n < len(part) {
			t.Fatal(err)
		}
		data = append(data, part...)
	}
	return data
}

// kept16 returns expert i of 16 of a view.
func kept16(t *testing.T, c *gguf.Contents, tensor string, i int) []byte {
	data := viewBytes(t, *viewOf(t, c, tensor))
	return bytes.Clone(data[i*len(data)/16 : (i+1)*len(data)/16])
}

func TestVerifyProvesAgainstForgeries(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "plan.json", shuffledPlan)
	programtest.Succeed(t, "prune", "--plan", "plan.json", "--shards", "3", "-o", "release", "source")
	swap := func(tensor string, i, j int) func(c *gguf.Contents, _ *gguf.Model) {
		return func(c *gguf.Contents, _ *gguf.Model) {
			a, b := kept16(t, c, tensor, i), kept16(t, c, tensor, j)
			setSlab(t, c, tensor, i, b)
			setSlab(t, c, tensor, j, a)
		}
	}
	type finding struct {
		Kind, Tensor, What string
		Expert             *int
	}
	for name, test := range map[string]struct {
		edit   func(c *gguf.Contents, source *gguf.Model)
		tensor string
		expert int
		what   string
	}{
		"nothing":             {func(*gguf.Contents, *gguf.Model) {}, "", 0, ""},
		"up slabs swapped":    {swap("blk.1.ffn_up_exps.weight", 0, 2), "blk.1.ffn_up_exps.weight", -1, "experts 0 and 2 do not fit the other tensors of the layer; expert 0 is the source's expert 17, other tensors of the layer have expert 31 there"},
		"router rows swapped": {swap("blk.2.ffn_gate_inp.weight", 3, 9), "blk.2.ffn_gate_inp.weight", -1, "experts 3 and 9 do not fit the other tensors of the layer; expert 3 is the source's expert 17, other tensors of the layer have expert 5 there"},
		"slab of another layer": {func(c *gguf.Contents, source *gguf.Model) {
			data := programtest.TensorData(t, source, "blk.2.ffn_down_exps.weight")
			setSlab(t, c, "blk.1.ffn_down_exps.weight", 4, data[7*len(data)/32:8*len(data)/32])
		}, "blk.1.ffn_down_exps.weight", 4, `is expert 7 of the source's tensor "blk.2.ffn_down_exps.weight"`},
		"tensor dropped": {func(c *gguf.Contents, _ *gguf.Model) {
			c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == "blk.1.ffn_routed_norm.weight" })
		}, "blk.1.ffn_routed_norm.weight", -1, "is a tensor of the source, and not there"},
		"tensor added": {func(c *gguf.Contents, _ *gguf.Model) {
			c.Views = append(c.Views, gguf.View{Name: "blk.1.attn_extra.weight", Type: gguf.F32, Shape: []uint64{0}})
		}, "blk.1.attn_extra.weight", -1, "is no tensor of the source"},
		"template edited": {func(c *gguf.Contents, _ *gguf.Model) {
			c.Metadata = c.Metadata.Clone()
			c.Metadata.Set("general.name", gguf.TextValue("forged"))
		}, "", -1, `key "general.name" has another value`},
		"weights digest claimed": {func(c *gguf.Contents, _ *gguf.Model) {
			c.Metadata = c.Metadata.Clone()
			c.Metadata.Set("reap.source_weights_digest", gguf.TextValue("blake3:"+strings.Repeat("0", 64)))
		}, "", -1, `does not fit the source's pin: want blake3:`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := strings.ReplaceAll(name, " ", "-")
			forge(t, "release", dir, test.edit)
			programtest.Succeed(t, "verify", dir)
			programtest.Succeed(t, "verify", "--plan", "plan.json", "--source-pin", "source.pin.json.zst", "release")
			r := programtest.Run(t, "verify", "--json", "--plan", "plan.json", "--source-pin", "source.pin.json.zst", dir)
			var doc struct {
				OK       bool
				Findings []finding
				Proof    struct {
					Unproven int64 `json:"unproven_bytes"`
				}
			}
			if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil {
				t.Fatal(err)
			}
			if name == "nothing" {
				if r.Code != programtest.OK || !doc.OK || doc.Proof.Unproven != 0 {
					t.Errorf("exit %d: %+v", r.Code, doc)
				}
				return
			}
			if r.Code != programtest.Differs || !slices.ContainsFunc(doc.Findings, func(f finding) bool {
				expert := manifest.NoExpert
				if f.Expert != nil {
					expert = *f.Expert
				}
				return f.Tensor == test.tensor && expert == test.expert && strings.Contains(f.What, test.what)
			}) {
				t.Errorf("exit %d, want %q of tensor %q, expert %d in %+v", r.Code, test.what, test.tensor, test.expert, doc.Findings)
			}
		})
	}
}

// A missing shard is one finding, whatever experts or plan would say of its tensors.
func TestVerifyOfAnIncompleteModel(t *testing.T) {
	proofFolder(t)
	shards, err := filepath.Glob("source/*-00002-of-*.gguf")
	if err != nil || len(shards) != 1 {
		t.Fatal(shards, err)
	}
	if err := os.Remove(shards[0]); err != nil {
		t.Fatal(err)
	}
	r := programtest.Run(t, "verify", "source")
	if r.Code != programtest.Differs || !strings.Contains(r.Stdout, "\nresult          1 finding\n") || !strings.Contains(r.Stdout, "experts and plan were not looked at") {
		t.Errorf("exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestVerifyHoldsThePlanAgainstTheRelease changes the folder's plan and gives others.
func TestVerifyHoldsThePlanAgainstTheRelease(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "given.json", shuffledPlan)
	programtest.Succeed(t, "prune", "--plan", "given.json", "-o", "release", "source")
	other := strings.Replace(shuffledPlan, "[31,2,", "[31,3,", 1)
	programtest.WriteText(t, "other.json", other)
	programtest.WriteText(t, "broken.json", "{")
	drop := `{"pruned_experts":[]}`
	programtest.WriteText(t, "drop.json", drop)
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--source-pin", "source.pin.json.zst"}, programtest.OK, "the experts found by their bytes are those that it keeps"},
		{[]string{"--source-pin", "source.pin.json.zst", "--plan", "other.json"}, programtest.Differs, "layer 1: expert 2 is kept, which the plan drops; expert 3 is not kept, which the plan keeps"},
		{[]string{"--source-pin", "source.pin.json.zst", "--plan", "broken.json"}, programtest.Failed, "broken.json: plan: "},
		{[]string{"--source-pin", "source.pin.json.zst", "--plan", "none.json"}, programtest.Failed, "none.json: no such file"},
		{[]string{"--plan", "other.json"}, programtest.Failed, "--source is needed too"},
	} {
		r := programtest.Run(t, slices.Concat([]string{"verify"}, tc.args, []string{"release"})...)
		if r.Code != tc.code || !strings.Contains(r.Stdout+r.Stderr, tc.want) {
			t.Errorf("%q: exit %d, want %d and %q in %s%s", tc.args, r.Code, tc.code, tc.want, r.Stdout, r.Stderr)
		}
	}

	plan := filepath.Join("release", release.PlanName)
	sound, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	for edit, want := range map[[2]string]string{
		{`"keep_count": 16`, `"keep_count": 17`}:                          "layer 1",
		{`"architecture": "kimi-k3"`, `"architecture": "glm4moe"`}:        "the architecture is kimi-k3, the plan says glm4moe",
		{`"num_experts": 32`, `"num_experts": 40`}:                        `key "reap.source_expert_count" is 32, the plan says 40`,
		{`"structure_digest": "blake3:`, `"structure_digest": "blake3:0`}: `key "reap.source_structure_digest" is blake3:`,
		{`"2": {`, `"7": {`}:                                             "layer 2 routes, and the plan has no list for it",
		{`"name": "given"`, `"name": "giver"`}:                           "giver",
		{`"schema": "ggufreap/plan/v1"`, `"schema": "ggufreap/plan/v2"`}: "ggufreap/plan/v2",
	} {
		if !bytes.Contains(sound, []byte(edit[0])) {
			t.Fatalf("the plan lacks %s:\n%s", edit[0], sound)
		}
		programtest.WriteText(t, plan, strings.Replace(string(sound), edit[0], edit[1], 1))
		programtest.WriteText(t, filepath.Join("release", manifest.SumsName), programtest.ListFolder(t, "release"))
		r := programtest.Run(t, "verify", "release")
		if r.Code != programtest.Differs || !strings.Contains(r.Stdout, "plan            plan.json: ") || !strings.Contains(r.Stdout, want) {
			t.Errorf("%q: exit %d, want %q in %s", edit, r.Code, want, r.Stdout)
		}
	}
}

// TestEveryArchitectureIsProven prunes a model of each architecture that there are facts
// of, and proves the release from its source's pin alone. Only ids that were replaced,
// since their expert was dropped, are proven by the rule that replaced them.
func TestEveryArchitectureIsProven(t *testing.T) {
	t.Chdir(t.TempDir())
	var refused []string
	for _, name := range gguftest.Architectures() {
		spec, err := gguftest.Architecture(name, gguftest.ArchitectureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
		source, pin := programtest.Write(t, spec, gguf.Split{})[0], name+".pin.json"
		programtest.Succeed(t, "pin", "-o", pin, source)
		r := programtest.Run(t, "prune", "--keep", "8", "--criterion", "seeded-random", "--remap-dropped", "nearest-kept", "--source-pin", pin, "-o", name, source)
		if r.Code != programtest.OK && strings.Contains(r.Stderr, "not supported") {
			refused = append(refused, name)
			continue
		}
		if r.Code != programtest.OK {
			t.Fatalf("%s: %s", name, r.Stderr)
		}
		var doc struct{ Proof verify.Proof }
		if err := json.Unmarshal([]byte(programtest.Succeed(t, "verify", "--json", "--source-pin", pin, name)), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Proof.Unproven != 0 || doc.Proof.Proven == 0 {
			t.Errorf("%s: %d bytes are proven, %d are not", name, doc.Proof.Proven, doc.Proof.Unproven)
		}
	}
	if want := []string{"grovemoe"}; !slices.Equal(refused, want) {
		t.Errorf("%q were refused, want %q", refused, want)
	}
}

// TestExpertIDsAreProven prunes to all experts in another order: every id of the table of
// deepseek4 has a new number, and none was replaced.
func TestExpertIDsAreProven(t *testing.T) {
	t.Chdir(t.TempDir())
	spec, err := gguftest.Architecture("deepseek4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	source := programtest.Write(t, spec, gguf.Split{})[0]
	programtest.Succeed(t, "pin", "-o", "pin.json", source)
	lists := []string{}
	for _, block := range planBlocks(t, source) {
		lists = append(lists, fmt.Sprintf(`"%d":[15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0]`, block))
	}
	programtest.WriteText(t, "turned.json", "{"+strings.Join(lists, ",")+"}")
	programtest.Succeed(t, "prune", "--plan", "turned.json", "--source-pin", "pin.json", "-o", "turned", source)
	var doc struct{ Proof verify.Proof }
	if err := json.Unmarshal([]byte(programtest.Succeed(t, "verify", "--json", "--source-pin", "pin.json", "turned")), &doc); err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, tensor := range doc.Proof.Tensors {
		if tensor.As == verify.ProvenIDs {
			tables++
		}
	}
	if doc.Proof.Unproven != 0 || tables == 0 {
		t.Errorf("%d bytes are not proven, %d tables are", doc.Proof.Unproven, tables)
	}
	// A byte of the table that was changed after it was pinned is seen.
	m := programtest.OpenModel(t, source)
	at := int(m.Tensor("blk.1.ffn_gate_tid2eid.weight").DataOffset())
	if err := programtest.Flip(source, at); err != nil {
		t.Fatal(err)
	}
	r := programtest.Run(t, "prune", "--plan", "turned.json", "--source-pin", "pin.json", "-o", "flipped", source)
	if r.Code != programtest.Failed || !strings.Contains(r.Stderr, `tensor "blk.1.ffn_gate_tid2eid.weight": blake3 is `) {
		t.Errorf("exit %d, %s", r.Code, r.Stderr)
	}
	if err := programtest.Flip(source, at); err != nil {
		t.Fatal(err)
	}
	// With the source's table in place of the new one, every number is wrong.
	old := programtest.TensorData(t, programtest.OpenModel(t, source), "blk.1.ffn_gate_tid2eid.weight")
	c := programtest.OpenModel(t, "turned").Contents()
	setSlab(t, &c, "blk.1.ffn_gate_tid2eid.weight", 0, old)
	layout, err := gguf.NewLayout(c, gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := layout.Shards[0].Write(t.Context(), &b, make([]byte, 1<<16), nil); err != nil {
		t.Fatal(err)
	}
	programtest.WriteText(t, "forged.gguf", b.String())
	r = programtest.Run(t, "verify", "--source-pin", "pin.json", "forged.gguf")
	if r.Code != programtest.Differs || !strings.Contains(r.Stdout, "tensor \"blk.1.ffn_gate_tid2eid.weight\": still has the source's expert numbers") {
		t.Errorf("exit %d, %s", r.Code, r.Stdout)
	}
}

// TestReplacedExpertIDsAreProven prunes a model whose tables name dropped experts, and gives
// the release other tables, sound by themselves.
func TestReplacedExpertIDsAreProven(t *testing.T) {
	t.Chdir(t.TempDir())
	const table = "blk.1.ffn_gate_tid2eid.weight"
	spec, err := gguftest.Architecture("deepseek4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	source := programtest.Write(t, spec, gguf.Split{})[0]
	programtest.Succeed(t, "pin", "-o", "pin.json", source)
	programtest.Succeed(t, "prune", "--keep", "8", "--criterion", "seeded-random", "--remap-dropped", "nearest-kept", "--source-pin", "pin.json", "-o", "out", source)
	programtest.Succeed(t, "pin", "-o", "again.json", "out")
	own, err := manifest.ReadPin("out/" + manifest.PinName)
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.ReadPin("again.json")
	if err != nil || own.PinDigest != again.PinDigest || len(manifest.ByName(own)[table].IDs.Nearest) != 8*7*2 {
		t.Errorf("the release's own pin has digest %s, one taken anew %s (%v)", own.PinDigest, again.PinDigest, err)
	}
	data := programtest.TensorData(t, programtest.OpenModel(t, "out"), table)
	for name, edit := range map[string]func(ids []byte){
		"turned": func(ids []byte) {
			for i := 0; i < len(ids); i += 4 {
				ids[i] = 7 - ids[i]
			}
		},
		"swapped":                  func(ids []byte) { ids[0], ids[4] = ids[4], ids[0] },
		"one row of another token": func(ids []byte) { copy(ids[len(ids)-16:], ids[:16]) },
	} {
		ids := bytes.Clone(data)
		edit(ids)
		c := programtest.OpenModel(t, "out").Contents()
		setSlab(t, &c, table, 0, ids)
		layout, err := gguf.NewLayout(c, gguf.Split{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := layout.Shards[0].Write(t.Context(), &b, make([]byte, 1<<16), nil); err != nil {
			t.Fatal(err)
		}
		programtest.WriteText(t, "forged.gguf", b.String())
		r := programtest.Run(t, "verify", "--source-pin", "pin.json", "forged.gguf")
		if r.Code != programtest.Differs || !strings.Contains(r.Stdout, "are not what pruning makes of the source's table") {
			t.Errorf("%s: exit %d, %s", name, r.Code, r.Stdout)
		}
	}
}

// planBlocks lists the blocks that a plan of the model has lists for.
func planBlocks(t *testing.T, source string) []int {
	t.Helper()
	var plan struct{ Layers map[int]any }
	if err := json.Unmarshal([]byte(programtest.Succeed(t, "plan", "--keep", "16", "--criterion", "seeded-random", "--json", source)), &plan); err != nil {
		t.Fatal(err)
	}
	var blocks []int
	for block := range plan.Layers {
		blocks = append(blocks, block)
	}
	return blocks
}
