package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/verify"
)

// findFinished reports a release that an earlier run has finished, as if this one had.
func (r *Release) findFinished(ctx context.Context, con *ui.Console, o Options) error {
	how := "by sizes and headers; --recheck reads it all"
	if o.Recheck {
		if err := r.recheck(ctx, con, o); err != nil {
			return err
		}
		how = "every byte"
	}
	con.Notef("%s: %s holds this release, finished: nothing was written (checked: %s)", r.Task, text.Safe(r.Folder), how)
	if r.SourcePin != nil {
		if err := r.SourcePin.read(); err != nil {
			return err
		}
	}
	var err error
	if r.pinnable() != nil {
		r.Pin, err = r.listed()
		return err
	}
	if r.Pin, err = manifest.ReadPin(filepath.Join(r.Folder, manifest.PinName)); err == nil && r.Derivation != nil {
		err = r.Derivation.CheckAll(r.Pin)
	}
	return err
}

// read reads a pin that an earlier run took.
func (s *SourcePin) read() error {
	var err error
	if s.Pin, err = manifest.ReadPin(s.Path); errors.Is(err, fs.ErrNotExist) {
		return hint.With(err, "the release is finished, and the pin of its source is not there any more: ggufreap pin -o %s takes it", args.ShellQuote(s.Path))
	}
	return err
}

// listed returns what the list of sums says of the shards, as a pin.
func (r *Release) listed() (*manifest.Pin, error) {
	sums, err := readSums(r.Folder)
	if err != nil {
		return nil, err
	}
	pin := &manifest.Pin{}
	for _, name := range r.shardNames() {
		i := slices.IndexFunc(sums, func(s lists.FileSum) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: %q is not listed", filepath.Join(r.Folder, manifest.SumsName), name)
		}
		pin.Files = append(pin.Files, manifest.File{Name: name, SHA256: sums[i].SHA256})
	}
	return pin, nil
}

// recheck reads all of the release.
func (r *Release) recheck(ctx context.Context, con *ui.Console, o Options) error {
	p := con.StartProgress("recheck", r.Layout.Bytes())
	report, err := verify.Release(ctx, r.Folder, verify.Options{Workers: o.Workers, Progress: p.Set})
	if err != nil {
		return err
	}
	p.Finish()
	if !report.OK() {
		return hint.With(fmt.Errorf("output folder %q holds this release, damaged: %w", r.Folder, errDamaged), "ggufreap verify %s tells what is wrong", args.ShellQuote(r.Folder))
	}
	return nil
}

var errDamaged = errors.New("it is not what its list of sums says")
