package inspect

import (
	"slices"
	"testing"

	"ggufreap/gguf"
)

func TestLayerKinds(t *testing.T) {
	flags := func(list ...bool) gguf.Value {
		var items []gguf.Value
		for _, b := range list {
			items = append(items, gguf.BoolValue(b))
		}
		return gguf.ArrayValue(gguf.Bool, items...)
	}
	type keys map[string]gguf.Value
	for _, tc := range []struct {
		name, architecture string
		keys               keys
		want               []layerKind
	}{
		{"one kind", "llama", keys{"attention.head_count_kv": gguf.Uint32Value(8)}, nil},
		{"one kind by list", "openelm", keys{"attention.head_count_kv": gguf.Uint32sValue(3, 4, 5)}, nil},
		{"kimi", "kimi-linear", keys{"attention.head_count_kv": gguf.Int32sValue(0, 0, 0, 1)}, []layerKind{{"KDA", 3}, {"MLA", 1}}},
		{"other hybrid", "jamba", keys{"attention.head_count_kv": gguf.Uint32sValue(0, 8, 0)}, []layerKind{{"recurrent", 2}, {"attention", 1}}},
		{"blocks without attention", "deci", keys{"attention.head_count": gguf.Uint32sValue(4, 0), "attention.head_count_kv": gguf.Uint32sValue(2, 0)},
			[]layerKind{{"without attention", 1}, {"attention", 1}}},
		{"linear maps", "deci", keys{"attention.head_count": gguf.Uint32sValue(4, 0, 4, 4), "attention.head_count_kv": gguf.Uint32sValue(2, 0, 0, 2)},
			[]layerKind{{"without attention", 1}, {"linear attention", 1}, {"attention", 2}}},
		{"convolution", "lfm2moe", keys{"attention.head_count_kv": gguf.Uint32sValue(0, 8)}, []layerKind{{"short convolution", 1}, {"attention", 1}}},
		{"blocks of one thing", "nemotron_h_moe", keys{
			"attention.head_count_kv": gguf.Uint32sValue(0, 0, 2, 0, 0),
			"feed_forward_length":     gguf.Uint32sValue(0, 512, 0, 512, 0),
		}, []layerKind{{"recurrent", 2}, {"attention", 1}, {"feed-forward", 2}}},
		{"interval", "qwen3next", keys{"full_attention_interval": gguf.Uint32Value(4), "block_count": gguf.Uint32Value(48)},
			[]layerKind{{"linear attention", 36}, {"full attention", 12}}},
		{"interval and draft", "qwen35moe", keys{"full_attention_interval": gguf.Uint32Value(4), "block_count": gguf.Uint32Value(41), "nextn_predict_layers": gguf.Uint32Value(1)},
			[]layerKind{{"linear attention", 30}, {"full attention", 11}}},
		{"windows", "gpt-oss", keys{"attention.sliding_window_pattern": flags(true, false, true)}, []layerKind{{"full attention", 1}, {"sliding window", 2}}},
		{"window period", "gemma3", keys{"attention.sliding_window_pattern": gguf.Uint32Value(6)}, nil},
		{"nonsense", "qwen3next", keys{"full_attention_interval": gguf.Uint32Value(4), "block_count": gguf.Uint32Value(1 << 31)}, nil},
	} {
		md := gguf.NewMetadata()
		md.Set("general.architecture", gguf.TextValue(tc.architecture))
		for suffix, v := range tc.keys {
			md.Set(tc.architecture+"."+suffix, v)
		}
		if got := layerKinds(md); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
