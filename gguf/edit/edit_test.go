package edit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

func sample() *gguf.Metadata {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("x"))
	md.Set("general.name", gguf.TextValue("old"))
	md.Set("general.odd", gguf.Int8Value(-3))
	md.Set("general.tags", gguf.TextsValue("a", "b"))
	md.Set("general.list", gguf.ArrayValue(gguf.Uint16, gguf.Uint16Value(7)))
	md.Set("x.rope.freq_base", gguf.Float32Value(1e4))
	md.Set("tokenizer.ggml.eos_token_id", gguf.Uint32Value(2))
	return md
}

func TestApply(t *testing.T) {
	set := func(key, typ, data string) Change { return Change{Key: key, Value: &Text{typ, data}} }
	for _, test := range []struct {
		change Change
		key    string
		want   gguf.Value
	}{
		{set("general.name", "", "new name"), "general.name", gguf.TextValue("new name")},
		{set("general.odd", "", "-128"), "general.odd", gguf.Int8Value(-128)},
		{set("general.odd", "u64", "18446744073709551615"), "general.odd", gguf.Uint64Value(1<<64 - 1)},
		{set("general.tags", "", `["c", "ü\n"]`), "general.tags", gguf.TextsValue("c", "ü\n")},
		{set("general.tags", "", `[]`), "general.tags", gguf.TextsValue()},
		{set("general.list", "", `[1, 65535]`), "general.list", gguf.ArrayValue(gguf.Uint16, gguf.Uint16Value(1), gguf.Uint16Value(65535))},
		{set("general.new", "bool", "true"), "general.new", gguf.BoolValue(true)},
		{set("general.new", "f64", "1e-3"), "general.new", gguf.Float64Value(1e-3)},
		{set("tokenizer.ggml.eos_token_id", "", "9"), "tokenizer.ggml.eos_token_id", gguf.Uint32Value(9)},
		{set("general.url", "", "x"), "general.url", gguf.TextValue("x")},
		{set("tokenizer.chat_template", "", "{{ a }}\n"), "tokenizer.chat_template", gguf.TextValue("{{ a }}\n")},
		{set("tokenizer.ggml.eot_token_id", "", "3"), "tokenizer.ggml.eot_token_id", gguf.Uint32Value(3)},
		{set("tokenizer.ggml.add_bos_token", "", "true"), "tokenizer.ggml.add_bos_token", gguf.BoolValue(true)},
		{set("general.base_model.0.name", "", "x"), "general.base_model.0.name", gguf.TextValue("x")},
		{set("general.base_model.count", "", "1"), "general.base_model.count", gguf.Uint32Value(1)},
		{set("general.languages", "", `["en"]`), "general.languages", gguf.TextsValue("en")},
		{Change{Key: "general.odd", Rename: "general.even"}, "general.even", gguf.Int8Value(-3)},
	} {
		before := sample()
		md, err := Apply(before, []Change{test.change}, false)
		if err != nil {
			t.Errorf("%+v: %v", test.change, err)
			continue
		}
		got, ok := md.Get(test.key)
		if d, err := gguf.Compare(got, test.want); !ok || err != nil || !d.Same() || got.TypeName() != test.want.TypeName() {
			t.Errorf("%+v: got %s, %v", test.change, got.Describe(), err)
		}
		place := slices.Index(before.Keys(), test.change.Key)
		if place >= 0 && md.Keys()[place] != test.key {
			t.Errorf("%+v: the key has moved: %q", test.change, md.Keys())
		}
		if old, _ := before.Get("general.name"); !slices.Equal(before.Keys(), sample().Keys()) || old.Describe() != gguf.TextValue("old").Describe() {
			t.Errorf("%+v: the metadata that was given is changed", test.change)
		}
	}
	md, err := Apply(sample(), []Change{{Key: "general.odd"}, {Key: "general.name"}}, false)
	if err != nil || md.Len() != sample().Len()-2 {
		t.Errorf("removing two keys: %q, %v", md.Keys(), err)
	}
}

