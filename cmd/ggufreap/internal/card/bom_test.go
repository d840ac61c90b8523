package card

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/evidence"
	"ggufreap/reap"
)

// schemaFolder is where the library keeps the schemas of the specification.
func schemaFolder(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "schema")
}

// bomSchema compiles the schema of bills of materials; what it refers to has another name there.
func bomSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const base = "http://cyclonedx.org/schema/"
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(schemaFolder(t), file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bomFacts are those of a pruned release with a pinned source.
func bomFacts() *Facts {
	pin := func(name, digit string, shards int) *manifest.Pin {
		p := &manifest.Pin{Artifact: manifest.Artifact{Name: name, Architecture: "kimi-k3", Shards: shards, FileBytes: 300, TensorBytes: 200}}
		for range shards {
			p.Files = append(p.Files, manifest.File{Name: name + ".gguf", Size: 100, SHA256: manifest.Sum(bytes.Repeat([]byte(digit), 32))})
		}
		p.PinDigest, p.WeightsDigest = manifest.DigestBytes([]byte(name)), manifest.DigestBytes([]byte(digit))
		return p
	}
	revision := strings.Repeat("0a", 20)
	f := &Facts{
		Pin: pin("K3-REAP568", "1", 2), SourcePin: pin("K3", "2", 3), Metadata: &gguf.Metadata{},
		Plan:      &reap.Plan{NumExperts: 896, KeepCount: 568, Criterion: reap.NewCriterion(reap.RouterNorm), Layers: map[int][]int{1: {0}, 2: {1}}},
		BaseModel: "owner/K3-GGUF", Licenses: []string{"mit"},
		Evidence: []Evidence{{Name: "evidence.yaml", Inside: true, Document: &evidence.Document{}}},
	}
	f.SourcePin.Declared.Revision = &revision
	return f
}

// TestBOM holds bills of materials to the schema of the specification, and reads them with its
// library.
func TestBOM(t *testing.T) {
	schema := bomSchema(t)
	for name, change := range map[string]func(f *Facts){
		"pruned":          func(*Facts) {},
		"nothing is said": func(f *Facts) { *f = Facts{Pin: f.Pin, Metadata: f.Metadata} },
		"not pinned":      func(f *Facts) { f.SourcePin = nil },
		"a source's name": func(f *Facts) { f.SourcePin, f.BaseModel, f.Plan.Source.Name = nil, "", "K3" },
		"a license of its own": func(f *Facts) {
			f.Licenses, f.LicenseName, f.LicenseLink = []string{"other"}, "Kimi K3 License", "LICENSE"
		},
		"licenses that SPDX does not know": func(f *Facts) { f.Licenses = []string{"llama4", "gemma"} },
		"hostile names": func(f *Facts) {
			f.Pin.Artifact.Name = "a\u202eb\x1b[31m\"</script>"
			f.BaseModel, f.Licenses = "hf://x y", []string{"\x00", "other"}
		},
	} {
		f := bomFacts()
		change(f)
		text, err := f.BOM()
		if err != nil {
			t.Fatal(name, err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(name, err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if again, _ := f.BOM(); !bytes.Equal(again, text) {
			t.Errorf("%s: made twice, it is not the same", name)
		}
		if i := bytes.IndexAny(text, "\x1b\x00\u202e"); i >= 0 || bytes.Contains(text, []byte("serialNumber")) || bytes.Contains(text, []byte("timestamp")) {
			t.Errorf("%s: it has what it must not have:\n%s", name, text)
		}
		bom := new(cdx.BOM)
		if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
			t.Fatal(name, err)
		}
		if got := bom.Metadata.Component; got.Name != f.Pin.Artifact.Name || len(*got.Components) != 2 || got.Type != cdx.ComponentTypeMachineLearningModel {
			t.Errorf("%s: the component is %+v", name, got)
		}
	}
}

// TestBOMAncestor wants the source to be the release's ancestor, with the hashes of its files.
func TestBOMAncestor(t *testing.T) {
	f := bomFacts()
	parent := (*f.pedigree().Ancestors)[0]
	if parent.Name != "K3" || parent.PackageURL != "pkg:huggingface/owner/K3-GGUF@"+strings.Repeat("0a", 20) || len(*parent.Components) != 3 {
		t.Errorf("the parent is %+v", parent)
	}
	if hash := (*(*parent.Components)[0].Hashes)[0]; hash.Algorithm != cdx.HashAlgoSHA256 || hash.Value != strings.Repeat("32", 32) {
		t.Errorf("the hash of its first file is %+v", hash)
	}
	text, err := json.Marshal(parent.Properties)
	if err != nil || !strings.Contains(string(text), f.SourcePin.PinDigest.String()) {
		t.Errorf("its properties are %s (%v), without its pin digest", text, err)
	}
	if f.SourcePin, f.BaseModel = nil, ""; f.pedigree() != nil {
		t.Error("a source of which nothing is known is an ancestor")
	}
}

// TestSPDX wants every name that is given for one of SPDX to be one.
func TestSPDX(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(schemaFolder(t), "spdx.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known struct{ Enum []string }
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, id := range known.Enum {
		ids[id] = true
	}
	for _, hub := range append(strings.Fields(strings.ToLower(spdxIDs)), "odc-by", "odbl", "pddl", "c-uda") {
		if id := spdxID(hub); !ids[id] {
			t.Errorf("%s is %q, which SPDX does not have", hub, id)
		}
	}
	if got := spdxID("llama4"); got != "" {
		t.Errorf("llama4 is %q", got)
	}
}
