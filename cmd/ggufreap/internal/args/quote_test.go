package args

import (
	"testing"
)

func TestShellQuote(t *testing.T) {
	got := CommandLine([]string{"ggufreap", "--key=a.b", "my model.gguf", "it's", "", "$HOME", "模"})
	if want := `ggufreap --key=a.b 'my model.gguf' 'it'\''s' '' '$HOME' '模'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
