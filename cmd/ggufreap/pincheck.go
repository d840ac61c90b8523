package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf/remote"
	"ggufreap/manifest/verify"
)

// readEvidence reads the file of --check, or asks the hub for its listing, and whose that is.
func readEvidence(con *ui.Console, c *cli.Context) (e verify.Evidence, repo, revision string, err error) {
	if !remote.IsAddress(c.String("check")) {
		e, err = openEvidence(con, c.String("check"))
		return e, c.String("repo"), c.String("revision"), err
	}
	if c.IsSet("repo") || c.IsSet("revision") {
		return nil, "", "", args.Usagef("the address of --check says what --repo and --revision would")
	}
	listing, facts, err := askListing(con, c, c.String("check"))
	if err != nil {
		return nil, "", "", err
	}
	return listing.Files, facts.Repo, facts.Commit, nil
}

func openEvidence(con *ui.Console, path string) (verify.Evidence, error) {
	if info, err := os.Stat(path); path != files.Stdin && err == nil && info.Mode().IsRegular() {
		e, err := verify.ReadEvidence(path) // and again, where it may be large
		return e, filekind.ExplainFile(err, path, filekind.Digests...)
	}
	in, err := files.OpenInput(con.In, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	e, err := verify.DecodeEvidence(in)
	if err != nil {
		return nil, filekind.Explain(fmt.Errorf("%s: %w", text.Safe(path), err), path, in, filekind.Digests...)
	}
	return e, nil
}

// checkArtifact compares an artifact with what a file says of it.
func checkArtifact(con *ui.Console, c *cli.Context) error {
	switch {
	case c.String("output") != "" || c.String("format") != formatPin:
		return args.Usagef("--check writes nothing: leave out -o and --format")
	case c.IsSet("license") || c.IsSet("quantization-label") || c.IsSet("base-model"):
		return args.Usagef("--check compares bytes; of what is said it takes --repo and --revision only, which a tree listing lacks")
	}
	evidence, repo, revision, err := readEvidence(con, c)
	if err != nil {
		return err
	}
	m, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer m.Close()
	p := con.StartProgress("check", m.FileBytes())
	seen, err := verify.Check(c.Context, m, evidence, verify.CheckOptions{
		Quick:    c.Bool("quick"),
		Repo:     repo,
		Revision: revision,
		Folder:   c.String("folder"),
		Workers:  c.Int("workers"),
		Progress: p.Set,
	})
	p.Finish()
	if errors.Is(err, verify.ErrNotQuick) {
		return hint.With(args.Usagef("%w", err), "leave out --quick")
	}
	var folders *verify.FolderError
	if errors.As(err, &folders) {
		return hint.With(err, "say which one: --folder %s", text.Safe(folders.Folders[0]))
	}
	if err != nil {
		return err
	}
	return report(con, seen, "ggufreap/check/v1", c.Bool("json"))
}
