package release

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
)

// WritePart writes one part of the folder, and returns its record, nil where the release is
// finished already.
func WritePart(ctx context.Context, con *ui.Console, r *Release, o Options, share stage.Share) (*parts.Record, error) {
	p := con.StartProgress(r.Task, 0)
	travel := r.travels(p, r.partShards(share))
	staging, err := r.staging(p, travel, o)
	if err != nil {
		return nil, err
	}
	if err := r.checkParts(); err != nil {
		return nil, err
	}
	if far := hub.Of(r.Source); far != nil {
		far.DeclareBase(&share.Declared)
	}
	folder, err := stage.OpenPart(r.Folder, r.staged(), staging, share)
	if errors.Is(err, stage.ErrFinished) {
		return nil, r.findFinished(ctx, con, o)
	}
	if err != nil {
		return nil, explainRefusal(err, r.Folder, o)
	}
	defer folder.Close()
	if o.Recheck {
		if err := folder.Recheck(ctx); err != nil {
			return nil, err
		}
	}
	r.tellFound(con, folder, share)
	if travel != nil {
		travel.all = max(travel.all-folder.BytesFound(), 0)
	}
	record, err := folder.Write(ctx, r.ready())
	if errors.Is(err, stage.ErrFinished) {
		return nil, r.findFinished(ctx, con, o)
	}
	if err != nil {
		return nil, hint.With(err, "what has its name in %s stays; run the same command again", text.Safe(r.Folder))
	}
	read, written := folder.Traffic()
	travel.finish(p, read, written)
	return record, folder.Close()
}

// partShards are the shards of one part.
func (r *Release) partShards(share stage.Share) []*gguf.ShardLayout {
	var shards []*gguf.ShardLayout
	staged := r.staged()
	for _, i := range staged.ShardsOf(share.Part, share.Parts) {
		shards = append(shards, r.Layout.Shards[i])
	}
	return shards
}

// checkParts refuses a release that cannot be written in parts.
func (r *Release) checkParts() error {
	if err := r.pinnable(); err != nil {
		return fmt.Errorf("--only: a part is recorded with the digests of its tensors: %w", err)
	}
	for _, d := range r.Documents {
		if d.Data == nil {
			return fmt.Errorf("--only: %s is made of the whole release", d.Name)
		}
	}
	return nil
}

// ready are the documents whose data are there before the release is.
func (r *Release) ready() map[string][]byte {
	ready := map[string][]byte{}
	for _, d := range r.Documents {
		ready[d.Name] = d.Data
	}
	return ready
}

// tellFound says what an earlier task of this part has left.
func (r *Release) tellFound(con *ui.Console, folder *stage.PartFolder, share stage.Share) {
	found, all, redo := folder.Found()
	name := parts.Name(share.Part, share.Parts)
	if redo != "" {
		con.Warnf("done again: %s", text.Safe(redo))
	}
	switch {
	case all:
		con.Notef("%s: %s holds %s: nothing was written", r.Task, text.Safe(r.Folder), name)
	case found > 0:
		con.Notef("%s: %s of part %d of %d are there", r.Task, text.Count(found, "shard"), share.Part, share.Parts)
	}
}

// PartDocument is the --json output of a dry run for one part: its shards, and their bytes.
func (r *Release) PartDocument(share stage.Share) Document {
	d := r.Document()
	all := d.Shards
	d.Shards, d.FileBytes, d.TensorBytes = []shardOutput{}, 0, 0
	staged := r.staged()
	for _, i := range staged.ShardsOf(share.Part, share.Parts) {
		d.Shards = append(d.Shards, all[i])
		d.FileBytes += r.Layout.Shards[i].Size
		d.TensorBytes += r.Layout.Shards[i].TensorBytes()
	}
	return d
}

// DescribePart prints what a part of a release is, and its record where it was written.
func DescribePart(con *ui.Console, r *Release, share stage.Share, record *parts.Record) {
	staged := r.staged()
	shards := staged.ShardsOf(share.Part, share.Parts)
	var bytes int64
	for _, i := range shards {
		bytes += r.Layout.Shards[i].Size
	}
	con.Field("part", "%d of %d: %s of %d, %s", share.Part, share.Parts, text.Count(len(shards), "shard"), len(r.Layout.Shards), text.Size(bytes))
	if len(shards) > 0 {
		con.Printf("\n")
		con.Table("", []table.Column{table.Left("file"), table.Right("tensors"), table.Right("bytes")}, func(yield func([]string) bool) {
			for _, i := range shards {
				shard := r.Layout.Shards[i]
				if !yield([]string{text.Safe(r.shardNames()[i]), text.Grouped(len(shard.Views)), text.Grouped(shard.Size)}) {
					return
				}
			}
		})
		con.Printf("\n")
	}
	if record == nil {
		con.Field("written", "nothing: this was a dry run")
		return
	}
	if far := hub.Of(r.Source); far != nil {
		far.Describe(con, r.Source)
		if r.Whole && r.Derivation == nil && far.Facts().Repo != "" {
			con.Field("not checked", "the sha256 that the hub states of whole files: a part fetches ranges of them. With --source-pin every tensor is checked as it comes")
		}
	}
	con.Field("record", "%s", text.Safe(filepath.Join(r.Folder, parts.Name(share.Part, share.Parts))))
	con.Field("next", "ggufreap assemble %s, once all parts are there", text.Safe(filepath.Clean(r.Folder)))
}
