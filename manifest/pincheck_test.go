package manifest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

// tensorNamed returns the tensor of that name to change it.
func tensorNamed(p *Pin, name string) *Tensor { return ByName(p)[name] }

// reseal takes anew what rests on the pin's parts, as whoever forges one would.
func reseal(p *Pin) {
	p.seal()
	p.MetadataDigest, _ = digestPairs(p.Metadata)
	p.PinDigest = p.digest()
}

// TestPinsThatContradictThemselves forges pins whose digests all rest on what they say.
func TestPinsThatContradictThemselves(t *testing.T) {
	const exps, bias = "blk.1.ffn_up_exps.weight", "blk.1.exp_probs_b.bias"
	twin := func(p *Pin) *Tensor {
		copied := *tensorNamed(p, exps)
		slabs := *copied.Slabs
		slabs.BLAKE3 = slices.Clone(slabs.BLAKE3)
		copied.Name, copied.Slabs = "blk.2.ffn_up_exps.weight", &slabs
		p.Tensors = append(p.Tensors, copied)
		p.Artifact.TensorBytes += copied.Size
		p.Artifact.FileBytes += copied.Size
		p.Files[0].Size += copied.Size
		return &p.Tensors[len(p.Tensors)-1]
	}
	for name, test := range map[string]struct {
		forge func(p *Pin)
		want  string
	}{
		"numbers of an expert": {func(p *Pin) { tensorNamed(p, bias).Slabs.Bytes[0] ^= 1 }, "the experts are all of the data"},
		"the only expert": {func(p *Pin) {
			v := tensorNamed(p, exps)
			v.Slabs.Count, v.Slabs.Axis, v.Slabs.BLAKE3 = 1, 3, v.Slabs.BLAKE3[:32]
			v.Shape = append(v.Shape, 1)
		}, "the only expert is all of the data"},
		"another architecture":   {func(p *Pin) { p.Artifact.Architecture = "llama" }, `architecture is "llama", key "general.architecture" has the digest of another`},
		"no architecture":        {func(p *Pin) { p.Artifact.Architecture = "" }, `architecture is "", key "general.architecture" has the digest of another`},
		"architecture of no key": {func(p *Pin) { p.Metadata = slices.Delete(p.Metadata, 0, 1) }, `architecture is "test", and no key says so`},
		"value of no type":       {func(p *Pin) { p.Metadata[0].Type = "text" }, `"text" is not a type of value`},
		"equal data, other size": {func(p *Pin) {
			v := tensorNamed(p, "output.weight")
			v.BLAKE3 = tensorNamed(p, "token_embd.weight").BLAKE3
		}, "have one digest, and"},
		"equal data, other experts": {func(p *Pin) { twin(p).Slabs.BLAKE3[0] ^= 1 }, "have one digest, and other experts"},
		"nothing with a digest":     {func(p *Pin) { tensorNamed(p, "blk.0.empty").BLAKE3[0] ^= 1 }, "size is 0, and blake3"},
		"tensor twice":              {func(p *Pin) { twin(p).Name = exps }, "comes twice"},
		"more bytes of files":       {func(p *Pin) { p.Artifact.FileBytes++ }, "bytes, the model says"},
		"fewer bytes of files":      {func(p *Pin) { p.Artifact.FileBytes-- }, "bytes, the model says"},
		"more bytes of tensors":     {func(p *Pin) { p.Artifact.TensorBytes++ }, "bytes, the model says"},
		"files too small for their tensors": {func(p *Pin) {
			for i := range p.Files {
				p.Files[i].Size = minFile
			}
			p.Artifact.FileBytes = int64(len(p.Files)) * minFile
		}, "in files of"},
		"fewer shards than files": {func(p *Pin) { p.Artifact.Shards-- }, "shards, but 3 files"},
		"no file":                 {func(p *Pin) { p.Files, p.Artifact.Shards, p.Artifact.FileBytes = nil, 0, 0 }, "0 shards, but 0 files"},
		"file of less than nothing": {func(p *Pin) {
			p.Files[0].Size -= 1 << 40
			p.Artifact.FileBytes -= 1 << 40
		}, "has -"},
		"files of too many bytes":          {func(p *Pin) { p.Files[1].Size = math.MaxInt64 }, "bytes"},
		"file that is too short to be one": {func(p *Pin) { p.Files[1].Size += p.Files[0].Size - 23; p.Files[0].Size = 23 }, "has 23 bytes"},
		"version that is none":             {func(p *Pin) { p.Artifact.Version = 4 }, "version 4 is not known"},
		"key of a split":                   {func(p *Pin) { p.Metadata[len(p.Metadata)-1].Key = "split.payload" }, "says how the files are cut"},
		"five dims":                        {func(p *Pin) { v := tensorNamed(p, exps); v.Shape = append(v.Shape, 1, 1) }, "5 dims, at most 4 are possible"},
		"more elements than can be": {func(p *Pin) {
			v := tensorNamed(p, "output.weight")
			v.Type, v.Shape = "unknown(999)", []uint64{1 << 62, 1 << 62}
		}, "more elements than any tensor"},
		"file twice": {func(p *Pin) { p.Files[1].Name = p.Files[0].Name }, "a file name comes twice"},
		"key twice":  {func(p *Pin) { p.Metadata[1].Key = p.Metadata[0].Key }, "comes twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
			test.forge(p)
			reseal(p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	_, p := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
	if twin(p); p.Validate() == nil {
		t.Error("a pin whose digests rest on something else was accepted")
	}
	if reseal(p); p.Validate() != nil {
		t.Errorf("equal tensors: %v", p.Validate())
	}
}

// TestPinDigestBindsTheProof changes each part that a proof rests on, and leaves no digest
// but the pin digest to tell.
func TestPinDigestBindsTheProof(t *testing.T) {
	const exps = "blk.1.ffn_up_exps.weight"
	_, pin := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
	for name, forge := range map[string]func(p *Pin){
		"expert":          func(p *Pin) { tensorNamed(p, exps).Slabs.BLAKE3[33] ^= 1 },
		"no experts":      func(p *Pin) { tensorNamed(p, exps).Slabs = nil },
		"tensor":          func(p *Pin) { tensorNamed(p, "output.weight").BLAKE3[0] ^= 1 },
		"tensor's type":   func(p *Pin) { tensorNamed(p, "output.weight").Type = "Q4_1" },
		"tensor's shape":  func(p *Pin) { tensorNamed(p, "output.weight").Shape = []uint64{101, 32} },
		"tensor's name":   func(p *Pin) { tensorNamed(p, "output.weight").Name = "output.bias" },
		"value":           func(p *Pin) { p.Metadata[1].BLAKE3[0] ^= 1 },
		"key":             func(p *Pin) { p.Metadata[1].Key += "x" },
		"another's slabs": func(p *Pin) { tensorNamed(p, exps).Slabs = slabsOfAnother(t, exps) },
	} {
		_, p := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
		if forge(p); p.digest() == pin.PinDigest {
			t.Errorf("%s: the pin digest stays", name)
		}
		if p.Validate() == nil {
			t.Errorf("%s: the pin is accepted under the genuine digest", name)
		}
		if p.WeightsDigest, p.MetadataDigest = pin.WeightsDigest, pin.MetadataDigest; len(CompareTensors(pin, p))+len(ComparePairs(pin.Metadata, p.Metadata)) == 0 && name != "no experts" {
			t.Errorf("%s: a comparison sees nothing", name)
		}
	}
	for name, same := range map[string]func(p *Pin){
		"files": func(p *Pin) { p.Files[0].Name, p.Files[0].SHA256 = "x.gguf", Sum{} },
		"order": func(p *Pin) { slices.Reverse(p.Tensors) },
		"said":  func(p *Pin) { p.Declared.Repo = &p.Artifact.Name },
	} {
		_, p := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
		if same(p); p.digest() != pin.PinDigest {
			t.Errorf("%s: the pin digest changes", name)
		}
	}
}

// slabsOfAnother returns the slabs of a tensor of another model with the same names.
func slabsOfAnother(t *testing.T, tensor string) *Slabs {
	t.Helper()
	pin := mustPin(t, modeltest.New(t, modeltest.Contents(2), gguf.Split{}), BuildOptions{Slabs: gguftest.MixedSlabs})
	slabs := tensorNamed(pin, tensor).Slabs
	if own := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{}), BuildOptions{Slabs: gguftest.MixedSlabs}); bytes.Equal(tensorNamed(own, tensor).Slabs.BLAKE3, slabs.BLAKE3) {
		t.Fatal("both models have the same experts")
	}
	return slabs
}

// TestPinsOrderOfExperts cuts and changes the order in which experts replace each other.
func TestPinsOrderOfExperts(t *testing.T) {
	table := []byte{0, 0, 0, 0, 2, 0, 0, 0}
	tensor := &Tensor{BLAKE3: blake3.Sum256(table)}
	good := []byte{1, 0, 2, 0, 0, 0, 2, 0, 1, 0, 0, 0} // of 3 experts
	for name, test := range map[string]struct {
		ids  *IDs
		want string
	}{
		"none":        {nil, ""},
		"not told":    {&IDs{Table: table}, ""},
		"good":        {&IDs{table, good}, ""},
		"cut":         {&IDs{table, good[:10]}, "10 bytes, want 2 for each of their pairs"},
		"odd":         {&IDs{table, good[:11]}, "11 bytes, want 2 for each of their pairs"},
		"itself":      {&IDs{table, slices.Concat([]byte{0}, good[1:])}, "names expert 0 beside expert 0"},
		"twice":       {&IDs{table, slices.Concat([]byte{2}, good[1:])}, "names expert 2 beside expert 0"},
		"one too far": {&IDs{table, slices.Concat([]byte{3}, good[1:])}, "names expert 3 beside expert 0"},
		"other table": {&IDs{table[4:], good}, "is not the tensor's data"},
		"no table":    {&IDs{nil, good}, "is not the tensor's data"},
	} {
		err := test.ids.check(tensor)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestPinsDeclareText wants each declared fact to be text that a document can hold.
func TestPinsDeclareText(t *testing.T) {
	good, bad := "x", "x\xff"
	for what, d := range map[string]Declared{
		"repo":               {Repo: &bad, Revision: &good},
		"revision":           {Repo: &good, Revision: &bad},
		"license":            {Repo: &good, License: &bad},
		"quantization label": {Repo: &good, QuantizationLabel: &bad},
		"base model":         {Repo: &good, BaseModel: &bad},
	} {
		_, p := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
		p.Declared = d
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "declared "+what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestSlabDigestsAreBounded counts the digests of experts over all tensors, before anything is
// read and in a document.
func TestSlabDigestsAreBounded(t *testing.T) {
	const experts = 1 << 12
	parts := describer{slabs: func(string) int { return experts }}
	pin := &Pin{}
	for i := range maxSlabDigests/experts + 1 {
		shape := []uint64{64, experts}
		tensor, err := parts.describe(fmt.Sprint(i), gguf.I8, shape, 64*experts)
		if full := i == maxSlabDigests/experts; (err != nil) != full {
			t.Fatalf("tensor %d: %v", i, err)
		}
		tensor.Slabs.BLAKE3 = make([]byte, experts*len(Sum{}))
		pin.Tensors = append(pin.Tensors, tensor)
	}
	if err := pin.checkTensors(); err == nil || !strings.Contains(err.Error(), "more than 1048576 digests of experts") {
		t.Errorf("got %v", err)
	}
}
