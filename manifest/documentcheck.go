package manifest

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// CheckDocument returns an error when no document can hold the pin of a model, since a name
// in it, or what is said of it, is not UTF-8. It names the file.
func CheckDocument(m *gguf.Model, said Declared) error {
	if err := cmp.Or(said.check(), checkText("model name", m.Name), checkText("architecture", m.Metadata().Architecture())); err != nil {
		return fmt.Errorf("%s: %w", m.Files[0].Name, err)
	}
	for _, f := range m.Files {
		names := func(yield func(string) bool) {
			for _, t := range f.Tensors {
				if !yield(t.Name) {
					return
				}
			}
		}
		if err := cmp.Or(checkText("file name", filepath.Base(f.Name)), checkTexts(f.Metadata, names)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// CheckPinnable returns an error when the pin of what a layout holds could not be written
// as a document, since a name is not UTF-8 or has no digest.
func CheckPinnable(stem string, layout *gguf.Layout) error {
	if err := cmp.Or(checkText("file name", stem), CheckNames(layout)); err != nil {
		return err
	}
	for _, shard := range layout.Shards {
		names := func(yield func(string) bool) {
			for _, v := range shard.Views {
				if !yield(v.Name) {
					return
				}
			}
		}
		if err := checkTexts(shard.Metadata, names); err != nil {
			return err
		}
	}
	return checkText("architecture", layout.Shards[0].Metadata.Architecture())
}

// checkTexts refuses keys and names of tensors that JSON cannot hold as they are.
func checkTexts(md *gguf.Metadata, tensors iter.Seq[string]) error {
	for key := range md.All() {
		if err := checkText("key", key); err != nil {
			return err
		}
	}
	for name := range tensors {
		if err := checkText("tensor name", name); err != nil {
			return err
		}
	}
	return nil
}

func (d Declared) check() error {
	var byHub []string
	for _, said := range d.Statements() {
		if err := checkText("declared "+strings.ReplaceAll(said.Name, "_", " "), said.Text); err != nil {
			return err
		}
		if said.ByHub {
			byHub = append(byHub, said.Name)
		}
	}
	if !slices.Equal(byHub, d.StatedByHub) {
		return fmt.Errorf("pin: stated_by_hub is %q, of what is declared it can be %q", d.StatedByHub, byHub)
	}
	return nil
}
