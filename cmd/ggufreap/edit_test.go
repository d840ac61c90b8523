package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// mustOpenModel opens a model for the length of a test.
func mustOpenModel(t *testing.T, path string) *gguf.Model {
	t.Helper()
	m, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestEditChangesNothingElse edits a set of shards and one file. All that was not named keeps
// its bytes and place, later shards are the source's files, and the edit taken back gives the
// source again.
func TestEditChangesNothingElse(t *testing.T) {
	for _, shards := range []int{1, 3} {
		files := writeModel(t, smallK3(), shards)
		template := filepath.Join(t.TempDir(), "chat.jinja")
		if err := os.WriteFile(template, []byte("{{ a }}\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		out, back := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "back")
		source := mustOpenModel(t, files[0])
		r := ggufreap(t, "edit", "--set", "general.name=A longer name than it had", "--set", "general.url:str=x", "--set", "tokenizer.chat_template:str=@"+template, "-o", out, files[0])
		if r.code != exitOK || !strings.Contains(r.stdout, "every tensor is copied byte for byte") {
			t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		edited := mustOpenModel(t, out)
		if got := edited.Metadata().Text("tokenizer.chat_template"); got != "{{ a }}\n" {
			t.Errorf("the template is %q", got)
		}
		named := map[string]bool{"general.name": true, "general.url": true, "tokenizer.chat_template": true, "reap.edited_keys": true}
		for key, v := range source.Metadata().All() {
			got, ok := edited.Metadata().Get(key)
			if d, err := gguf.Compare(v, got); !named[key] && (!ok || err != nil || !d.Same()) {
				t.Errorf("key %q was changed", key)
			}
		}
		for i, f := range files[1:] {
			want, err := os.ReadFile(f)
			got, err2 := os.ReadFile(filepath.Join(out, filepath.Base(f)))
			if err != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("shard %d is not the source's: %v, %v", i+2, err, err2)
			}
		}
		if r := ggufreap(t, "diff", files[0], out); r.code != exitDiffers || !strings.Contains(r.stdout, "general.name") {
			t.Errorf("diff: exit %d\n%s", r.code, r.stdout)
		}
		name := source.Metadata().Text("general.name")
		args := []string{"edit", "--set", "general.name=" + name, "--unset", "general.url", "--no-provenance-keys", "-o", back}
		if _, there := source.Metadata().Get("tokenizer.chat_template"); !there {
			args = append(args, "--unset", "tokenizer.chat_template")
		}
		if r := ggufreap(t, append(args, out)...); r.code != exitOK {
			t.Fatalf("exit %d\n%s", r.code, r.stderr)
		}
		if r := ggufreap(t, "diff", files[0], back); !strings.Contains(r.stdout, "metadata        1 key differs") {
			t.Errorf("taken back: exit %d\n%s", r.code, r.stdout)
		}
	}
}

// TestEditedKeysAreStated proves releases whose keys were changed to be made of the pinned
// source. A changed key that is not stated is found.
func TestEditedKeysAreStated(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	pin := filepath.Join(t.TempDir(), "source.pin.json.zst")
	if r := ggufreap(t, "pin", "-o", pin, source); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	set := []string{"--set", "general.name=Mine", "--set", "general.tags:str[]=[\"a\"]"}
	for name, line := range map[string][]string{
		"edit":    {"edit"},
		"reshard": {"reshard", "--shards", "2"},
		"prune":   {"prune", "--keep", "16", "--source-pin", pin},
	} {
		out, hidden := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "hidden")
		line = append(line, set...)
		if r := ggufreap(t, append(line, "-o", out, source)...); r.code != exitOK {
			t.Fatalf("%s: exit %d\n%s", name, r.code, r.stderr)
		}
		if got := mustOpenModel(t, out).Metadata().Text("general.name"); got != "Mine" {
			t.Errorf("%s: the name is %q", name, got)
		}
		if r := ggufreap(t, "verify", "--source-pin", pin, out); r.code != exitOK {
			t.Errorf("%s: verify: exit %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		if name == "reshard" {
			continue
		}
		if r := ggufreap(t, append(line, "--no-provenance-keys", "-o", hidden, source)...); r.code != exitOK {
			t.Fatalf("%s: exit %d\n%s", name, r.code, r.stderr)
		}
		if r := ggufreap(t, "verify", "--source-pin", pin, hidden); r.code != exitDiffers || !strings.Contains(r.stdout, "general.name") {
			t.Errorf("%s, not stated: verify: exit %d\n%s", name, r.code, r.stdout)
		}
	}
}

// TestEditCarriesDocumentsOver edits and cuts anew a release with everything in its folder: what
// stays true comes along, the rest is named, and what is made proves itself.
func TestEditCarriesDocumentsOver(t *testing.T) {
	model := reportFolder(t)
	if err := os.WriteFile("terms.txt", []byte("Terms.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	succeed(t, "prune", "--plan", "plan.json", "--card", "--license-file", "terms.txt", "--source-pin", "source.json", "-o", "published", model)
	for name, line := range map[string][]string{
		"edited": {"edit", "--set", "general.url=x"},
		"recut":  {"reshard", "--shards", "2"},
	} {
		r := ggufreap(t, append(line, "-o", name, "published")...)
		if r.code != exitOK || !strings.Contains(r.stderr, "not carried over, since it may speak of the files as they were: README.md\n") {
			t.Fatalf("%s: exit %d\n%s", name, r.code, r.stderr)
		}
		for _, doc := range []string{"plan.json", "LICENSE", "source.pin.json.zst"} {
			was, err := os.ReadFile(filepath.Join("published", doc))
			is, err2 := os.ReadFile(filepath.Join(name, doc))
			if err != nil || err2 != nil || !bytes.Equal(was, is) {
				t.Errorf("%s: %s was not carried over: %v, %v", name, doc, err, err2)
			}
		}
		if said := succeed(t, "verify", name); !strings.Contains(said, "unproven        0 bytes") {
			t.Errorf("%s does not prove itself:\n%s", name, said)
		}
	}
}

// TestEditLinks gives untouched shards a second name. The same command again finds it all done,
// and a folder on another disk is refused before the first byte.
func TestEditLinks(t *testing.T) {
	files := writeModel(t, smallK3(), 3)
	out := filepath.Join(t.TempDir(), "out")
	line := []string{"edit", "--link", "--set", "general.url=x", "-o", out, files[0]}
	if said := succeed(t, line...); !strings.Contains(said, "linked          2 shards") {
		t.Error(said)
	}
	for i, path := range files {
		was, err := os.Stat(path)
		is, err2 := os.Stat(filepath.Join(out, filepath.Base(path)))
		if err != nil || err2 != nil || os.SameFile(was, is) != (i > 0) {
			t.Errorf("shard %d: %v, %v", i+1, err, err2)
		}
	}
	succeed(t, "verify", "--strict", out)
	if r := ggufreap(t, line...); r.code != exitOK || !strings.Contains(r.stderr, "finished: nothing was written") {
		t.Errorf("again: exit %d\n%s", r.code, r.stderr)
	}
	if r := ggufreap(t, "edit", "--set", "general.url=y", "--force", "-o", out, files[0]); r.code != exitFailed || !strings.Contains(r.stderr, "holds the source") {
		t.Errorf("a folder that shares the source's files: exit %d\n%s", r.code, r.stderr)
	}
}

// TestSetReadsStandardInput sets a template that a pipe delivers.
func TestSetReadsStandardInput(t *testing.T) {
	source := writeModel(t, smallK3(), 1)[0]
	out := filepath.Join(t.TempDir(), "out")
	r := ggufreapFrom(t, "{{ piped }}", "edit", "--set", "tokenizer.chat_template=@-", "-o", out, source)
	if r.code != exitOK {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	if got := mustOpenModel(t, out).Metadata().Text("tokenizer.chat_template"); got != "{{ piped }}" {
		t.Errorf("the template is %q", got)
	}
	r = ggufreapFrom(t, "x", "edit", "--set", "general.name=@-", "--set", "general.url=@-", "-o", out+"2", source)
	if r.code != exitFailed || !strings.Contains(r.stderr, "can be read once") {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
}

// TestForceRemovesSignatures replaces a signed release, whose signature fits nothing any more.
func TestForceRemovesSignatures(t *testing.T) {
	source := writeModel(t, smallK3(), 1)[0]
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "reshard", "--shards", "1", "-o", out, source)
	for _, name := range []string{"MANIFEST.sha256.sig", "model.sig", "provenance.dsse.json"} {
		if err := os.WriteFile(filepath.Join(out, name), []byte("signed"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := ggufreap(t, "reshard", "--shards", "2", "--name", "other", "--force", "-o", out, source)
	if r.code == exitOK {
		t.Fatal("a folder with another model was taken")
	}
	r = ggufreap(t, "edit", "--set", "general.url=x", "--force", "-o", out, source)
	if r.code != exitOK || strings.Count(r.stderr, "was removed: it vouched for the release that was replaced") != 3 {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
	if r := ggufreap(t, "verify", "--strict", out); r.code != exitOK {
		t.Errorf("verify: exit %d\n%s", r.code, r.stdout)
	}
}

func TestEditRefuses(t *testing.T) {
	source := writeModel(t, smallK3(), 3)[0]
	out := filepath.Join(t.TempDir(), "out")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "nothing says what to change"},
		{[]string{"--set", "general.name"}, "want KEY=VALUE"},
		{[]string{"--set", "=x"}, "want KEY=VALUE"},
		{[]string{"--rename", "general.name"}, "want OLD=NEW"},
		{[]string{"--set", "general.new=x"}, "--set KEY:TYPE=VALUE"},
		{[]string{"--set", "general.name=a\xff"}, "no UTF-8"},
		{[]string{"--set", "kimi-k3.rope.freq_base:f32=1"}, "--force changes it"},
		{[]string{"--set", "general.name=a", "--set", "general.name=b"}, `key "general.name" is to be changed twice`},
		{[]string{"--set", "general.name=a", "--unset", "general.name"}, `key "general.name" is to be changed twice`},
		{[]string{"--rename", "general.name=general.a", "--rename", "general.name=general.b"}, `key "general.name" is to be changed twice`},
		{[]string{"--set", "split.count=9", "--force"}, "how the model is cut"},
		{[]string{"--unset", "general.none"}, "is not there"},
		{[]string{"--unset", "general.zzzzzz"}, "inspect --keys MODEL lists all keys"},
		{[]string{"--unset", "general.nam"}, `did you mean "general.name"?`},
		{[]string{"--set", "general.nmae=a"}, `did you mean "general.name"?`},
		{[]string{"--set", "general.zzzzzz:u99=1"}, "--set KEY:TYPE=VALUE states a type"},
		{[]string{"--set", "general.name=@" + filepath.Join(out, "none")}, "no such file"},
	} {
		r := ggufreap(t, append(append([]string{"edit"}, test.args...), "-o", out, source)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, test.want) || exists(out) {
			t.Errorf("%q: exit %d, want %q\n%s", test.args, r.code, test.want, r.stderr)
		}
	}
}