func TestApplyRefuses(t *testing.T) {
	set := func(key, typ, data string) Change { return Change{Key: key, Value: &Text{typ, data}} }
	for _, test := range []struct {
		change Change
		want   string
	}{
		{set("general.odd", "", "128"), "128"},
		{set("general.odd", "", "1.5"), `"1.5" is no i8`},
		{set("general.odd", "u64", "-1"), "is no u64"},
		{set("general.odd", "u32", ""), "is no u32"},
		{set("general.new", "", "x"), "nothing says what type"},
		{set("general.new", "u33", "1"), `"u33" is not a type`},
		{set("general.new", "arr[]", "[]"), "a list of lists"},
		{set("general.new", "bool", "1"), "want true or false"},
		{set("general.new", "f32", "NaN"), "no finite f32"},
		{set("general.new", "f32", "1e39"), "no finite f32"},
		{set("general.tags", "", "c"), "want a JSON list of str"},
		{set("general.tags", "", "null"), "want a JSON list of str"},
		{set("general.tags", "", "[1]"), "item 1 is 1, want a string"},
		{set("general.tags", "", `["a", null]`), "item 2 is null"},
		{set("general.list", "", "[1, 65536]"), "item 2"},
		{set("general.name", "", "a\xffb"), "byte 1 of the text is no UTF-8"},
		{set("general.name", "str", "\xed\xa0\x80"), "byte 0 of the text"},
		{set("general.tags", "", "[\"a\xff\"]"), "item 1"},
		{set("y.context_length", "", "1"), "nothing says what type"},
		{set("split.count", "", "2"), "how the model is cut"},
		{set("reap.plan_digest", "str", "x"), "states how the model was made"},
		{Change{Key: "general.none"}, "is not there"},
		{Change{Key: "general.none", Rename: "general.x"}, "is not there"},
		{Change{Key: "general.name", Rename: "general.odd"}, "is there already"},
		{Change{Key: "general.name", Rename: "split.no"}, "how the model is cut"},
	} {
		if _, err := Apply(sample(), []Change{test.change}, true); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.change, err, test.want)
		}
	}
	for _, key := range []string{"x.rope.freq_base", "x.expert_count", "general.architecture", "general.alignment", "tokenizer.ggml.tokens", "tokenizer.ggml.model",
		"adapter.lora.alpha", "xielu.alpha_n", "diffusion.shift_logits", "tokenizer.rwkv.world"} {
		if _, err := Apply(sample(), []Change{set(key, "u32", "1")}, false); !errors.Is(err, ErrComputes) {
			t.Errorf("%s: got %v, want %v", key, err, ErrComputes)
		}
		if _, err := Apply(sample(), []Change{set(key, "u32", "1")}, true); err != nil {
			t.Errorf("%s, forced: %v", key, err)
		}
	}
}

// A key below the architecture has the type that converters give it.
func TestKnownArchitectureKeys(t *testing.T) {
	md, err := Apply(sample(), []Change{{Key: "x.context_length", Value: &Text{"", "4096"}}, {Key: "x.rope.scaling.factor", Value: &Text{"", "4"}}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"x.context_length": "u32", "x.rope.scaling.factor": "f32"} {
		if v, _ := md.Get(key); v.TypeName() != want {
			t.Errorf("%s is %s, want %s", key, v.TypeName(), want)
		}
	}
}

func TestStateAddsUp(t *testing.T) {
	md := sample()
	State(md, nil)
	if _, ok := md.Get(KeyEdited); ok {
		t.Error("nothing was edited")
	}
	State(md, []Change{{Key: "b"}, {Key: "a", Rename: "c"}})
	State(md, []Change{{Key: "a"}, {Key: "d"}})
	if got := Edited(md); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("edited are %q", got)
	}
}
