package repair

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// describe settles how each file should begin and where its tensors lie: as in a copy that has
// the same file, as its own header says if that agrees with the pin, or as it is written when
// the model is made of a source.
func (job *Job) describe() error {
	if job.Pin == nil {
		return job.checkCopies()
	}
	pinned := manifest.ByName(job.Pin)
	layouts := &layouts{job: job}
	for i, f := range job.files {
		if job.likeCopy(f, i, pinned) || job.likeOwn(f, i, pinned) {
			continue
		}
		if err := layouts.describe(f, i, pinned); err != nil {
			return fmt.Errorf("%s: %w: %w", job.path(f.name), ErrHeader, err)
		}
	}
	return job.checkPlaced()
}

// checkCopies wants, where sums alone tell what is right, a source that has the same files.
func (job *Job) checkCopies() error {
	for _, s := range job.Sources {
		if s.Views == nil && len(s.Model.Files) == len(job.files) {
			return nil
		}
	}
	return errors.New("the source has other files, and where sums alone say what is right the same files are needed")
}

// checkPlaced wants every pinned tensor in exactly one file.
func (job *Job) checkPlaced() error {
	in := map[string]string{}
	for _, f := range job.files {
		for _, p := range f.tensors {
			if other, twice := in[p.pinned.Name]; twice {
				return fmt.Errorf("tensor %q is in %q and in %q", p.pinned.Name, other, f.name)
			}
			in[p.pinned.Name] = f.name
		}
	}
	for _, t := range job.Pin.Tensors {
		if _, ok := in[t.Name]; !ok {
			return fmt.Errorf("%s: tensor %q of the pin is in none of the files", job.Dir, t.Name)
		}
	}
	return nil
}

// placesOf returns where the tensors of a parsed file lie, unless one is not pinned so.
func placesOf(g *gguf.File, pinned map[string]*manifest.Tensor) ([]place, bool) {
	var places []place
	for _, t := range g.Tensors {
		p := pinned[t.Name]
		if p == nil || !fits(t.View(), p) {
			return nil, false
		}
		places = append(places, place{t.DataOffset(), p})
	}
	slices.SortStableFunc(places, func(a, b place) int { return int(max(-1, min(1, a.offset-b.offset))) })
	return places, true
}

// likeCopy takes the header of the file in a copy.
func (job *Job) likeCopy(f *file, i int, pinned map[string]*manifest.Tensor) bool {
	for _, s := range job.Sources {
		if !s.exact || len(s.Model.Files) != len(job.files) || s.Model.Files[i].Size != f.size {
			continue
		}
		if places, ok := placesOf(s.Model.Files[i], pinned); ok {
			f.tensors, f.data, f.frame = places, s.Model.Files[i].DataOffset, s.Model.Files[i]
			return true
		}
	}
	return false
}

// likeOwn takes the file's own header, if all in it is as the pin and the format say.
func (job *Job) likeOwn(f *file, i int, pinned map[string]*manifest.Tensor) bool {
	r, err := job.openPadded(f.name)
	if err != nil {
		return false
	}
	defer r.close()
	size := f.size
	if size < 0 {
		size = r.size
	}
	g, err := gguf.NewFile(f.name, r, size)
	if err != nil || g.Err() != nil {
		return false
	}
	places, ok := placesOf(g, pinned)
	end, canonical := canonicalEnd(g, places)
	if !ok || !canonical || !job.agrees(g, i) || !isZero(r, g.HeaderSize, g.DataOffset) {
		return false
	}
	if f.size < 0 {
		f.size = end
	}
	if f.size > end || end-f.size >= g.Alignment {
		return false
	}
	header := make([]byte, g.DataOffset)
	if n, _ := r.ReadAt(header, 0); n < len(header) {
		return false
	}
	f.tensors, f.data, f.frame = places, g.DataOffset, headerBytes(header)
	f.own = true
	return true
}

// canonicalEnd returns where a file ends whose tensors lie one behind the other, in the order of
// its table, as all programs write them.
func canonicalEnd(g *gguf.File, places []place) (int64, bool) {
	end := g.DataOffset
	for i, p := range places {
		if p.offset != end || p.pinned.Name != g.Tensors[i].Name {
			return 0, false
		}
		end += (p.pinned.Size + g.Alignment - 1) / g.Alignment * g.Alignment
	}
	return end, true
}

// agrees reports whether a header says what the pin does: its tensors are those that follow each
// other there, and its keys those of the model, or of a later shard.
func (job *Job) agrees(g *gguf.File, i int) bool {
	pin := job.Pin
	if g.Version != pin.Artifact.Version || g.ByteOrder() != pin.Artifact.ByteOrder || !follows(g.Tensors, pin.Tensors) {
		return false
	}
	if n := uint64(len(job.files)); n > 1 {
		for key, want := range map[string]uint64{gguf.KeySplitNo: uint64(i), gguf.KeySplitCount: n, gguf.KeySplitTensors: uint64(len(pin.Tensors))} {
			if got, ok := g.Metadata.Uint(key); !ok || got != want {
				return false
			}
		}
	}
	if i == 0 {
		return pairsDiffer(pin, g.Metadata) == nil
	}
	for key := range g.Metadata.All() {
		switch key {
		case gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors, gguf.KeyAlignment:
		default:
			return false
		}
	}
	return true
}

// follows reports whether tensors are a run of the pinned ones.
func follows(tensors []*gguf.Tensor, pinned []manifest.Tensor) bool {
	if len(tensors) == 0 {
		return true
	}
	at := slices.IndexFunc(pinned, func(t manifest.Tensor) bool { return t.Name == tensors[0].Name })
	if at < 0 || len(tensors) > len(pinned)-at {
		return false
	}
	for i, t := range tensors {
		if t.Name != pinned[at+i].Name {
			return false
		}
	}
	return true
}

