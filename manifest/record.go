package manifest

import (
	"context"
	"fmt"
	"io"
	"math"
	"reflect"

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
	// Passed, unless nil, is told once of each file that has passed, by number from 0: its
	// digest and those of its tensors. Calls come from the goroutines that read.
	Passed func(i int, f File, tensors []Tensor)

	model  *gguf.Model
	pin    *Pin
	tracks []*track // one for each file
	bySrc  map[io.ReaderAt]*track
	sums   *pass.Sums
	o      BuildOptions
	spared int64 // bytes of files that do not pass
	direct int64 // of them those that readers get as they are
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
		t := &track{index: i, ctx: ctx, file: f, source: readerAt{f}, ahead: pass.NewAhead(f, 0, f.Size), tensors: own, recorder: r, count: count}
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

// Headers returns what headers tell of the pin.
func (r *Recorder) Headers() *Pin { return r.pin }

// Adopt takes over what an earlier Recorder was told of a file, by number from 0, that is
// known to be the same. The file does not pass again, and readers get it as it is. It is
// called before [Recorder.Lanes]; what does not fit the file's header is an error.
func (r *Recorder) Adopt(i int, f File, tensors []Tensor) error {
	if i >= len(r.tracks) || f.Name != r.pin.Files[i].Name || f.Size != r.pin.Files[i].Size || len(tensors) != len(r.tracks[i].tensors) {
		return fmt.Errorf("file %q is not number %d of the model", f.Name, i+1)
	}
	t := r.tracks[i]
	for n := range tensors {
		if err := tensors[n].fits(&t.tensors[n]); err != nil {
			return fmt.Errorf("file %q: %w", f.Name, err)
		}
	}
	copy(t.tensors, tensors)
	t.cursor, t.sum = f.Size, f.SHA256
	t.count.Spare(f.Size)
	r.spared += f.Size
	return nil
}

// Bytes returns how many bytes of the source pass, or reach those who read views without
// passing.
func (r *Recorder) Bytes() int64 { return r.model.FileBytes() - r.spared + r.direct }

// fits returns an error where a tensor that is pinned is not as a header has it.
func (t *Tensor) fits(header *Tensor) error {
	bare := *t
	bare.BLAKE3 = Sum{}
	if t.Slabs != nil {
		bare.Slabs = &Slabs{Axis: t.Slabs.Axis, Count: t.Slabs.Count}
	}
	if t.IDs != nil {
		bare.IDs = &IDs{Nearest: t.IDs.Nearest}
	}
	if !reflect.DeepEqual(&bare, header) {
		return fmt.Errorf("tensor %q is not as its header has it", t.Name)
	}
	return t.check()
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
			switch t := r.bySrc[e.Source]; {
			case t == nil:
			case t.cursor == t.file.Size: // adopted
				r.direct += e.Length
			default:
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
