package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
)

// WriteShards writes all shards of a layout, in parallel, under the names that stem
// gives, and returns the pin of what was written: the digests come from the pass that
// writes. slabs says which tensors carry how many slabs.
func (s *Stage) WriteShards(ctx context.Context, stem string, layout *gguf.Layout, slabs SlabCount) (*Pin, error) {
	pin, tensors, err := pinOfLayout(stem, layout, slabs)
	if err != nil {
		return nil, err
	}
	for _, f := range pin.Files {
		if err := s.checkClaimed(f.Name); err != nil {
			return nil, err
		}
	}
	for _, f := range pin.Files {
		s.begin(f.Name)
	}
	count := newMeter(layout.Bytes(), s.progress)
	err = forEach(ctx, len(pin.Files), s.workers, func(ctx context.Context, i int, buf []byte) error {
		return s.writeShard(ctx, &pin.Files[i], layout.Shards[i], tensors[i], count, buf)
	})
	if err != nil {
		return nil, err
	}
	for _, f := range pin.Files {
		s.staged = append(s.staged, FileSum{f.Name, f.SHA256})
	}
	if err := pin.seal(layout.Shards[0].Metadata); err != nil {
		return nil, err
	}
	return pin, nil
}

// pinOfLayout returns a pin that lacks its digests, and its tensors shard by shard.
func pinOfLayout(stem string, layout *gguf.Layout, slabs SlabCount) (*Pin, [][]Tensor, error) {
	if len(layout.Shards) == 0 {
		return nil, nil, errors.New("layout has no shards")
	}
	pin := &Pin{Schema: PinSchema, Tensors: []Tensor{}, Artifact: Artifact{
		Name:         stem,
		Architecture: layout.Shards[0].Metadata.Architecture(),
		Shards:       len(layout.Shards),
		FileBytes:    layout.Bytes(),
		TensorBytes:  layout.TensorBytes(),
	}}
	for i, shard := range layout.Shards {
		pin.Files = append(pin.Files, File{Name: gguf.ShardName(stem, i, len(layout.Shards)), Size: shard.Size})
		for _, v := range shard.Views {
			t, err := describe(v.Name, v.Type, v.Shape, v.Size(), slabs)
			if err != nil {
				return nil, nil, err
			}
			pin.Tensors = append(pin.Tensors, t)
		}
	}
	shards := make([][]Tensor, len(layout.Shards))
	rest := pin.Tensors
	for i, shard := range layout.Shards {
		shards[i], rest = rest[:len(shard.Views)], rest[len(shard.Views):]
	}
	return pin, shards, nil
}

// writeShard writes one shard under its temporary name and fills in the digests.
func (s *Stage) writeShard(ctx context.Context, file *File, shard *gguf.ShardLayout, tensors []Tensor, count *meter, buf []byte) error {
	listener := newTensorListener()
	var err error
	file.SHA256, err = s.writeFile(file.Name, shard.Size, func(w io.Writer) error {
		err := shard.Write(ctx, io.MultiWriter(w, count), buf, func(view int) io.Writer {
			return listener.begin(&tensors[view])
		})
		if err != nil {
			return err
		}
		return listener.end()
	})
	return err
}

// WriteFile writes a document of the release. Its bytes come from write.
func (s *Stage) WriteFile(name string, write func(w io.Writer) error) error {
	if err := s.checkClaimed(name); err != nil {
		return err
	}
	s.begin(name)
	sum, err := s.writeFile(name, 0, write)
	if err != nil {
		return err
	}
	s.staged = append(s.staged, FileSum{name, sum})
	return nil
}

// checkClaimed refuses a name that was not announced, or is staged already.
func (s *Stage) checkClaimed(name string) error {
	if !s.names[name] || name == SumsName {
		return fmt.Errorf("file name %q was not announced for this release", name)
	}
	if slices.Contains(s.open, name+partSuffix) {
		return fmt.Errorf("file name %q is written twice", name)
	}
	return nil
}

// begin notes a temporary name before the file exists, so that Discard finds it.
func (s *Stage) begin(name string) { s.open = append(s.open, name+partSuffix) }

// writeFile makes the temporary file of name, of size bytes where that is known, and
// returns once its bytes are durable.
func (s *Stage) writeFile(name string, size int64, write func(w io.Writer) error) (Sum, error) {
	f, err := s.folder.Create(name + partSuffix)
	if err != nil {
		return Sum{}, s.wrap(name, err)
	}
	hasher := newFileHasher()
	err = fill(f, size, hasher, write)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Sum{}, s.wrap(name, err)
	}
	return hasher.Sum(), nil
}

// fill reserves, writes and syncs one file.
func fill(f OutputFile, size int64, hasher *fileHasher, write func(w io.Writer) error) error {
	if err := f.Reserve(size); err != nil {
		return fmt.Errorf("space for %d bytes: %w", size, err)
	}
	if err := write(io.MultiWriter(f, hasher)); err != nil {
		return err
	}
	if size > 0 && hasher.size != size {
		return fmt.Errorf("wrote %d bytes, want %d", hasher.size, size)
	}
	return f.Sync()
}

// wrap says which file of the release an error is about.
func (s *Stage) wrap(name string, err error) error {
	return fmt.Errorf("writing %q: %w", filepath.Join(s.path, name), err)
}
