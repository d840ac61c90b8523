package loadable_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/loadable"
)

// every says how many damages there are for each that is tried: all are tens of thousands.
var every = flag.Int("every", 300, "try one of so many damages of each model")

// kind, unless it is "", is the kind of damage that is tried.
var kind = flag.String("kind", "", "try damages of this kind alone")

// childVariable names the list of files that a child of the test's process lets llama.cpp
// look at.
const childVariable = "GGUFREAP_TEST_MODELS"

// TestEngineAgrees lets llama.cpp and the rules look at small models of all architectures
// with experts, whole and damaged in every way that [damages] knows. What llama.cpp loads
// must have no finding, and what it refuses must have one. With -v the test prints the counts,
// with -args -every=1 it tries all damages.
func TestEngineAgrees(t *testing.T) {
	if list := os.Getenv(childVariable); list != "" {
		lookAt(t, list)
		return
	}
	tally := map[string]*agreement{}
	keys := engineKeys(t)
	tried := 0
	for _, m := range models(t) {
		t.Run(m.Name, func(t *testing.T) {
			batch := []trial{{m.Name, "none", m.Spec}}
			for _, d := range damages(m.Spec, keys) {
				if *kind != "" && d.kind != *kind {
					continue
				}
				if tried++; tried%*every == 0 {
					spec := m.Spec.Clone()
					d.do(&spec)
					batch = append(batch, trial{m.Name + ": " + d.what, d.kind, spec})
				}
			}
			judge(t, batch, tally)
		})
	}
	report(t, tally)
}

// engineKeys returns the keys that llama.cpp reads, as its library has them: with %s in the
// place of the architecture.
func engineKeys(t *testing.T) []string {
	t.Helper()
	library, err := os.ReadFile(filepath.Join(llamatest.Folder(t), "libllama.so"))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for text := range bytes.SplitSeq(library, []byte{0}) {
		if keyText.Match(text) && string(text) != "general.alignment" { // which [gguf.Open] looks at
			keys = append(keys, string(text))
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) < 200 {
		t.Fatalf("only %d keys are in the library", len(keys))
	}
	return keys
}

// keyText matches a key.
var keyText = regexp.MustCompile(`^(%s|general|tokenizer\.ggml)\.[a-z0-9_.]*[a-z0-9]$`)

// A model has a name beside its architecture's.
type model struct {
	Name string
	gguftest.Spec
}

// models are those of every architecture, in every form that tests have, and two of kimi-k3
// with a vocabulary.
func models(t *testing.T) []model {
	forms := []struct {
		name string
		o    gguftest.ArchitectureOptions
	}{
		{", separate", gguftest.ArchitectureOptions{Separate: true}},
		{", draft", gguftest.ArchitectureOptions{Draft: true}},
		{", unbiased", gguftest.ArchitectureOptions{Unbiased: true}},
	}
	var list []model
	for _, arch := range gguftest.Architectures() {
		usual := architecture(t, arch, gguftest.ArchitectureOptions{})
		list = append(list, model{arch, usual})
		for _, form := range forms {
			if spec := architecture(t, arch, form.o); len(spec.Tensors) != len(usual.Tensors) {
				list = append(list, model{arch + form.name, spec})
			}
		}
	}
	return append(list, model{"K3", gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4})},
		model{"K3, nine blocks", gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4, Layers: 9})})
}

