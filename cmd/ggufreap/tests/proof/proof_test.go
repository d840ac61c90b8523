package proof

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/gguf"
	"ggufreap/manifest"
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

// forge writes the model in dir anew, edited, as a release whose own pin and list of sums
// are right: nothing but the source's pin can tell.
func forge(t *testing.T, dir, out string, edit func(c *gguf.Contents, source *gguf.Model)) {
	t.Helper()
	c := programtest.OpenModel(t, dir).Contents()
	edit(&c, programtest.OpenModel(t, "source"))
	programtest.WriteContents(t, out+".gguf", c)
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
		{`"keep_count": 16`, `"keep_count": 17`}:                          "layers 1-2: keeps 16 experts, want 17",
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
