package verify

import (
	"fmt"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// withKey returns a model of no tensors whose metadata has one key besides its architecture.
func withKey(t *testing.T, key string, v gguf.Value) *gguf.Model {
	t.Helper()
	md := gguf.NewMetadata()
	md.Set(gguf.KeyArchitecture, gguf.TextValue("test"))
	md.Set(key, v)
	m, err := gguftest.Spec{Name: "m", Metadata: md}.Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMisfits gives well-known keys values of all kinds.
func TestMisfits(t *testing.T) {
	for _, tc := range []struct {
		key   string
		value gguf.Value
		want  string // "" for no warning
	}{
		{"general.name", gguf.Uint32Value(7), "is 7 (u32), want a text"},
		{"general.license", gguf.TextsValue("mit", "apache-2.0"), "is str[] of 41 bytes, want a text"},
		{"general.file_type", gguf.TextValue("F16"), `is "F16", want a count`},
		{"general.file_type", gguf.Int64Value(1), ""},
		{"general.tags", gguf.TextValue("moe"), `is "moe", want a list of texts`},
		{"general.tags", gguf.TextsValue(), ""},
		{"general.unheard_of", gguf.Float32Value(1), ""},
		{"tokenizer.ggml.tokens", gguf.TextValue("a"), `is "a", want a list of texts`},
		{"tokenizer.ggml.scores", gguf.Int32sValue(1), "is i32[] of 16 bytes, want a list of floating-point numbers"},
		{"tokenizer.ggml.token_type", gguf.Uint32sValue(1), ""},
		{"tokenizer.ggml.bos_token_id", gguf.Int32Value(-1), "is -1 (i32), want a count"},
		{"tokenizer.ggml.add_bos_token", gguf.Uint8Value(1), "is 1 (u8), want a bool"},
		{"test.context_length", gguf.TextValue("4096"), `is "4096", want a count`},
		{"test.block_count", gguf.Float32Value(2), "is 2 (f32), want a count"},
		{"test.block_count", gguf.Uint8Value(2), ""},
		{"test.expert_count", gguf.TextValue("8"), `is "8", want a count`},
		{"test.expert_count", gguf.Uint64Value(1 << 40), ""},
		{"test.expert_used_count", gguf.Int32sValue(2, 4), ""},
		{"test.expert_used_count", gguf.Int32Value(-1), "is -1 (i32), want a count or a list of integers"},
		{"test.expert_weights_scale", gguf.Float64Value(1), ""},
		{"test.rope.freq_base", gguf.Uint32Value(10000), "is 10000 (u32), want a floating-point number or a list of floating-point numbers"},
		{"other.context_length", gguf.TextValue("4096"), ""},
	} {
		t.Run(fmt.Sprintf("%s %s", tc.key, tc.value.TypeName()), func(t *testing.T) {
			got := Warnings(withKey(t, tc.key, tc.value))
			var want []gguf.Problem
			if tc.want != "" {
				want = []gguf.Problem{{Where: fmt.Sprintf("m.gguf: key %q", tc.key), What: tc.want}}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestSoundModelsHaveNoMisfits holds the table to what llama.cpp writes for every
// architecture with routed experts, and to the generated model.
func TestSoundModelsHaveNoMisfits(t *testing.T) {
	specs := []gguftest.Spec{gguftest.K3(gguftest.K3Options{Layers: 2, Experts: 4, Used: 2, Hidden: 32, Latent: 32, Width: 32})}
	for _, name := range gguftest.Architectures() {
		s, err := gguftest.Architecture(name, gguftest.ArchitectureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	if len(specs) < 42 {
		t.Errorf("%d models, want 42 or more", len(specs))
	}
	for _, s := range specs {
		m, err := s.Model(gguf.Split{})
		if err != nil {
			t.Fatal(err)
		}
		if got := misfits(m); len(got) > 0 {
			t.Errorf("%s: %v", s.Name, got)
		}
	}
}
