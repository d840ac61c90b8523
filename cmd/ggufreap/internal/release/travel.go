package release

import (
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// A travel tells how far a release from far away is by the bytes that travel: those that an
// earlier run wrote are read at the pace of a disk, and say nothing of the time that is left.
type travel struct {
	task   *progress.Task
	far    *hub.Folder
	before int64 // bytes that had travelled when it began
	all    int64 // that are to travel
}

// travels returns the travel of some shards of a release, nil where its source is on this machine.
func (r *Release) travels(task *progress.Task, shards []*gguf.ShardLayout) *travel {
	far := hub.Of(r.Source)
	if far == nil {
		return nil
	}
	t := &travel{task: task, far: far}
	_, t.before = far.Traffic()
	_, step, gap := r.Source.Files[0].FetchAhead()
	for _, shard := range shards {
		_, bytes := gguf.Ranges(shard.Views, step, gap)
		t.all += bytes
	}
	return t
}

// bytes returns how many have travelled.
func (t *travel) bytes() int64 {
	_, now := t.far.Traffic()
	return now - t.before
}

// goOn takes off what an earlier run wrote, and says what travels again all the same.
func (t *travel) goOn(con *ui.Console, r *Release, kept int64) {
	t.all = max(t.all-kept, 0)
	if kept > 0 && r.SourcePin != nil {
		con.Notef("%s: a pin takes every byte of its source, file by file, so %s of it travel again; without --pin-source it is what is lacking", r.Task, text.SISize(r.Source.FileBytes()-r.SourcePin.known))
	}
}

// finish ends the progress with what was read, travel or not, and written.
func (t *travel) finish(p *progress.Task, read, written int64) {
	if t != nil {
		read = t.bytes()
		p.Set(t.all, t.all) // some came with the headers
	}
	p.FinishWriting(read, written)
}

// Set is told of bytes that are written, and tells of those that travel.
func (t *travel) Set(int64, int64) { t.task.Set(min(t.bytes(), t.all), t.all) }
