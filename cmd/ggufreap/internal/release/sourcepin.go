package release

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
)

// A SourcePin is the pin of a release's source that is taken while the release is written.
type SourcePin struct {
	Path    string
	Force   bool
	Program string          // its version
	Digest  manifest.Digest // that the pin must have, or zero
	Options manifest.BuildOptions
	// Derivation says what the release is made of, given the pin.
	Derivation func(source *manifest.Pin) *manifest.Derivation

	recorder *manifest.Recorder
	note     *sourceNote
	known    int64         // bytes of the source of which a run before has noted the digests
	Pin      *manifest.Pin // once it is taken
}

// fewestLanes are enough for some to wait for the disk while others hash.
const fewestLanes = 4

// record makes the source's bytes pass a recorder on their way into the release, and has the
// shards written in the lanes in which they are best written: one for each processor, and a
// few at least, unless there are to be so many workers. What a run before noted of the source
// is taken over by one that goes on.
func (r *Release) record(ctx context.Context, p *progress.Task, o Options, staging *stage.Options) error {
	s := r.SourcePin
	tell := p.Set
	build := s.Options
	build.Progress = func(done, total int64) { tell(done, total) }
	recorder, err := manifest.NewRecorder(ctx, r.Source, build)
	if err != nil {
		return err
	}
	if s.note, err = newSourceNote(s, recorder.Headers(), staging); err != nil {
		return err
	}
	staging.Progress = nil // the recorder tells it, of the source's bytes
	if o.Resume {
		s.known = s.note.adopt(recorder)
	}
	if s.known > 0 {
		tell, staging.Progress = together(p.Set, r.Source.FileBytes()-s.known, r.Layout.Bytes())
	}
	s.recorder, recorder.Passed = recorder, s.note.take
	staging.Lanes = recorder.Lanes(r.Layout, cmp.Or(max(o.Workers, 0), max(runtime.GOMAXPROCS(0), fewestLanes)))
	return nil
}

// together adds up the progress of two works that have so many bytes.
func together(set func(done, total int64), first, second int64) (a, b func(done, total int64)) {
	var mu sync.Mutex
	var done [2]int64
	part := func(i int) func(done, total int64) {
		return func(now, _ int64) {
			mu.Lock()
			defer mu.Unlock()
			done[i] = now
			set(done[0]+done[1], first+second)
		}
	}
	return part(0), part(1)
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
	if _, err := files.WritePin(s.Path, pin, s.Force, sources); err != nil {
		return err
	}
	s.note.remove()
	return nil
}
