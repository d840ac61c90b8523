package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// declaredFlags put on record what nobody measured.
func declaredFlags() []cli.Flag {
	return args.In("What is said of the model",
		&cli.StringFlag{Name: "repo", Usage: "`NAME`: the repository it is from"},
		&cli.StringFlag{Name: "revision", Usage: "`REV`: the revision, best a commit: branches move"},
		&cli.StringFlag{Name: "license", Usage: "`NAME`: its license"},
		&cli.StringFlag{Name: "quantization-label", Usage: "`LABEL`: what its quantization is called"},
		&cli.StringFlag{Name: "base-model", Usage: "`NAME`: what it was made from"},
	)
}

// saysAnything reports whether any of these flags was given.
func saysAnything(c *cli.Context) bool {
	said := readDeclared(c)
	return len(said.Statements()) > 0
}

func readDeclared(c *cli.Context) manifest.Declared {
	said := func(name string) *string {
		if !c.IsSet(name) {
			return nil
		}
		s := c.String(name)
		return &s
	}
	return manifest.Declared{Repo: said("repo"), Revision: said("revision"), License: said("license"),
		QuantizationLabel: said("quantization-label"), BaseModel: said("base-model")}
}

// statedOf is what the hub states of a model.
func statedOf(m *gguf.Model) manifest.Declared {
	var said manifest.Declared
	if far := hub.Of(m); far != nil {
		far.Declare(&said)
	}
	return said
}

// declaredOf is what the flags say of a model, and in their place what the hub states.
func declaredOf(c *cli.Context, m *gguf.Model) manifest.Declared {
	said := readDeclared(c)
	if far := hub.Of(m); far != nil {
		far.Declare(&said)
	}
	return said
}

// declaredText says what was declared, and by whom where that was the hub.
func declaredText(said manifest.Statement) string {
	shown := strings.ReplaceAll(said.Name, "_", " ") + " " + text.Safe(said.Text)
	if said.ByHub {
		shown += " (stated by the hub, not computed here)"
	}
	return shown
}