func architecture(t *testing.T, name string, o gguftest.ArchitectureOptions) gguftest.Spec {
	t.Helper()
	spec, err := gguftest.Architecture(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// A trial is one model to look at.
type trial struct {
	name, kind string
	spec       gguftest.Spec
}

// An agreement counts what the two say of one kind of damage.
type agreement struct {
	refused, told, missed, accepted int
	explained                       int
}

// judge compares the rules with llama.cpp on a model that is whole, and on damaged ones of it,
// unless the first is of a form that llama.cpp does not have.
func judge(t *testing.T, batch []trial, tally map[string]*agreement) {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, len(batch))
	for i, tr := range batch {
		written, err := tr.spec.WriteSparse(filepath.Join(dir, fmt.Sprint(i)), gguf.Split{})
		if err != nil {
			t.Fatalf("%s: %v", tr.name, err)
		}
		paths[i] = written[0]
	}
	reasons := engineSays(t, paths)
	for i, reason := range reasons {
		if i > 0 && reasons[0] != "" {
			return
		}
		tr := batch[i]
		problems := check(t, paths[i])
		a := tally[tr.kind]
		if a == nil {
			a = &agreement{}
			tally[tr.kind] = a
		}
		a.add(t, tr, reason, problems)
	}
}

func (a *agreement) add(t *testing.T, tr trial, reason string, problems []gguf.Problem) {
	t.Helper()
	errors := 0
	for _, p := range problems {
		if p.Severity == gguf.Error {
			errors++
		}
	}
	switch {
	case reason == "" && errors > 0 && headAlone(tr):
		a.explained++
	case reason == "" && errors > 0:
		t.Errorf("%s: llama.cpp loads it, the rules say %q", tr.name, problems)
		a.accepted++
	case reason == "" && len(problems) > 0:
		t.Errorf("%s: llama.cpp loads it, the rules warn of %q", tr.name, problems)
	case reason == "":
		a.accepted++
	case errors > 0:
		a.refused++
	case len(problems) > 0:
		a.told++
	default:
		a.missed++
		t.Errorf("%s: llama.cpp says %q, the rules nothing", tr.name, reason)
	}
	if tr.kind == "none" && len(problems) > 0 && reason != "" {
		t.Logf("%s: llama.cpp refuses it as it is: %s", tr.name, reason)
	}
}

// headAlone reports whether the first block of a model with draft blocks is gone. llama.cpp
// then takes the file for the draft blocks alone, asks for nothing of the trunk, loads what
// is there, and has no model to compute with. The rules look for other blocks of the trunk.
func headAlone(tr trial) bool {
	return strings.Contains(tr.name, ", draft: ") && (strings.HasSuffix(tr.name, ": no block 0") || strings.HasSuffix(tr.name, ": no blk.0.attn_norm.weight"))
}

func check(t *testing.T, path string) []gguf.Problem {
	t.Helper()
	m, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return loadable.Check(m)
}

// crash matches the line that says how llama.cpp ended the process.
var crash = regexp.MustCompile(`GGML_ASSERT|^terminate called|^SIG[A-Z]+|^(fatal error|panic): `)

// engineSays returns why llama.cpp refuses each model, "" for those that it loads. Some of
// its checks end the process, so a child looks at the models, and another one goes on after
// the one at which it ended.
func engineSays(t *testing.T, paths []string) []string {
	t.Helper()
	reasons := make([]string, 0, len(paths))
	list := filepath.Join(t.TempDir(), "models")
	for len(reasons) < len(paths) {
		if err := os.WriteFile(list, []byte(strings.Join(paths[len(reasons):], "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
		before := len(reasons)
		cmd := exec.Command(os.Args[0], "-test.run=^TestEngineAgrees$")
		cmd.Env = append(os.Environ(), childVariable+"="+list, "GGML_NO_BACKTRACE=1")
		out, err := cmd.CombinedOutput()
		ended := ""
		for line := range strings.Lines(string(out)) {
			if said, ok := strings.CutPrefix(line, "look: "); ok {
				reasons = append(reasons, strings.TrimSpace(said))
			}
			if ended == "" && crash.MatchString(line) {
				ended = strings.TrimSpace(line)
			}
		}
		if len(reasons) < len(paths) {
			if err == nil || ended == "" {
				t.Fatalf("the child ended after %d of %d models:\n%s", len(reasons)-before, len(paths)-before, out[max(0, len(out)-2000):])
			}
			reasons = append(reasons, ended)
		}
	}
	return reasons
}

// lookAt prints a line for each model of a list: "look: " and why llama.cpp refuses it.
func lookAt(t *testing.T, list string) {
	engine := llamatest.Engine(t)
	f, err := os.Open(list)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		reason := ""
		var refusal *llama.Refusal
		if err := engine.Accepts(s.Text()); errors.As(err, &refusal) {
			reason = refusal.Reason
		} else if err != nil {
			t.Fatal(err)
		}
		fmt.Println("look: " + reason)
	}
}

func report(t *testing.T, tally map[string]*agreement) {
	t.Helper()
	const head, row = "%-26s %8s %8s %8s %8s %10s", "%-26s %8d %8d %8d %8d %10d"
	t.Logf(head, "damage", "loads", "refused", "told", "missed", "explained")
	var all agreement
	for _, kind := range slices.Sorted(maps.Keys(tally)) {
		a := tally[kind]
		t.Logf(row, kind, a.accepted, a.refused, a.told, a.missed, a.explained)
		all.accepted, all.refused, all.told = all.accepted+a.accepted, all.refused+a.refused, all.told+a.told
		all.missed, all.explained = all.missed+a.missed, all.explained+a.explained
	}
	t.Logf(row, "all", all.accepted, all.refused, all.told, all.missed, all.explained)
}
