package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
)

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
	programtest.WriteContents(t, "forged.gguf", c)
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
		programtest.WriteContents(t, "forged.gguf", c)
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
