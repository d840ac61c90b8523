package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/reap"
)

const keyName = "general.name"

// labelFlags give a derivative labels of its own.
func labelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model-name", Usage: "`NAME`: what the model calls itself, " + keyName + " (as the source does)"},
		&cli.BoolFlag{Name: "new-size-label", Usage: "count " + reap.KeySizeLabel + " anew, as llama.cpp's converter does (as the source has it)"},
	}
}

// labels are the changes that the flags of labelFlags ask for.
func labels(c *cli.Context, s *source, keep int) []edit.Change {
	var changes []edit.Change
	set := func(key, value string) {
		changes = append(changes, edit.Change{Key: key, Value: &edit.Text{Type: "str", Data: value}})
	}
	if c.IsSet("model-name") {
		set(keyName, c.String("model-name"))
	}
	if c.Bool("new-size-label") {
		set(reap.KeySizeLabel, reap.SizeLabel(s.Model, s.experts, keep))
	}
	return changes
}

// addLineage names the source among the models that the derivative was made from, where a flag
// or its pin says where it is published.
func addLineage(c *cli.Context, s *source, md *gguf.Metadata) error {
	repo := baseModel(c, s.pin)
	if repo == "" || c.Bool("no-provenance-keys") {
		return nil
	}
	return edit.AddBase(md, repo)
}

// noteLabels says that a derivative's size label is its source's.
func noteLabels(con *ui.Console, md *gguf.Metadata, keep int) {
	if label := md.Text(reap.KeySizeLabel); reap.StaleSizeLabel(label, keep) {
		con.Notef("%s stays %q, which counts the source's experts; --new-size-label counts it anew", reap.KeySizeLabel, text.Safe(label))
	}
}
