package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
)

// interruptHelp says what Ctrl-C does to a command that writes a release.
const interruptHelp = `Ctrl-C ends the run within a second, keeps finished shards and says how to go
on. A second one does not wait, and leaves .part files that --resume removes.
`

// resumeLine is the command line that goes on with what this one began.
func resumeLine(c *cli.Context) string {
	words := typed(c)
	if !slices.Contains(words, "--resume") {
		words = slices.Insert(slices.Clone(words), 1, "--resume")
	}
	return commandLine(append([]string{"ggufreap"}, words...))
}

// announce says what --resume found, and prepares for a run that is ended while it waits.
func (con *console) announce(c *cli.Context, r *release, folder *stage.Folder) {
	hint := func() string {
		if _, err := os.Lstat(filepath.Join(r.folder, manifest.JournalName)); err != nil {
			return "" // nothing is left, or the folder is gone
		}
		return fmt.Sprintf("what is finished stays in %s; to go on: %s", safe(r.folder), resumeLine(c))
	}
	con.rest.Store(&hint)
	if !c.Bool("resume") {
		return
	}
	if shards, _ := folder.Resumed(); shards > 0 {
		con.notef("%s: going on in %s: %s finished, and checked first", r.task, safe(r.folder), partOf(shards, len(r.layout.Shards)))
	} else {
		con.notef("%s: nothing to go on with in %s, beginning", r.task, safe(r.folder))
	}
}

// partOf begins a sentence about some of the shards: "2 of 14 shards are".
func partOf(n, all int) string {
	return fmt.Sprintf("%s of %s %s", grouped(n), count(all, "shard"), words.Verb(n, "is", "are"))
}

// warnRedone names shards that an earlier run finished and that have changed since.
func (con *console) warnRedone(folder *stage.Folder) {
	_, redone := folder.Resumed()
	for _, name := range redone {
		con.warnf("%s was not what the interrupted run wrote, and was written again", safe(name))
	}
}

// explainRefusal adds what to do about a folder that cannot be written to.
func explainRefusal(c *cli.Context, err error) error {
	var space *stage.SpaceError
	switch {
	case errors.Is(err, stage.ErrUnfinished):
		return withHint(err, "to go on: %s\nto begin anew, remove the folder", resumeLine(c))
	case errors.Is(err, stage.ErrDifferent):
		return withHint(err, "give what the interrupted run was given, or remove the folder to begin anew")
	case errors.Is(err, stage.ErrInUse):
		return withHint(err, "wait for it to end, or choose another folder with -o DIR")
	case errors.As(err, &space):
		return withHint(err, "%s are lacking: make room, or choose a folder on another disk with -o DIR", siSize(space.Need-space.Free))
	}
	return err
}

// explainFailure adds what a run left in its folder.
func explainFailure(c *cli.Context, r *release, folder *stage.Folder, err, closeErr error) error {
	if closeErr != nil {
		err = errors.Join(err, fmt.Errorf("cleaning up: %w", closeErr))
	}
	finished, lost := folder.Finished(), folder.Lost()
	stay := partOf(finished, len(r.layout.Shards)) + " finished"
	var other *manifest.DerivationError
	switch {
	case errors.Is(lost, stage.ErrMoved):
		return withHint(err, "%s, in a folder that is no longer %s", stay, safe(r.folder))
	case finished == 0:
		return withHint(err, "no shard was finished, so nothing was left in %s", safe(r.folder))
	case lost != nil || errors.As(err, &other):
		return withHint(err, "%s, in %s, of a source that is not what it was taken for: remove the folder to begin anew", stay, safe(r.folder))
	}
	return withHint(err, "%s, and kept in %s; to go on: %s", stay, safe(r.folder), resumeLine(c))
}
