package manifest

import (
	"errors"
	"fmt"
	"io"

	"ggufreap/gguf"
)

// A Draft is the pin of a layout whose shards are being written. What headers tell it
// has from the start, the digests it takes from the bytes on their way out.
type Draft struct {
	pin     *Pin
	layout  *gguf.Layout
	shards  [][]Tensor // of pin.Tensors
	defined bool       // the digests of all tensors and of all keys
}

// NewDraft returns the Draft of a layout whose shards are named after stem. Slabs that
// do not fit it are an error. With a name that [CheckNames] refuses the layout can be
// written all the same: its pin has no weights digest and nothing of the metadata.
func NewDraft(stem string, layout *gguf.Layout, slabs SlabCount, ids IDTables) (*Draft, error) {
	parts := describer{slabs: slabs, ids: ids}
	if len(layout.Shards) == 0 {
		return nil, errors.New("layout has no shards")
	}
	pin := &Pin{Schema: PinSchema, Tensors: []Tensor{}, Artifact: Artifact{
		Name:         stem,
		Architecture: layout.Shards[0].Metadata.Architecture(),
		Version:      layout.Shards[0].Version,
		ByteOrder:    littleEndian,
		Shards:       len(layout.Shards),
		FileBytes:    layout.Bytes(),
		TensorBytes:  layout.TensorBytes(),
	}}
	for i, shard := range layout.Shards {
		pin.Files = append(pin.Files, File{Name: gguf.ShardName(stem, i, len(layout.Shards)), Size: shard.Size})
		for _, v := range shard.Views {
			t, err := parts.describe(v.Name, v.Type, v.Shape, v.Size())
			if err != nil {
				return nil, err
			}
			pin.Tensors = append(pin.Tensors, t)
		}
	}
	d := &Draft{pin: pin, layout: layout, defined: CheckNames(layout) == nil}
	rest := pin.Tensors
	for _, shard := range layout.Shards {
		n := len(shard.Views)
		d.shards, rest = append(d.shards, rest[:n]), rest[n:]
	}
	if !d.defined {
		return d, nil
	}
	return d, pin.describe(layout.Shards[0].Metadata)
}

// Shard returns what takes the digests of shard i, counted from 0. Each tensor that has
// passed goes to check, whose error is the shard's; nil checks nothing. A shard may be
// taken again from the start. Shards are independent of one another.
func (d *Draft) Shard(i int, check func(t *Tensor) error) *ShardDraft {
	return &ShardDraft{d.shards[i], d.layout.Shards[i].Views, newTensorListener(check)}
}

// Headers returns what headers tell of the pin, which shares its tensors with the draft.
func (d *Draft) Headers() *Pin { return d.pin }

// Tensors returns those of shard i, whose digests are there once it has ended.
func (d *Draft) Tensors(i int) []Tensor { return d.shards[i] }

// Finish returns the pin, once all shards have ended. It is given the SHA-256 of each
// shard's file, in order.
func (d *Draft) Finish(sums []Sum) (*Pin, error) {
	if len(sums) != len(d.pin.Files) {
		return nil, fmt.Errorf("%d sums of %d files", len(sums), len(d.pin.Files))
	}
	for i := range d.pin.Files {
		d.pin.Files[i].SHA256 = sums[i]
	}
	if !d.defined {
		return d.pin, nil
	}
	return d.pin, d.pin.seal()
}

// A ShardDraft takes the digests of one shard's tensors while they pass by, one after the
// other. It is for one goroutine.
type ShardDraft struct {
	tensors  []Tensor
	views    []gguf.View // of them
	listener *tensorListener
}

// Tensor returns the writer that wants the data of the shard's tensor i, counted from 0,
// or nil after an error. It is a [gguf.Listener], and ends the tensor before.
func (s *ShardDraft) Tensor(i int) io.Writer { return s.listener.begin(&s.tensors[i]) }

// Copy is Tensor for data that is what the layout's view gives, from its first byte on. A
// digest of a slab that a [Recorder] takes of the same bytes is not taken again.
func (s *ShardDraft) Copy(i int) io.Writer {
	w := s.Tensor(i)
	if o := newSlabOrigin(s.views[i], &s.tensors[i]); o != nil {
		s.listener.hasher.known = o.sum
	}
	return w
}

// End ends the last tensor and returns the first error of any.
func (s *ShardDraft) End() error { return s.listener.end() }
