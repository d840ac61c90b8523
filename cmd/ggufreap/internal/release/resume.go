package release

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
)

// resumeLine is the command line that goes on with what this one began.
func (o Options) resumeLine() string {
	words := o.Typed
	if !slices.Contains(words, "--resume") {
		words = slices.Insert(slices.Clone(words), 1, "--resume")
	}
	return args.CommandLine(append([]string{"ggufreap"}, words...))
}

// announce says what --resume found, and prepares for a run that is ended while it waits.
func announce(con *ui.Console, r *Release, folder *stage.Folder, o Options) {
	goOn := func() string {
		if _, err := os.Lstat(filepath.Join(r.Folder, manifest.JournalName)); err != nil {
			return "" // nothing is left, or the folder is gone
		}
		return fmt.Sprintf("what is written stays in %s; to go on: %s", text.Safe(r.Folder), o.resumeLine())
	}
	con.RestWith(goOn)
	if !o.Resume {
		return
	}
	if s := r.SourcePin; s != nil && s.known > 0 {
		con.Notef("%s: the run before has pinned %s of the source's %s, as %s tells: they are read only where the release lacks them", r.Task, text.SISize(s.known), text.SISize(r.Source.FileBytes()), text.Safe(s.note.path))
	}
	if bytes, _ := folder.Resumed(); bytes > 0 {
		con.Notef("%s: going on in %s: %s written, and checked on the way", r.Task, text.Safe(r.Folder), share(bytes, r.Layout.Bytes()))
	} else {
		con.Notef("%s: nothing to go on with in %s, beginning", r.Task, text.Safe(r.Folder))
	}
}

// share begins a sentence about some of the bytes: "1.21 GB of 1.92 GB (63 %) are". The
// percentage never says more than there is.
func share(bytes, all int64) string {
	return fmt.Sprintf("%s of %s (%.0f %%) are", text.SISize(bytes), text.SISize(all), math.Floor(100*float64(bytes)/float64(all)))
}

// warnChanged names shards that an earlier run finished and that have changed since, and files
// that vouched for what was replaced.
func warnChanged(con *ui.Console, folder *stage.Folder) {
	_, redone := folder.Resumed()
	for _, name := range redone {
		con.Warnf("%s was not what the interrupted run wrote, and was written again", text.Safe(name))
	}
	for _, name := range folder.Voided() {
		con.Warnf("%s was removed: it vouched for the release that was replaced; ggufreap sign signs this one", text.Safe(name))
	}
}

// explainRefusal adds what to do about a folder that cannot be written to.
func explainRefusal(err error, folder string, o Options) error {
	var space *stage.SpaceError
	switch {
	case errors.Is(err, stage.ErrUnfinished):
		return hint.With(err, "to go on: %s\nto begin anew, remove the folder", o.resumeLine())
	case errors.Is(err, stage.ErrOther):
		return hint.With(err, "-o DIR names another folder; ggufreap verify %s tells whether what is there is damaged, and --force replaces files of the same names", args.ShellQuote(folder))
	case errors.Is(err, stage.ErrDifferent):
		return hint.With(err, "give what the interrupted run was given, or remove the folder to begin anew")
	case errors.Is(err, stage.ErrInUse):
		return hint.With(err, "wait for it to end, or choose another folder with -o DIR")
	case errors.Is(err, stage.ErrNoLink):
		return hint.With(err, "a folder on the source's own disk can; without --link the files are copied")
	case errors.As(err, &space):
		return hint.With(err, "%s are lacking: make room, or choose a folder on another disk with -o DIR", text.SISize(space.Need-space.Free))
	}
	return err
}

// explainFailure adds what a run left in its folder.
func (r *Release) explainFailure(folder *stage.Folder, o Options, err, closeErr error) error {
	if closeErr != nil {
		err = errors.Join(err, fmt.Errorf("cleaning up: %w", closeErr))
	}
	kept, lost := folder.Kept(), folder.Lost()
	stay := share(kept, r.Layout.Bytes()) + " written"
	var other *manifest.DerivationError
	switch {
	case errors.Is(lost, stage.ErrMoved):
		return hint.With(err, "%s, in a folder that is no longer %s", stay, text.Safe(r.Folder))
	case errors.Is(lost, stage.ErrInUse):
		return hint.With(err, "the other run goes on in %s; when it has ended, the same command with --resume says how that went", text.Safe(r.Folder))
	case kept == 0:
		return hint.With(err, "nothing was on disk for good yet, so nothing was left in %s", text.Safe(r.Folder))
	case lost != nil || errors.As(err, &other):
		return hint.With(err, "%s, in %s, of a source that is not what it was taken for: remove the folder to begin anew", stay, text.Safe(r.Folder))
	}
	return hint.With(err, "%s and stay in %s; to go on: %s", stay, text.Safe(r.Folder), o.resumeLine())
}
