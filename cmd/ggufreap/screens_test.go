package main

import (
	"bytes"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// TestScreensFitTheTerminal prints models with long names and values, and those of the
// published size.
func TestScreensFitTheTerminal(t *testing.T) {
	long := with(smallMoE(), func(md *gguf.Metadata) {
		md.Set("general.name", gguf.TextValue(strings.Repeat("a long name ", 20)))
		md.Set("general.source.url", gguf.TextValue("https://example.org/"+strings.Repeat("folder/", 20)))
		md.Set("general.author", gguf.TextValue("one of the many authors, and the other ones"))
		md.Set("general.file_type", gguf.TextValue("F16"))
	})
	for _, s := range []gguftest.Spec{long, gguftest.K3Real(1536, gguf.IQ1_S)} {
		m, err := s.Model(gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		in, err := inspect.New(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{80, 120} {
			var out bytes.Buffer
			con := ui.New(nil, &out, nil)
			con.Width = width
			inspect.Show(con, in)
			inspect.ListTensors(con, m)
			con.Flush()
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSuffix(line, "\n"); text.Columns(line) >= width {
					t.Errorf("%s: %d columns on a terminal of %d: %q", s.Name, text.Columns(line), width, line)
				}
			}
		}
	}
}
