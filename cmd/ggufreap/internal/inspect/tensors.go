package inspect

import (
	"fmt"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/reap"
)

// A tensorInfo is a line of "inspect --tensors".
type tensorInfo struct {
	Name   document.Text `json:"name"`
	Type   string        `json:"type"`
	TypeID uint32        `json:"type_id"`
	Shape  []uint64      `json:"shape"`  // innermost dim first
	Size   int64         `json:"size"`   // bytes of data
	Span   int64         `json:"span"`   // bytes up to the next tensor or the end of the file
	Shard  int           `json:"shard"`  // index in the list of shards
	Offset int64         `json:"offset"` // of the data in the shard's file
	Role   *string       `json:"role"`
}

// roles maps the tensors of a model's routed experts to what they are, in a word.
func roles(m *gguf.Model) map[*gguf.Tensor]string {
	words := map[*gguf.Tensor]string{}
	found, _ := reap.FindExperts(m)
	if found == nil {
		return words
	}
	for _, t := range found.Tensors() {
		words[t.Tensor] = roleWord(t.Role)
	}
	return words
}

func roleWord(role reap.Role) string {
	switch role {
	case reap.Router:
		return "router"
	case reap.RouterBias:
		return "router-bias"
	case reap.SelectionBias:
		return "selection-bias"
	case reap.IDTable:
		return "expert-ids"
	}
	return "expert"
}

// TensorDocuments lists the tensors for a document.
func TensorDocuments(m *gguf.Model) document.Elements {
	words := roles(m)
	return func(yield func(any) error) error {
		for _, t := range m.Tensors() {
			doc := tensorInfo{Name: document.Text(t.Name), Type: t.Type.String(), TypeID: uint32(t.Type), Shape: t.Shape,
				Size: t.Size, Span: t.Span, Shard: t.Shard(), Offset: t.DataOffset()}
			if word := words[t]; word != "" {
				doc.Role = &word
			}
			if err := yield(doc); err != nil {
				return err
			}
		}
		return nil
	}
}

// ListTensors prints the tensors as a table, in file order. Shards are numbered as in
// their file names.
func ListTensors(con *ui.Console, m *gguf.Model) {
	words := roles(m)
	cols := []table.Column{table.Right("shard"), table.Right("offset"), table.Right("bytes"), table.Right("span"), table.Left("type"), table.Left("shape"), table.Left("role"), table.Left("name")}
	con.Table("", cols, func(yield func([]string) bool) {
		for _, t := range m.Tensors() {
			row := []string{shardNumber(t), fmt.Sprint(t.DataOffset()), fmt.Sprint(t.Size), fmt.Sprint(t.Span), t.Type.String(), text.Shape(t.Shape), words[t], text.Safe(t.Name)}
			if row[6] == "" {
				row[6] = "-"
			}
			if !yield(row) {
				return
			}
		}
	})
}

// shardNumber is the number in the file's name, or would be if it were named by its keys.
func shardNumber(t *gguf.Tensor) string {
	no, ok := t.File().Metadata.Uint(gguf.KeySplitNo)
	if !ok {
		no = uint64(t.Shard())
	}
	return fmt.Sprint(no + 1)
}
