package proof

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/manifest"
)

// said sets a key of the release.
func said(key string, value gguf.Value) func(f *forgery, c *gguf.Contents) {
	return func(_ *forgery, c *gguf.Contents) { c.Metadata.Set(key, value) }
}

// stated sets a key of the release, which then says that it was edited.
func stated(key string, value gguf.Value) func(f *forgery, c *gguf.Contents) {
	return func(_ *forgery, c *gguf.Contents) {
		c.Metadata.Set(key, value)
		c.Metadata.Set(edit.KeyEdited, gguf.TextsValue(key))
	}
}

var noDigest = gguf.TextValue("blake3:" + strings.Repeat("0", 64))

var keyForgeries = []forgeryKind{
	{name: "a template", contents: said("tokenizer.chat_template", gguf.TextValue("evil")), want: `key "tokenizer.chat_template"`},
	{name: "a key added", contents: said("x.y", gguf.Uint8Value(1)), want: `key "x.y" (u8) was added`},
	{name: "a key removed", contents: func(f *forgery, c *gguf.Contents) {
		c.Metadata = c.Metadata.Without(func(key string) bool { return key == "kimi-k3.expert_weights_scale" })
	}, want: `key "kimi-k3.expert_weights_scale" (f32) is missing`},
	{name: "a key retyped", contents: said("kimi-k3.expert_used_count", gguf.Uint64Value(4)), want: "has type u64, was u32"},
	{name: "fewer experts used", contents: said("kimi-k3.expert_used_count", gguf.Uint32Value(3)), want: `key "kimi-k3.expert_used_count" has another value`},
	{name: "another frequency", contents: said("kimi-k3.rope.freq_base", gguf.Float32Value(12345)), want: `key "kimi-k3.rope.freq_base"`},
	{name: "another architecture", contents: said("general.architecture", gguf.TextValue("kimi-linear")), want: `key "general.architecture" has another value`},
	{name: "another name", contents: said("general.name", gguf.TextValue("forged")), want: `key "general.name"`},
	{name: "the source's expert count", contents: said("kimi-k3.expert_count", gguf.Uint32Value(32)), want: "32"},
	{name: "another expert count", contents: said("kimi-k3.expert_count", gguf.Uint32Value(17)), want: "17"},
	{name: "the expert count retyped", contents: said("kimi-k3.expert_count", gguf.Uint64Value(16)), want: "has type u64, was u32"},
	{name: "weights digest claimed", contents: said("reap.source_weights_digest", noDigest), want: "does not fit the source's pin"},
	{name: "pin digest claimed", contents: said("reap.source_pin_digest", noDigest), want: "does not fit the source's pin"},
	{name: "structure digest claimed", contents: said("reap.source_structure_digest", noDigest), want: "does not fit the source's pin"},
	{name: "another count of the source claimed", contents: said("reap.source_expert_count", gguf.Uint32Value(64)), want: "does not fit the source's pin"},
	{name: "the source's count as text", contents: said("reap.source_expert_count", gguf.TextValue("32")), want: "does not fit the source's pin"},
	{name: "evidence claimed", contents: said("reap.criterion_evidence", gguf.TextValue("measured")), want: `key "reap.criterion_evidence" is measured, the plan says baseline`},
	{name: "a criterion claimed", contents: said("reap.criterion", gguf.TextValue("reap-mean")), want: `key "reap.criterion" is reap-mean, the plan says seeded-random`},
	{name: "another plan claimed", contents: said("reap.plan_digest", noDigest), want: `key "reap.plan_digest" is blake3:0000`},
	{name: "a key of our name space", contents: said("reap.certified", gguf.BoolValue(true)), want: `key "reap.certified"`},
	{name: "a payload beside the bases", contents: said("general.base_model.payload", gguf.TextValue(strings.Repeat("x", 1<<20))), want: `key "general.base_model.payload" (str) was added`},
	{name: "a base of another kind", contents: said("general.base_model.0.name", gguf.Uint32Value(1)), want: `key "general.base_model.0.name" (u32) was added`},
	{name: "a base below a number that is none", contents: said("general.base_model.00.name", gguf.TextValue("x")), want: `key "general.base_model.00.name" (str) was added`},
	{name: "a base that is claimed", contents: said("general.base_model.0.repo_url", gguf.TextValue("https://example.org/genuine")), args: []string{"--complete"}, want: `what the release says of models that it was made from, in 1 key: "general.base_model.0.repo_url"`},
	{name: "an edit that computes, stated", contents: stated("kimi-k3.expert_used_count", gguf.Uint32Value(3)), want: `key "kimi-k3.expert_used_count" has another value`},
	{name: "an edit that adds what computes, stated", contents: stated("kimi-k3.rope.scaling.factor", gguf.Float32Value(4)), want: `key "kimi-k3.rope.scaling.factor" (f32) was added`},
	{name: "another vocabulary, stated", contents: stated("tokenizer.ggml.pre", gguf.TextValue("llama3")), want: `key "tokenizer.ggml.pre"`},
	{name: "a derivation edited, stated", contents: stated("reap.source_weights_digest", noDigest), want: "does not fit the source's pin"},
	{name: "a template, stated", contents: stated("tokenizer.chat_template", gguf.TextValue("evil")), args: []string{"--strict"}, want: `1 key is not the source's, as the release itself states: "tokenizer.chat_template"`},
	{name: "edits that are no list", contents: said("reap.edited_keys", gguf.TextValue("tokenizer.chat_template")), want: `key "reap.edited_keys" is tokenizer.chat_template, which states no derivation`},
	{name: "a plan's digest of another kind", contents: said("reap.plan_digest", gguf.Uint32Value(0)), want: `key "reap.plan_digest" is 0, which states no derivation`},
	{name: "a criterion that holds a payload", contents: said("reap.criterion", gguf.TextsValue(strings.Repeat("x", 1<<20))), want: `which states no derivation`},
	{name: "evidence of no kind", contents: said("reap.criterion_evidence", gguf.TextValue("certified")), want: `key "reap.criterion_evidence" is certified, which states no derivation`},
	{name: "a key of the split", contents: said("split.payload", gguf.TextValue(strings.Repeat("x", 1<<20))), args: []string{"--strict"}, want: `"split.payload", 1,048,584 bytes of values`},
}

