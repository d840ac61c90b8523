package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/engine"
	"ggufreap/reap/measure"
	"ggufreap/reap/scorefile"
)

// sampleDocuments makes a document of every kind, as full as one run makes it.
func sampleDocuments(t *testing.T) map[string][]byte {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{Shards: 2})
	const model = "small-00001-of-00002.gguf"
	samples := map[string][]byte{}
	add := func(text []byte) {
		kind, err := validate(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		samples[kind] = text
	}
	print := func(code int, args ...string) {
		r := ggufreap(t, args...)
		if r.code != code {
			t.Fatalf("%q: exit %d, %s", args, r.code, r.stderr)
		}
		add([]byte(r.stdout))
	}
	print(exitOK, "version", "--json")
	print(exitOK, "inspect", "--json", "--tensors", model)
	print(exitOK, "inspect", "--json", "--key", "general.name", model)
	succeed(t, "pin", "--license", "mit", "-o", "source.json", model)
	print(exitOK, "prune", "--json", "--keep", "4", "--source-pin", "source.json", "-o", "cut", model)
	print(exitOK, "prune", "--json", "--keep", "4", "--only", "1/2", "-o", "parts", model)
	print(exitDiffers, "assemble", "--json", "--wait", "0s", "parts")
	print(exitDiffers, "pin", "--check", "source.json", "--json", "cut")
	print(exitOK, "verify", "--json", "--source-pin", "source.json", "cut")
	print(exitDiffers, "diff", "--json", model, "cut")
	succeed(t, "reshard", "--shards", "2", "-o", "good", model)
	damaged, err := os.ReadFile("good/small-00002-of-00002.gguf")
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)-1] ^= 1
	for name, data := range map[string][]byte{"damaged/small-00002-of-00002.gguf": damaged, "damaged/pin.json.zst": nil} {
		if data == nil {
			if data, err = os.ReadFile("good/pin.json.zst"); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.MkdirAll("damaged", 0o777), os.WriteFile(name, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	print(exitDiffers, "repair", "--json", "--dry-run", "--from", "good", "damaged")
	outside(t, "", "openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem")
	print(exitOK, "sign", "--json", "--key", "key.pem", "cut")
	writeFile(t, "wrong.yaml", []byte("schema: ggufreap/evidence/v1\nrows: [{id: a}]\n"))
	print(exitDiffers, "evidence", "check", "--json", "wrong.yaml")
	print(exitOK, "plan", "--keep", "4", "--criterion", "router-norm", "--explain", "--compare", "cut/plan.json", "--json", model)
	for _, path := range []string{"source.json", "cut/plan.json"} {
		add(programtest.DocumentText(path))
	}
	layers := map[int]*scorefile.Layer{1: {Count: []float64{1, 0}, GateSum: []float64{0.5, 0}, ReapSum: []float64{1e-9, 0}, Energy: []float64{2, 0}, NormSum: []float64{1, 0}, NormMax: []float64{1, 0}}}
	m := &scorefile.Measurements{
		Source: reap.Source{Architecture: "x", Name: "m"}, Tokens: 1, Layers: layers,
		Inputs:  []scorefile.Text{{Label: "a", File: "a.txt", SHA256: strings.Repeat("0", 64)}},
		Sources: []scorefile.Source{{Label: "a", Tokens: 1, Weight: 2, Layers: layers}}, Settings: map[string]string{"chunk": "512"},
	}
	saliency, err := m.Encode(&reap.Experts{Count: 2, Used: 1})
	if err != nil {
		t.Fatal(err)
	}
	add(saliency)
	for _, document := range []any{
		*newEngineDocument("ggufreap-engine", &engine.Hello{Known: []string{"0.5.0"}, Devices: []engine.Device{{Name: "CPU", Total: 1}}}),
		*calibration.NewDocument(&calibration.Campaign{Output: "s"}, &calibration.Result{Scores: m, Stable: true, Kinds: []*measure.Kind{{Label: "a", Weight: 1}}}),
	} {
		var b bytes.Buffer
		con := ui.New(nil, &b, nil)
		if err := errors.Join(con.JSON(document), con.Flush()); err != nil {
			t.Fatal(err)
		}
		add(b.Bytes())
	}
	return samples
}

// TestSchemas has a document of every kind, and changes that no schema may allow.
func TestSchemas(t *testing.T) {
	samples := sampleDocuments(t)
	if got := slices.Sorted(maps.Keys(samples)); !slices.Equal(got, document.Kinds()) {
		t.Errorf("there are documents of kinds %q, and schemas of %q", got, document.Kinds())
	}
	for kind, text := range samples {
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		changes := 0
		eachObject(doc, func(object map[string]any) {
			object["not-a-field"] = map[string]any{"not-a-field": 1}
			changed, _ := json.Marshal(doc)
			delete(object, "not-a-field")
			if _, err := validate(changed); err == nil {
				t.Errorf("%s: a field that is not known is allowed in %v", kind, object)
			}
			changes++
		})
		for _, name := range slices.Collect(maps.Keys(doc.(map[string]any))) {
			left := maps.Clone(doc.(map[string]any))
			delete(left, name)
			changed, _ := json.Marshal(left)
			if _, err := validate(changed); err == nil && !optional[kind+" "+name] {
				t.Errorf("%s: %q may be missing", kind, name)
			}
		}
		if changes == 0 {
			t.Errorf("%s: no object", kind)
		}
	}
}

// optional are members of documents that are left out where there is nothing to say.
var optional = map[string]bool{"inspect tensors": true, "inspect unreadable_shards": true, "plan rules": true, "saliency settings": true}

func eachObject(v any, do func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachObject(v[name], do)
		}
		do(v)
	case []any:
		for _, e := range v[:min(len(v), 3)] {
			eachObject(e, do)
		}
	}
}

// described says where documents are explained that have no schema: nothing but their own
// page tells a person how to write them, or no program but this one reads them.
var described = map[string]string{
	"evidence": "../../manifest/evidence/EVIDENCE.md",
	"journal":  "../../manifest/stage/GUARANTEES.md",
}

// TestEveryKindHasASchema looks for the names of schemas in the source.
func TestEveryKindHasASchema(t *testing.T) {
	name := regexp.MustCompile(`"ggufreap/([a-z]+)/v[0-9]+"`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range name.FindAllSubmatch(text, -1) {
			kind := string(found[1])
			if page := described[kind]; document.Schema(kind) == nil && !exists(page) {
				t.Errorf("%s writes documents of kind %q: they need a file in internal/document/schema", path, kind)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSchemaCommand(t *testing.T) {
	for _, kind := range document.Kinds() {
		if r := ggufreap(t, "schema", kind); r != (result{string(document.Schema(kind)), "", exitOK}) {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}
