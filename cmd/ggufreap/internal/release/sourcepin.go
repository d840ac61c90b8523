package release

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/manifest"
)

// A SourcePin is the pin of a release's source that is taken while the release is written.
type SourcePin struct {
	Path    string
	Force   bool
	Digest  manifest.Digest // that the pin must have, or zero
	Options manifest.BuildOptions
	// Derivation says what the release is made of, given the pin.
	Derivation func(source *manifest.Pin) *manifest.Derivation

	recorder *manifest.Recorder
	Pin      *manifest.Pin // once it is taken
}

// fewestLanes are enough for some to wait for the disk while others hash.
const fewestLanes = 4

// record makes the source's bytes pass a recorder on their way into the release, and
// returns the lanes in which the shards are best written: one for each processor, and a few
// at least, unless there are to be so many workers.
func (r *Release) record(ctx context.Context, p *progress.Task, workers int) (lanes []int, err error) {
	o := r.SourcePin.Options
	o.Progress = p.Set
	if r.SourcePin.recorder, err = manifest.NewRecorder(ctx, r.Source, o); err != nil {
		return nil, err
	}
	return r.SourcePin.recorder.Lanes(r.Layout, cmp.Or(max(workers, 0), max(runtime.GOMAXPROCS(0), fewestLanes))), nil
}

// save completes the pin of the source, holds the release against it, since some bytes
// may have been read twice, and writes it.
func (s *SourcePin) save(ctx context.Context, release *manifest.Pin, sources []string) error {
	pin, err := s.recorder.Finish(ctx)
	if err != nil {
		return err
	}
	if err := pin.CheckDigest(s.Digest); err != nil {
		return err
	}
	if err := s.Derivation(pin).CheckAll(release); err != nil {
		return fmt.Errorf("the source was not the same when it was read again: %w", err)
	}
	s.Pin = pin
	_, err = files.WritePin(s.Path, pin, s.Force, sources)
	return err
}
