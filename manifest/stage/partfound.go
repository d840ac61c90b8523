package stage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
)

// findDone takes over what an earlier task of this part has done, as far as it is there.
func (p *PartFolder) findDone() error {
	was, name, redo, err := p.keeper().find(p.share.recordName(), p.share.noteName())
	if p.redo = redo; was == nil || err != nil {
		return err
	}
	p.adopt(was)
	p.found = len(p.done)
	if name == p.share.recordName() && len(p.done) == len(p.shards) && p.hasDocuments(was) {
		p.record, p.ended = was, true
	}
	return nil
}

// adopt takes over the shards of a record whose files have the sizes that it says.
func (p *PartFolder) adopt(was *parts.Record) {
	rest := was.Tensors
	for _, file := range was.Files {
		i := file.Number - 1
		tensors := rest[:file.Tensors]
		rest = rest[file.Tensors:]
		if !slices.Contains(p.shards, i) || !p.fits(i, file, tensors) {
			continue
		}
		if err := p.hasSize(file.Name, file.Size); err != nil {
			p.redo = err.Error()
			continue
		}
		p.done[i] = shardDone{file.SHA256, tensors}
	}
}

// fits reports whether what a record says of a shard is what headers tell.
func (p *PartFolder) fits(i int, file parts.File, tensors []manifest.Tensor) bool {
	want := p.draft.Tensors(i)
	if file.Name != p.folder.release.shardName(i) || file.Size != p.folder.release.Layout.Shards[i].Size || len(tensors) != len(want) {
		return false
	}
	for n := range want {
		if tensors[n].Name != want[n].Name || tensors[n].SlabCount() != want[n].SlabCount() {
			return false
		}
	}
	return true
}

// hasSize returns an error when a file of the folder is not a regular one of that size.
func (p *PartFolder) hasSize(name string, size int64) error {
	return checkSize(p.folder.dir, name, size)
}

// hasDocuments reports whether the documents that a record lists are there.
func (p *PartFolder) hasDocuments(was *parts.Record) bool {
	for _, d := range was.Documents {
		if p.hasSize(d.Name, d.Size) != nil {
			return false
		}
	}
	return true
}

// Recheck reads every shard and document that an earlier task has written. What is not what
// its record says is written again.
func (p *PartFolder) Recheck(ctx context.Context) error {
	found := slices.Sorted(maps.Keys(p.done))
	wrong := make([]error, len(found))
	err := pass.ForEach(ctx, len(found), p.folder.options.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		name := p.folder.release.shardName(found[n])
		sum, err := p.folder.sum(ctx, name, w)
		if want := p.done[found[n]].sum; err == nil && sum != want {
			err = fmt.Errorf("%q: sha256 is %s, its record says %s", name, sum, want)
		}
		wrong[n] = err
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for n, err := range wrong {
		if err != nil {
			delete(p.done, found[n])
			p.again(err)
		}
	}
	for _, d := range p.record.Documents {
		if err := p.checkFile(lists.FileSum{Name: d.Name, SHA256: d.SHA256}, d.Size); err != nil {
			p.again(err)
		}
	}
	return nil
}

// again says why the record that was found does not count.
func (p *PartFolder) again(why error) {
	p.found, p.redo = len(p.done), why.Error()
	if p.ended {
		p.record.Documents, p.ended = nil, false
	}
}

// Found says what an earlier task of this part had done: how many shards, whether that was
// all, and why something of it does not count.
func (p *PartFolder) Found() (shards int, all bool, redo string) { return p.found, p.ended, p.redo }
