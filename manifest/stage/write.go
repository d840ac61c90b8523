package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage/internal/disk"
)

// WriteShards writes all shards, in parallel, and returns the pin of what was written:
// the digests come from the pass that writes. Where a name has no digest, the pin lacks
// what [manifest.NewDraft] says. What an earlier run wrote is read once instead, and
// written again when it is not what that run wrote.
func (f *Folder) WriteShards(ctx context.Context) (*manifest.Pin, error) {
	layout := f.release.Layout
	draft, err := manifest.NewDraft(f.release.Stem, layout, f.release.Slabs, f.release.IDs)
	if err != nil {
		return nil, err
	}
	staged := make([]stagedFile, len(layout.Shards))
	sums := make([]manifest.Sum, len(staged))
	count := pass.NewMeter(layout.Bytes(), f.options.Progress)
	lanes := f.lanes()
	most := unkept(layout.Bytes(), min(pass.Workers(len(lanes), f.options.Workers), len(lanes)), f.least)
	forEach := pass.ForEach
	if f.sums != nil {
		forEach = f.sums.ForEach
	}
	err = forEach(ctx, len(lanes), f.options.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		for _, i := range lanes[n] {
			staged[i].Name = f.release.shardName(i)
			err := f.makeShard(ctx, shardJob{i, &staged[i], layout.Shards[i], draft, count, most, w})
			if err != nil {
				return err
			}
			sums[i] = staged[i].SHA256
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.staged = staged
	return draft.Finish(sums)
}

// HashWith has the sums of the shards taken together with those of the files that they are
// made of.
func (f *Folder) HashWith(sums *pass.Sums) { f.sums = sums }

// lanes returns the shards as workers take them. Where each is on its own, those come first
// that lack most: no worker is then left alone with a large one, and of those that an earlier
// run finished none is read before the others have got further.
func (f *Folder) lanes() [][]int {
	var lanes [][]int
	next := 0
	for _, n := range f.options.Lanes {
		lane := make([]int, n)
		for i := range lane {
			lane[i] = next + i
		}
		lanes, next = append(lanes, lane), next+n
	}
	alone := len(lanes)
	for i := next; i < len(f.release.Layout.Shards); i++ {
		lanes = append(lanes, []int{i})
	}
	lack := func(lane []int) int64 {
		return f.release.Layout.Shards[lane[0]].Size - f.journal.beginning(lane[0]).size
	}
	slices.SortStableFunc(lanes[alone:], func(a, b []int) int { return cmp.Compare(lack(b), lack(a)) })
	return lanes
}

// WriteFile writes a document of the release. Its bytes come from write.
func (f *Folder) WriteFile(name string, write func(w io.Writer) error) error {
	if err := f.checkClaimed(name); err != nil {
		return err
	}
	sum, err := f.writeFile(name, write)
	if err != nil {
		return err
	}
	f.staged = append(f.staged, stagedFile{FileSum: lists.FileSum{Name: name, SHA256: sum}})
	return nil
}

// checkClaimed refuses a document that was not announced, or is staged already.
func (f *Folder) checkClaimed(name string) error {
	if !slices.Contains(f.release.Documents, name) {
		return fmt.Errorf("file name %q was not announced for this release", name)
	}
	if slices.ContainsFunc(f.staged, func(file stagedFile) bool { return file.Name == name }) {
		return fmt.Errorf("file name %q is written twice", name)
	}
	return nil
}

// writeFile makes the temporary file of a document, and returns once its bytes are durable.
func (f *Folder) writeFile(name string, write func(w io.Writer) error) (manifest.Sum, error) {
	file, err := f.dir.Create(name + partSuffix)
	if err != nil {
		return manifest.Sum{}, f.wrap(name, err)
	}
	hasher := pass.NewHasher()
	if err = write(io.MultiWriter(file, hasher)); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return manifest.Sum{}, f.wrap(name, err)
	}
	f.written.Add(hasher.Size())
	return hasher.Sum(), nil
}

// wrap says which file of the release an error is about, and of a full disk what it
// lacks.
func (f *Folder) wrap(name string, err error) error {
	err = fmt.Errorf("writing %q: %w", filepath.Join(f.path, name), err)
	if !disk.IsFull(err) {
		return err
	}
	left := words.Count(f.unwritten(), "byte")
	if room, roomErr := f.dir.Room(); roomErr == nil && room.Free >= 0 {
		return fmt.Errorf("%w: %s of shards are still to be written, %s are free", err, left, words.Group(room.Free))
	}
	return fmt.Errorf("%w: %s of shards are still to be written", err, left)
}

// wrapJournal says that an error is about the journal.
func (f *Folder) wrapJournal(err error) error {
	if errors.Is(err, errTaken) {
		return fmt.Errorf("%w: %w", f.refuse(ErrInUse), err)
	}
	return f.wrap(manifest.JournalName, err)
}