var documentForgeries = []forgeryKind{
	{name: "a plan that keeps others", files: func(f *forgery) {
		text, err := os.ReadFile(f.path("plan.json"))
		if err != nil {
			f.Fatal(err)
		}
		at := bytes.Index(text, []byte(`"keep"`))
		list := text[at:][:bytes.IndexByte(text[at:], ']')]
		last := list[bytes.LastIndexByte(list, ',')+1:]
		for i := 31; i >= 0; i-- {
			if !bytes.Contains(list, fmt.Appendf(nil, " %d,", i)) && !bytes.Contains(list, fmt.Appendf(nil, "\n        %d,", i)) && strings.TrimSpace(string(last)) != fmt.Sprint(i) {
				edited := bytes.Replace(list, last, bytes.Replace(last, bytes.TrimSpace(last), fmt.Append(nil, i), 1), 1)
				programtest.WriteText(f.T, f.path("plan.json"), strings.Replace(string(text), string(list), string(edited), 1))
				return
			}
		}
	}, want: "plan"},
	{name: "a plan of another criterion", files: func(f *forgery) { f.replace("plan.json", "seeded-random", "router-mass") }, want: "plan"},
	{name: "no plan", files: func(f *forgery) { os.Remove(f.path("plan.json")) }, args: []string{"--strict"}, want: "is not there; key"},
	{name: "no plan, and a criterion without one", contents: func(f *forgery, c *gguf.Contents) {
		said("reap.criterion", gguf.TextValue("reap-mean"))(f, c)
		c.Metadata = c.Metadata.Without(func(key string) bool { return key == "reap.plan_digest" })
	}, files: func(f *forgery) { os.Remove(f.path("plan.json")) }, args: []string{"--strict"}, want: `is not there; key "reap.criterion" says reap-mean`},
	{name: "what the source's pin declares", files: func(f *forgery) {
		f.declare("license", "mit")
	}, args: []string{"--strict"}, want: "source.pin.json: is the pin of the source, and declares other things of it than the one that was given"},
	{name: "what a pin declares and nobody measured", files: func(f *forgery) {
		f.declare("revision", "9f62e4e")
	}, args: []string{"--complete"}, want: `what pins declare is in no digest: "source.pin.json: revision"`},
	{name: "the pin of another model", unlisted: func(f *forgery) {
		os.Remove(f.path(manifest.PinName))
		os.Remove(f.path(manifest.SumsName))
		programtest.Succeed(f.T, "pin", "-o", f.path(manifest.PinName), filepath.Dir(f.source.Paths()[0]))
		f.list()
	}, want: "the pin says"},
	{name: "no list", unlisted: func(f *forgery) { os.Remove(f.path(manifest.SumsName)) }, args: []string{"--complete"}, want: "there is no MANIFEST.sha256"},
	{name: "a list without a shard", unlisted: func(f *forgery) {
		text, err := os.ReadFile(f.path(manifest.SumsName))
		if err != nil {
			f.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "-00004-of-") {
				lines = append(lines, line)
			}
		}
		programtest.WriteText(f.T, f.path(manifest.SumsName), strings.Join(lines, ""))
	}, want: "is a model file that MANIFEST.sha256 does not list"},
	{name: "another list that disagrees", unlisted: func(f *forgery) {
		programtest.WriteText(f.T, f.path("SHA256SUMS"), strings.Repeat("0", 64)+"  "+filepath.Base(f.shards()[0])+"\n")
	}, want: "SHA256SUMS says 0000"},
	{name: "another list for a file that nothing vouches for", files: func(f *forgery) {
		programtest.WriteText(f.T, f.path("README.md"), "trust me\n")
		programtest.WriteText(f.T, f.path("SHA256SUMS"), fmt.Sprintf("%x  README.md\n", sha256.Sum256([]byte("trust me\n"))))
	}, args: []string{"--complete"}, want: `2 files are checked against an unsigned list alone: "README.md", "SHA256SUMS"`},
	{name: "a sum beside a shard that disagrees", unlisted: func(f *forgery) {
		programtest.WriteText(f.T, f.shards()[0]+".sha256", strings.Repeat("0", 64)+"\n")
	}, want: ".sha256 says 0000"},
}