// pairsDiffer returns the first key in which metadata is not the pinned one.
func pairsDiffer(pin *manifest.Pin, md *gguf.Metadata) error {
	pairs, err := manifest.PinPairs(md)
	if err != nil {
		return err
	}
	for _, c := range manifest.ComparePairs(pin.Metadata, pairs) {
		return errors.New(c.String())
	}
	return nil
}

// layouts lay the pinned model out anew, once.
type layouts struct {
	job    *Job
	asked  bool
	layout *gguf.Layout
	err    error
}

// describe takes the header with which the file is written.
func (l *layouts) describe(f *file, i int, pinned map[string]*manifest.Tensor) error {
	if !l.asked {
		l.asked = true
		l.layout, l.err = l.job.layOut()
	}
	if l.err != nil {
		return l.err
	}
	shard := l.layout.Shards[i]
	var header bytes.Buffer
	if err := shard.WriteHeader(&header); err != nil {
		return err
	}
	for k, v := range shard.Views {
		f.tensors = append(f.tensors, place{shard.DataOffset + shard.Offsets[k], pinned[v.Name]})
	}
	f.data, f.frame, f.made = shard.DataOffset, headerBytes(header.Bytes()), true
	return nil
}

// layOut lays the pinned model out as the files are cut, by the first source that has all of its
// metadata. The error says why no source has.
func (job *Job) layOut() (*gguf.Layout, error) {
	var sizes []int64
	for _, f := range job.files {
		if f.size < 0 {
			return nil, errors.New("nothing says how large it is")
		}
		sizes = append(sizes, f.size)
	}
	own := job.ownMetadata()
	var reasons []error
	for _, s := range job.Sources {
		c, err := s.ordered(job.Pin, own)
		if err == nil {
			var layout *gguf.Layout
			if layout, err = gguf.NewLayoutOf(c, sizes); err == nil {
				return layout, nil
			}
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", s.Name, err))
	}
	return nil, errors.Join(reasons...)
}

// ownMetadata returns the metadata in the first file of the folder, be it right or not; nil where
// it cannot be read.
func (job *Job) ownMetadata() *gguf.Metadata {
	r, err := job.openPadded(job.files[0].name)
	if err != nil {
		return nil
	}
	defer r.close()
	g, err := gguf.NewFile(job.files[0].name, r, job.files[0].size)
	if err != nil {
		return nil
	}
	header := make(headerBytes, g.HeaderSize)
	if n, _ := r.ReadAt(header, 0); n < len(header) {
		return nil
	}
	if g, err = gguf.NewFile(g.Name, header, g.Size); err != nil {
		return nil
	}
	return g.Metadata
}

// mendedMetadata returns the pinned metadata: what the file has, or what a source has, or, where
// only values and a name in the file are wrong, that with right ones in their places.
func mendedMetadata(pin *manifest.Pin, own, source *gguf.Metadata) (*gguf.Metadata, error) {
	if own != nil && pairsDiffer(pin, own) == nil {
		return own, nil
	}
	if source == nil {
		return nil, errors.New("not all of the metadata follows from it and from the plan")
	}
	err := pairsDiffer(pin, source)
	if err == nil || own == nil {
		return source, err
	}
	mended, errOwn := mendValues(pin, own, source)
	if errOwn != nil {
		return nil, err
	}
	if errOwn := pairsDiffer(pin, mended); errOwn != nil {
		return nil, errOwn
	}
	return mended, nil
}

// mendValues returns metadata with the source's values in the places of those that are not pinned,
// and the pinned name in the place of the only one that is not.
func mendValues(pin *manifest.Pin, own, source *gguf.Metadata) (*gguf.Metadata, error) {
	pairs, err := manifest.PinPairs(own)
	if err != nil {
		return nil, err
	}
	wrong, strange, missing := map[string]bool{}, []string{}, []string{}
	for _, c := range manifest.ComparePairs(pin.Metadata, pairs) {
		switch c.Change {
		case manifest.Added:
			strange = append(strange, c.Key)
		case manifest.Removed:
			missing = append(missing, c.Key)
		default:
			wrong[c.Key] = true
		}
	}
	mended := gguf.NewMetadata()
	for key, v := range own.All() {
		if len(strange) == 1 && len(missing) == 1 && key == strange[0] {
			key = missing[0]
		}
		if theirs, ok := source.Get(key); ok && wrong[key] {
			v = theirs
		}
		mended.Set(key, v)
	}
	return mended, nil
}

// ordered is what is written to make the pinned model, in the order of the pin; own is the
// metadata that it has.
func (s *Source) ordered(pin *manifest.Pin, own *gguf.Metadata) (gguf.Contents, error) {
	c := s.contents()
	var err error
	if c.Metadata, err = mendedMetadata(pin, own, c.Metadata); err != nil {
		return c, err
	}
	if pin.Artifact.ByteOrder != "little" {
		return c, errors.New("big-endian headers are not written")
	}
	c.Version = pin.Artifact.Version
	c.Views = nil
	for _, t := range pin.Tensors {
		v := s.views[t.Name]
		v.Shape = t.Shape // of which outer dims of 1 may have been left out
		c.Views = append(c.Views, v)
	}
	return c, nil
}

// differs compares bytes that no pin has a digest of with those of the frame.
func (f *file) differs(r io.ReaderAt, from, to int64) (*Range, error) {
	want, err := digest(f.frame, from, to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	have, err := digest(r, from, to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	if have == want {
		return nil, nil
	}
	return &Range{File: f.name, Kind: Bytes, Offset: from, Length: to - from, BLAKE3: &want}, nil
}
