package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// labelled is a source that has the labels of a converter, in a folder of its own.
func labelled(t *testing.T) (source, pin string) {
	t.Helper()
	plain := writeModel(t, smallK3(), 3)[0]
	source, pin = filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "source.json")
	succeed(t, "edit", "--no-provenance-keys", "--set", "general.size_label:str=32x1M", "--set", "general.base_model.count:u32=1",
		"--set", "general.base_model.0.name:str=Older", "-o", source, plain)
	succeed(t, "pin", "--repo", "moonlit-ai/K3-tiny", "-o", pin, source)
	return source, pin
}

// TestPruneStatesLineage names the source, where its pin says where it is published, behind
// what it was made from itself, and proves what was changed to be stated.
func TestPruneStatesLineage(t *testing.T) {
	source, pin := labelled(t)
	out := filepath.Join(t.TempDir(), "out")
	r := ggufreap(t, "prune", "--keep", "16", "--source-pin", pin, "--model-name", "K3 tiny, half", "--new-size-label", "-o", out, source)
	if r.code != exitOK {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	md := mustOpenModel(t, out).Metadata()
	for key, want := range map[string]string{
		"general.base_model.0.name":         "Older",
		"general.base_model.1.name":         "K3 Tiny",
		"general.base_model.1.organization": "Moonlit Ai",
		"general.base_model.1.repo_url":     "https://huggingface.co/moonlit-ai/K3-tiny",
		"general.name":                      "K3 tiny, half",
	} {
		if got := md.Text(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if n, _ := md.Uint("general.base_model.count"); n != 2 {
		t.Errorf("the count of base models is %d", n)
	}
	if label := md.Text("general.size_label"); !strings.HasPrefix(label, "16x") {
		t.Errorf("the size label is %q", label)
	}
	if said := succeed(t, "verify", "--source-pin", pin, out); strings.Contains(said, "stale") {
		t.Error(said)
	}
}

// TestLabelsStayByDefault changes nothing that nobody declared and no flag asks for, and says
// that the label is stale.
func TestLabelsStayByDefault(t *testing.T) {
	source, pin := labelled(t)
	for _, line := range [][]string{{"--source-pin", pin, "--no-provenance-keys"}, {}} {
		out := filepath.Join(t.TempDir(), "out")
		r := ggufreap(t, append(append([]string{"prune", "--keep", "16"}, line...), "-o", out, source)...)
		if r.code != exitOK || !strings.Contains(r.stderr, `general.size_label stays "32x1M"`) {
			t.Fatalf("exit %d\n%s", r.code, r.stderr)
		}
		was, is := mustOpenModel(t, source).Metadata(), mustOpenModel(t, out).Metadata()
		for key, v := range was.All() {
			got, _ := is.Get(key)
			if d, err := gguf.Compare(v, got); !strings.HasPrefix(key, "split.") && key != "kimi-k3.expert_count" && (err != nil || !d.Same()) {
				t.Errorf("key %q was changed", key)
			}
		}
		if r := ggufreap(t, "verify", out); r.code != exitOK || !strings.Contains(r.stdout, `"general.size_label" is stale: it says "32x1M", and each layer has 16 experts`) {
			t.Errorf("exit %d\n%s", r.code, r.stdout)
		}
		if r := ggufreap(t, "verify", "--strict", out); r.code != exitDiffers {
			t.Errorf("strict: exit %d", r.code)
		}
	}
}
