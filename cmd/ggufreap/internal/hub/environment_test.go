package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToken finds the token where the hub's own client does, in the order that it has.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"token": "hf_home\n", "other": "  hf_other\r\n", "bad": "hf_a\nX-Evil: 1", ".cache/huggingface/token": "hf_cache", "xdg/huggingface/token": "hf_xdg"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		set  map[string]string
		want string // "!" for an error
	}{
		{nil, "hf_cache"},
		{map[string]string{"XDG_CACHE_HOME": "~/xdg"}, "hf_xdg"},
		{map[string]string{"HF_HOME": "~"}, "hf_home"},
		{map[string]string{"HF_HOME": dir, "HF_TOKEN_PATH": "~/other"}, "hf_other"},
		{map[string]string{"PLACE": dir, "HF_TOKEN_PATH": "$PLACE/other"}, "hf_other"},
		{map[string]string{"HF_TOKEN_PATH": "~nobody/other"}, ""},
		{map[string]string{"HF_TOKEN_PATH": filepath.Join(dir, "none")}, ""},
		{map[string]string{"HF_TOKEN_PATH": filepath.Join(dir, "bad")}, "!"},
		{map[string]string{"HF_HOME": "~", "HF_TOKEN": "hf_own\n"}, "hf_own"},
		{map[string]string{"HF_HOME": "~", "HF_TOKEN": " \n"}, "hf_home"},
		{map[string]string{"HF_HOME": "~", "HUGGING_FACE_HUB_TOKEN": "hf_old"}, "hf_old"},
		{map[string]string{"HF_TOKEN": "hf_a\r\nX-Evil: 1"}, "!"},
		{map[string]string{"HF_TOKEN": "hf_ä"}, "!"},
		{map[string]string{"HF_TOKEN": strings.Repeat("h", 5000)}, "!"},
		{map[string]string{"HF_TOKEN": "hf_own", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "yes"}, ""},
	} {
		t.Setenv("HOME", dir)
		for _, name := range []string{"HF_HOME", "HF_TOKEN", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "XDG_CACHE_HOME"} {
			t.Setenv(name, tc.set[name])
		}
		t.Setenv("PLACE", tc.set["PLACE"])
		got, err := Environment()
		switch {
		case tc.want == "!" && (err == nil || strings.Contains(err.Error(), "hf_")):
			t.Errorf("%v: %q, %v", tc.set, got.Token, err)
		case tc.want != "!" && (err != nil || got.Token != tc.want):
			t.Errorf("%v: %q, %v; want %q", tc.set, got.Token, err, tc.want)
		}
	}
}
