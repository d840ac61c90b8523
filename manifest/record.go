package manifest

import (
	"context"
	"io"
	"math"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// A Recorder pins a model while a release is written from it, so that each byte of the
// source is read once for both. It stands between the source's files and whoever reads
// them, and takes the digests of what passes by in the order of each file. What a reader
// leaves out, the Recorder reads itself.
//
// A SHA-256 takes its bytes in order. So this is one pass only as long as readers ask in
// the order of each file, as one worker does that writes tensors in the source's order
// with experts in ascending order. Bytes that are asked for again, or late, are read
// again; their digests are those of the first time.
type Recorder struct {
	model  *gguf.Model
	pin    *Pin
	tracks []*track // one for each file
	bySrc  map[io.ReaderAt]*track
	sums   *pass.Sums
	o      BuildOptions
}

// NewRecorder returns a Recorder of a sound model. Reading stops when ctx is done.
func NewRecorder(ctx context.Context, m *gguf.Model, o BuildOptions) (*Recorder, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	pin, err := PinHeaders(m, o)
	if err != nil {
		return nil, err
	}
	r := &Recorder{model: m, pin: pin, bySrc: map[io.ReaderAt]*track{}, sums: pass.NewSums(), o: o}
	count := pass.NewMeter(m.FileBytes(), o.Progress)
	rest := pin.Tensors
	for i, f := range m.Files {
		var own []Tensor
		own, rest = rest[:len(f.Tensors)], rest[len(f.Tensors):]
		t := &track{index: i, ctx: ctx, file: f, source: readerAt{f}, ahead: pass.NewAhead(f, 0, f.Size), tensors: own, sums: r.sums, count: count}
		r.tracks = append(r.tracks, t)
		for _, tensor := range f.Tensors {
			for _, e := range tensor.View().Extents {
				t.source = readerAt{e.Source}
				r.bySrc[e.Source] = t
			}
		}
	}
	return r, nil
}

// Sums are those that the Recorder takes of the source's files. Whoever writes the release
// takes the sums of its files together with them.
func (r *Recorder) Sums() *pass.Sums { return r.sums }

// Lanes makes the shards of a layout read their source through the Recorder, and returns
// how many neighbouring shards each lane has, of which there are at most so many. A lane is
// written by one worker, shard after shard. Each lane but the first begins within a
// file, the beginning of which the lane before it reads again: they are cut where that is
// little, and a source on another machine has one lane.
func (r *Recorder) Lanes(l *gguf.Layout, most int) []int {
	for _, t := range r.tracks {
		if t.ahead.Far() {
			most = 1
		}
	}
	lanes := r.cut(l, max(most, 1))
	next := 0
	for _, n := range lanes {
		lane := &lane{alone: true}
		for _, shard := range l.Shards[next : next+n] {
			shard.Views = r.views(shard.Views, lane)
		}
		next += n
	}
	return lanes
}

// Views returns the same views, read through the Recorder, by any number of workers.
func (r *Recorder) Views(views []gguf.View) []gguf.View { return r.views(views, &lane{}) }

func (r *Recorder) views(views []gguf.View, lane *lane) []gguf.View {
	recorded := make([]gguf.View, len(views))
	for i, v := range views {
		recorded[i] = v
		recorded[i].Extents = make([]gguf.Extent, len(v.Extents))
		for n, e := range v.Extents {
			if t := r.bySrc[e.Source]; t != nil {
				t.shared = t.shared || !lane.alone || t.lane != nil && t.lane != lane
				t.lane = lane
				e.Source = laneReader{t, lane}
			}
			recorded[i].Extents[n] = e
		}
	}
	return recorded
}

// cut returns how many shards each of at most so many lanes has. Of the places that give
// about even lanes it takes those nearest to the beginning of a file.
func (r *Recorder) cut(l *gguf.Layout, most int) []int {
	most = min(most, len(l.Shards))
	var lanes []int
	start, before := 0, int64(0) // shard and bytes
	for i := range most - 1 {
		even, slack := l.Bytes()*int64(i+1)/int64(most), l.Bytes()/int64(4*most)
		best, least := 0, int64(math.MaxInt64)
		at := before
		for shard := start; shard < len(l.Shards)-1; shard++ {
			at += l.Shards[shard].Size
			if cost := r.within(l.Shards[shard+1]); max(at-even, even-at) <= slack && cost < least {
				best, least, before = shard+1, cost, at
			}
		}
		if best > start {
			lanes, start = append(lanes, best-start), best
		}
	}
	return append(lanes, len(l.Shards)-start)
}

// within returns how many bytes of a file stand before the first that a shard reads.
func (r *Recorder) within(shard *gguf.ShardLayout) int64 {
	for _, v := range shard.Views {
		for _, e := range v.Extents {
			if t := r.bySrc[e.Source]; t != nil {
				return e.Offset - t.file.DataOffset
			}
		}
	}
	return 0
}

// Finish reads what nobody asked for and returns the pin. It is called once, when all
// readers have ended.
func (r *Recorder) Finish(ctx context.Context) (*Pin, error) {
	err := r.sums.ForEach(ctx, len(r.tracks), r.o.Workers, func(ctx context.Context, i int, _ *pass.Worker) error {
		var err error
		r.pin.Files[i].SHA256, err = r.tracks[i].finish(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.model.Unchanged(); err != nil {
		return nil, err
	}
	return r.pin, r.pin.seal()
}
