package inspect

import (
	"fmt"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui"
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
	md := m.Metadata()
	v, ok := md.Get(key)
	if !ok {
		return missingKey(m, key)
	}
	if err := printKey(con, key, v, asJSON); err != nil {
		return fmt.Errorf("%s: key %q: %w", text.Safe(m.Files[0].Name), key, err)
	}
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
			line, err := metadata.Line(e)
			con.Printf("%s\n", line)
			return err
		})
	}
	if v.Type() == gguf.Text {
		s, err := document.TextOf(v)
		con.Printf("%s\n", text.SafeLines(s))
		return err
	}
	con.Printf("%s\n", document.Scalar(v))
	return nil
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
	return hint.With(err, "inspect --json lists all keys")
}

func hasKey(md *gguf.Metadata, key string) bool {
	_, ok := md.Get(key)
	return ok
}
