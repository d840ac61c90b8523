package edit

import (
	"testing"

	"ggufreap/gguf"
)

// The titles are those of the tests of gguf-py.
func TestTitle(t *testing.T) {
	for id, want := range map[string]string{
		"Mixtral-8x7B-Instruct-v0.1":  "Mixtral 8x7B Instruct v0.1",
		"Meta-Llama-3-8B":             "Meta Llama 3 8B",
		"hermes-2-pro-llama-3-8b-DPO": "Hermes 2 Pro Llama 3 8b DPO",
		"":                            "",
	} {
		if got := title(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

func TestAddBase(t *testing.T) {
	md := gguf.NewMetadata()
	md.Set("general.name", gguf.TextValue("x"))
	for i, repo := range []string{"some-org/Big-Model-v1", "https://example.com/org/other", "alone", "some-org/Big-Model-v1"} {
		if err := AddBase(md, repo); err != nil {
			t.Fatal(err)
		}
		if n, _ := md.Uint(keyBaseCount); n != min(uint64(i)+1, 3) {
			t.Errorf("%q: count is %d", repo, n)
		}
	}
	for key, want := range map[string]string{
		"general.base_model.0.name":         "Big Model v1",
		"general.base_model.0.organization": "Some Org",
		"general.base_model.0.repo_url":     "https://huggingface.co/some-org/Big-Model-v1",
		"general.base_model.1.name":         "Other",
		"general.base_model.1.organization": "Org",
		"general.base_model.1.repo_url":     "https://example.com/org/other",
		"general.base_model.2.name":         "Alone",
		"general.base_model.2.organization": "",
		"general.base_model.2.repo_url":     "",
	} {
		if got := md.Text(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// A count keeps its type, and one that is full is refused.
func TestAddBaseToACount(t *testing.T) {
	md := gguf.NewMetadata()
	md.Set(keyBaseCount, gguf.Uint8Value(1))
	if err := AddBase(md, "a/b"); err != nil || md.Text("general.base_model.1.name") != "B" {
		t.Errorf("got %q, %v", md.Keys(), err)
	}
	if v, _ := md.Get(keyBaseCount); v.TypeName() != "u8" {
		t.Errorf("the count became %s", v.TypeName())
	}
	md.Set(keyBaseCount, gguf.Uint8Value(255))
	if err := AddBase(md, "a/c"); err == nil {
		t.Error("a count of 256 is no u8")
	}
}
