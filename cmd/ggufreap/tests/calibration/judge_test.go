package calibration

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/engine/enginetest"
)

// llama.cpp's verdict about models that are there, and about those that are to be written.
func TestEngineJudges(t *testing.T) {
	withEngine(t)
	t.Chdir(t.TempDir())
	sound := gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4})
	programtest.Write(t, sound, gguf.Split{Shards: 2})
	for _, args := range [][]string{{"inspect", "--engine", "--ctx", "100000", "K3-00001-of-00002.gguf"}, {"verify", "--fast", "--engine", "--ctx", "100000", "."}} {
		said := programtest.Succeed(t, args...)
		for _, want := range []string{"llama.cpp 0.5.0", "would load it", "for 100,000 tokens of context", "recurrent state"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q says\n%swant %q", args, said, want)
			}
		}
		if strings.Contains(said, "no engine was asked") {
			t.Errorf("%q says that no engine was asked", args)
		}
	}
	said := programtest.Succeed(t, "inspect", "--json", "--engine", "--ctx", "4096", "K3-00001-of-00002.gguf")
	for _, want := range []string{`"loads": true`, `"part": "recurrent state"`, `"weight_bytes": 2093616`} {
		if !strings.Contains(said, want) {
			t.Errorf("inspect --json says\n%swant %q", said, want)
		}
	}
	if _, err := programtest.Validate([]byte(said)); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"prune", "--keep", "32", "-o", "pruned", "K3-00001-of-00002.gguf"}, {"reshard", "--shards", "1", "-o", "merged", "pruned"}} {
		if said := programtest.Succeed(t, args...); !strings.Contains(said, "engine          llama.cpp 0.5.0") {
			t.Errorf("%q says\n%s", args, said)
		}
	}
	if said := programtest.Succeed(t, "prune", "--engine=off", "--keep", "32", "-o", "unjudged", "K3-00001-of-00002.gguf"); strings.Contains(said, "would load it") {
		t.Errorf("an engine was asked:\n%s", said)
	}
	if digest := programtest.ReadFile(t, "pruned/MANIFEST.sha256"); string(digest) != string(programtest.ReadFile(t, "unjudged/MANIFEST.sha256")) {
		t.Error("the release depends on whether an engine was asked")
	}
}

// What llama.cpp refuses is not written, for its reason, unless it is not asked.
func TestEngineRefuses(t *testing.T) {
	withEngine(t)
	t.Setenv("TMPDIR", t.TempDir()) // no other run leaves anything there
	t.Chdir(t.TempDir())
	spec := gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4}).Clone()
	spec.Metadata.Set("tokenizer.ggml.pre", gguf.TextValue("none-such")) // no rule of ours knows what there is
	programtest.Write(t, spec, gguf.Split{})
	if r := programtest.Run(t, "verify", "--fast", "--engine", "K3.gguf"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "does not load it") {
		t.Errorf("verify: exit %d\n%s", r.Code, r.Stdout)
	}
	if said := programtest.Run(t, "inspect", "--engine", "K3.gguf").Stdout; !strings.Contains(said, "does not load it") {
		t.Errorf("inspect says\n%s", said)
	}
	refusal := programtest.Succeed(t, "inspect", "--json", "--engine", "K3.gguf")
	if _, err := programtest.Validate([]byte(refusal)); err != nil || !strings.Contains(refusal, `"loads": false`) {
		t.Errorf("inspect --json says\n%s(%v)", refusal, err)
	}
	for _, args := range [][]string{{"edit", "--set", "general.name=x", "-o", "out", "K3.gguf"}, {"prune", "--keep", "32", "-o", "out", "K3.gguf"}, {"reshard", "--shards", "2", "-o", "out", "K3.gguf"}} {
		fails(t, "would not load it", args...)
		if programtest.Exists("out") {
			t.Errorf("%q: something was written", args)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "ggufreap-headers*")); len(left) > 0 {
		t.Errorf("headers are left in the temporary folder: %q", left)
	}
	programtest.Succeed(t, "reshard", "--engine=off", "--shards", "2", "-o", "out", "K3.gguf")
	t.Setenv(engines.Variable, "off")
	programtest.Succeed(t, "reshard", "--shards", "2", "-o", "out2", "K3.gguf")
	fails(t, "no engine", "reshard", "--engine", "--shards", "2", "-o", "out3", "K3.gguf")
}

// Where there is the engine's program and no llama.cpp, as on the machine of somebody who never
// needed it, nothing is said of it unless it is asked for.
func TestEngineWithoutLlama(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ggufreap-engine") // away from the libraries of the project
	if err := os.Link(enginetest.Program(t), program); err != nil {
		t.Fatal(err)
	}
	t.Setenv(engines.Variable, program)
	t.Setenv("GGUFREAP_LLAMA_LIB", "")
	t.Setenv("YZMA_LIB", "")
	switch r := programtest.Run(t, "engine"); {
	case r.Code == programtest.OK:
		t.Skip("this system keeps a llama.cpp of its own")
	case !strings.Contains(r.Stderr, "llama.cpp libraries not found"):
		t.Fatalf("engine: exit %d\n%s", r.Code, r.Stderr)
	}
	t.Chdir(t.TempDir())
	programtest.Write(t, gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4}), gguf.Split{})
	if r := programtest.Run(t, "prune", "--keep", "32", "-o", "out", "K3.gguf"); r.Code != programtest.OK || strings.Contains(r.Stderr, "llama.cpp") {
		t.Errorf("prune: exit %d\n%s", r.Code, r.Stderr)
	}
	fails(t, "llama.cpp libraries not found", "prune", "--engine", "--keep", "32", "-o", "out2", "K3.gguf")
	t.Setenv("GGUFREAP_LLAMA_LIB", t.TempDir())
	if r := programtest.Run(t, "prune", "--keep", "32", "-o", "out3", "K3.gguf"); r.Code != programtest.OK || !strings.Contains(r.Stderr, "llama.cpp was not asked") {
		t.Errorf("prune with a folder that has none: exit %d\n%s", r.Code, r.Stderr)
	}
}

// A model on a server is judged by its headers, of which alone something travels. What llama.cpp
// cannot open is not measured, and it is said what brings it here.
func TestEngineJudgesFromAfar(t *testing.T) {
	withEngine(t)
	t.Chdir(t.TempDir())
	programtest.Write(t, gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4}), gguf.Split{Shards: 2})
	server := httptest.NewServer(http.FileServer(http.Dir(".")))
	defer server.Close()
	address := server.URL + "/K3-00001-of-00002.gguf"
	here, afar := programtest.Succeed(t, "inspect", "--engine", "--ctx", "4096", "K3-00001-of-00002.gguf"), programtest.Succeed(t, "inspect", "--engine", "--ctx", "4096", address)
	_, verdict, found := strings.Cut(here, "\nengine ")
	if !found || !strings.Contains(afar, verdict) {
		t.Errorf("here inspect says\n%sof the address\n%s", here, afar)
	}
	fails(t, "wants its files on this machine", "calibrate", "--self-text", "100", "-o", "s.npz", address)
	fails(t, "ggufreap reshard --shards 2 -o DIR "+address, "calibrate", "--self-text", "100", "-o", "s.npz", address)
	if said := programtest.Succeed(t, "plan", "--keep", "32", address); !strings.Contains(said, "scores.npz MODEL, where the model's files are\n") {
		t.Errorf("plan advises to measure what calibrate cannot open:\n%s", said)
	}
}
