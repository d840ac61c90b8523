package inspect

import (
	"fmt"
	"io"
	"strings"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// A keyDocument is what "inspect --json --key" prints.
type keyDocument struct {
	Schema string        `json:"schema"`
	Key    document.Text `json:"key"`
	Type   string        `json:"type"`
	Length int64         `json:"length"`
	Value  any           `json:"value"`
}

// ShowKey prints one value whole.
func ShowKey(con *ui.Console, m *gguf.Model, key string, asJSON bool) error {
	return withKey(m, key, func(v gguf.Value) error { return printKey(con, key, v, asJSON) })
}

// WriteKey writes the bytes of one value, of a text without its length.
func WriteKey(w io.Writer, m *gguf.Model, key string) error {
	return withKey(m, key, func(v gguf.Value) error {
		r := v.Reader()
		if v.Type() == gguf.Text {
			if _, err := io.CopyN(io.Discard, r, 8); err != nil {
				return err
			}
		}
		_, err := io.Copy(w, r)
		return err
	})
}

func withKey(m *gguf.Model, key string, do func(gguf.Value) error) error {
	v, ok := m.Metadata().Get(key)
	if !ok {
		return missingKey(m, key)
	}
	if err := do(v); err != nil {
		return fmt.Errorf("%s: key %q: %w", text.Safe(m.Files[0].Name), key, err)
	}
	return nil
}

// ListKeys prints the keys that begin so, in the order of the file.
func ListKeys(con *ui.Console, m *gguf.Model, prefix string) error {
	if !m.HasMetadata() {
		return fmt.Errorf("%s: metadata is not known: %s", text.Safe(m.Name), noFirstShard)
	}
	cols := []table.Column{table.Left("key"), table.Left("type"), table.Left("value")}
	con.Table("", cols, func(yield func([]string) bool) {
		for key, v := range m.Metadata().All() {
			if strings.HasPrefix(key, prefix) && !yield([]string{text.Abridge(text.Safe(key)), v.TypeName(), metadata.Short(v)}) {
				return
			}
		}
	})
	return nil
}

func printKey(con *ui.Console, key string, v gguf.Value, asJSON bool) error {
	if err := metadata.CheckPrintable(v); err != nil {
		return err
	}
	if asJSON {
		doc := keyDocument{"ggufreap/value/v1", document.Text(key), v.TypeName(), v.Len(), document.Value{Value: v}}
		if v.Type() == gguf.Array {
			doc.Value = document.Items(v)
		}
		return con.JSON(doc)
	}
	if v.Type() == gguf.Array {
		return v.Each(func(_ int64, e gguf.Value) error {
			line, err := plain(con, e, "")
			con.Printf("%s\n", line)
			return err
		})
	}
	line, err := plain(con, v, "\n\t")
	con.Printf("%s\n", line)
	return err
}

// plain writes a value as people read it. In a pipe, where another program reads it, nothing
// is lost: a text that holds what has to be spelled out, but for the runes of keep, or that
// looks like one in a document, is written as in a document.
func plain(con *ui.Console, v gguf.Value, keep string) (string, error) {
	if v.Type() != gguf.Text {
		return metadata.Line(v)
	}
	s, err := document.TextOf(v)
	if err != nil {
		return "", err
	}
	if con.Width == 0 && (text.UnsafeAt(s, keep) >= 0 || strings.HasPrefix(s, `"`) || strings.HasPrefix(s, `{"base64"`)) {
		return document.Line(v)
	}
	if keep == "" {
		return text.Safe(s), nil
	}
	return text.SafeLines(s), nil
}

func missingKey(m *gguf.Model, key string) error {
	if !m.HasMetadata() {
		return fmt.Errorf("%s: metadata key %q is not known: %s", text.Safe(m.Name), key, noFirstShard)
	}
	err := fmt.Errorf("%s: no metadata key %q", text.Safe(m.Files[0].Name), key)
	md := m.Metadata()
	if full := md.ArchKey(key); hasKey(md, full) {
		return hint.With(err, "did you mean %q?", full)
	}
	if near := args.Closest(key, md.Keys()); near != "" {
		return hint.With(err, "did you mean %q?", near)
	}
	return hint.With(err, "inspect --keys lists all keys")
}

func hasKey(md *gguf.Metadata, key string) bool {
	_, ok := md.Get(key)
	return ok
}