func (f *forgery) replace(name, old, new string) {
	text, err := os.ReadFile(f.path(name))
	if err != nil || !bytes.Contains(text, []byte(old)) {
		f.Fatalf("%s: no %q (%v)", name, old, err)
	}
	programtest.WriteText(f.T, f.path(name), strings.Replace(string(text), old, new, 1))
}

// declare puts a copy of the source's pin into the release in which somebody said something.
func (f *forgery) declare(field, text string) {
	home := filepath.Dir(filepath.Dir(f.source.Paths()[0]))
	pin, err := os.ReadFile(filepath.Join(home, "source.pin.json"))
	if err != nil {
		f.Fatal(err)
	}
	programtest.WriteText(f.T, f.path("source.pin.json"), string(pin))
	f.replace("source.pin.json", fmt.Sprintf(`"%s": null`, field), fmt.Sprintf(`"%s": "%s"`, field, text))
}

// other returns the text of the pin of a model like the source with other experts.
func (f *forgery) other() string {
	spec := programtest.SmallK3()
	programtest.ChangeBytes(&spec, "blk.1.ffn_up_exps.weight", 0)
	if _, err := spec.Write(f.path("other"), gguf.Split{Shards: 9}); err != nil {
		f.Fatal(err)
	}
	programtest.Succeed(f.T, "pin", "-o", f.path("other.json"), f.path("other"))
	text, err := os.ReadFile(f.path("other.json"))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// field returns the first text that follows a name behind a place in a document.
func field(text, place, name string) string {
	_, rest, _ := strings.Cut(text, place)
	_, rest, _ = strings.Cut(rest, `"`+name+`": "`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

const expertsPlace = `"blk.1.ffn_up_exps.weight"`

var pinForgeries = []forgeryKind{
	{name: "the pin of another source", pin: func(f *forgery, _ string) string { return f.other() }, want: "it is another pin"},
	{name: "a pin with other experts under the genuine digest", pin: func(f *forgery, genuine string) string {
		experts := func(text string) string {
			_, rest, _ := strings.Cut(text, expertsPlace)
			return field(rest, `"slabs"`, "blake3")
		}
		return strings.Replace(genuine, experts(genuine), experts(f.other()), 1)
	}, want: "weights, experts and metadata give"},
	{name: "a pin with another tensor", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, field(genuine, expertsPlace, "blake3"), field(f.other(), expertsPlace, "blake3"), 1)
	}, want: "the tensors give"},
	{name: "a pin with another value", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, field(genuine, `"metadata": [`, "blake3"), strings.Repeat("0", 64), 1)
	}, want: "the keys give"},
	{name: "a pin of another architecture", pin: func(f *forgery, genuine string) string {
		return strings.Replace(genuine, `"architecture": "kimi-k3"`, `"architecture": "llama"`, 1)
	}, want: "has the digest of another"},
	{name: "a pin under the genuine digest, in capitals", pin: func(f *forgery, genuine string) string {
		digest := field(genuine, "{", "pin_digest")
		return strings.Replace(genuine, digest, "blake3:"+strings.ToUpper(strings.TrimPrefix(digest, "blake3:")), 1)
	}, want: "lower-case"},
}
