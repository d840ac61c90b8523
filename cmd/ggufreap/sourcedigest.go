package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// digestFlag reads a digest that a flag gives, with or without the name of the only hash it
// can have; zero when the flag is not set.
func digestFlag(c *cli.Context, name string) (manifest.Digest, error) {
	if !c.IsSet(name) {
		return manifest.Digest{}, nil
	}
	given := c.String(name)
	prefix := manifest.BLAKE3.String() + ":"
	digest, err := manifest.ParseDigest(prefix + strings.TrimPrefix(given, prefix))
	if err != nil {
		return manifest.Digest{}, args.Usagef("--%s is %q: %w", name, given, err)
	}
	return digest, nil
}

// readSourcePin reads the pin of a source, and refuses one that has not the digest of
// --source-digest.
func readSourcePin(c *cli.Context, path string) (*manifest.Pin, error) {
	want, err := digestFlag(c, "source-digest")
	if err != nil {
		return nil, err
	}
	pin, err := files.ReadPin(c.App.Reader, path)
	if err != nil {
		return nil, err
	}
	if err := pin.CheckDigest(want); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return pin, nil
}
