package repair

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// wholeStep is how much of a file that is fetched whole is journaled at a time.
const wholeStep = 64 << 20

// Find reads the files and returns what is wrong with them, or what an earlier run has found
// and not mended. No file is written to.
func Find(ctx context.Context, job *Job) (*Damage, error) {
	if err := job.settle(); err != nil {
		return nil, err
	}
	log, err := openJournal(job)
	if err != nil {
		return nil, err
	}
	d, err := job.find(ctx, log)
	if err != nil || len(d.Ranges) == 0 {
		err = errors.Join(err, log.leave())
	}
	return d, err
}

func (job *Job) find(ctx context.Context, log *journal) (*Damage, error) {
	was, err := log.read(job)
	if err != nil {
		return nil, err
	}
	if was != nil {
		was.job, was.log = job, log
		return was, nil
	}
	type found struct {
		ranges []Range
		damage FileDamage
	}
	all := make([]found, len(job.files))
	var total int64
	for _, f := range job.files {
		total += f.size
	}
	count := pass.NewMeter(total, job.Checked)
	err = pass.ForEach(ctx, len(all), job.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		var err error
		all[i].ranges, all[i].damage, err = job.compare(ctx, job.files[i], w, count)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := &Damage{job: job, log: log, done: map[int]bool{}}
	for _, f := range all {
		if len(f.ranges) > 0 {
			d.Files = append(d.Files, f.damage)
		}
		d.Ranges = append(d.Ranges, f.ranges...)
	}
	return d, nil
}

// compare returns what is wrong with one file.
func (job *Job) compare(ctx context.Context, f *file, w *pass.Worker, count io.Writer) ([]Range, FileDamage, error) {
	damage := FileDamage{File: f.name, Size: f.size, Found: -1, Whole: f.frame == nil}
	r, err := job.openPadded(f.name)
	if err != nil {
		return nil, damage, err
	}
	defer r.close()
	if r.file != nil {
		damage.Found = r.size
	}
	whole := w.Hasher()
	checks, err := f.checks()
	if err != nil {
		return nil, damage, err
	}
	var spans []pass.Span
	for _, t := range checks {
		spans = append(spans, pass.Span{Offset: t.offset, Size: t.pinned.Size, Begin: func() io.Writer { return t.hasher }})
	}
	if err := pass.Scan(ctx, r, f.size, w.Buf, io.MultiWriter(whole, count), spans, nil); err != nil {
		return nil, damage, fmt.Errorf("%s: %w", f.name, err)
	}
	got := manifest.Sum(whole.Sum())
	right := f.sum != nil && got == *f.sum && damage.Found >= f.size
	var ranges []Range
	switch {
	case right:
		damage.Whole = false
	case f.frame == nil:
		if err := f.checkSame(r); err != nil {
			return nil, damage, fmt.Errorf("%s: %w", job.path(f.name), err)
		}
		return wholeFile(f), damage, nil
	default:
		if ranges, err = f.wrong(r, checks, got); err != nil {
			return nil, damage, err
		}
		if err := f.checkDamaged(r, checks); err != nil {
			return nil, damage, fmt.Errorf("%s: %w", job.path(f.name), err)
		}
	}
	return append(ranges, f.wrongEnd(damage.Found, right, ranges)...), damage, nil
}

// wrong returns the ranges that are not what the pin says.
func (f *file) wrong(r *padded, checks []*tensorCheck, sum manifest.Sum) ([]Range, error) {
	ranges, err := f.wrongTensors(checks)
	if err != nil {
		return nil, err
	}
	suspect := f.sum != nil && sum != *f.sum && len(ranges) == 0
	rest, err := f.wrongRest(r, suspect)
	ranges = append(ranges, rest...)
	slices.SortStableFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Offset, b.Offset) })
	return ranges, err
}

// wrongEnd returns what is behind the end of a file, if that is known to be surplus, or zeros
// that are missing at its end. Anything else that is missing is among the ranges.
func (f *file) wrongEnd(found int64, right bool, ranges []Range) []Range {
	switch {
	case found > f.size && (right || f.sure || f.sum != nil):
		return []Range{{File: f.name, Kind: Surplus, Offset: f.size, Length: found - f.size}}
	case found < f.size && !slices.ContainsFunc(ranges, func(r Range) bool { return r.Offset+r.Length == f.size }):
		return []Range{{File: f.name, Kind: End, Offset: max(found, 0), Length: f.size - max(found, 0)}}
	}
	return nil
}

// checkDamaged refuses a file that is not damaged but another one: it is sound and complete by its
// own header, and next to nothing of several tensors is right or empty.
func (f *file) checkDamaged(r *padded, checks []*tensorCheck) error {
	var all, right int64
	for _, c := range checks {
		if c.offset >= r.size { // behind its end
			continue
		}
		all += c.pinned.Size
		if right += c.right; c.right == 0 && isZero(r, c.offset, c.offset+min(c.pinned.Size, 4<<10)) {
			right += c.pinned.Size
		}
	}
	if len(checks) < 2 || right > all/100 || r.file == nil {
		return nil
	}
	if g, err := gguf.NewFile(f.name, r, r.size); err != nil || g.Err() != nil || len(g.Tensors) == 0 {
		return nil
	}
	return fmt.Errorf("is not a damaged file but another one: its header is sound, and of its %d tensors none is what the pin says; remove it to have the right one fetched whole", len(checks))
}

// checkSame refuses, where sums alone tell what is right, a file that is complete by a sound header
// and should by that have another size.
func (f *file) checkSame(r *padded) error {
	if r.file == nil {
		return nil
	}
	g, err := gguf.NewFile(f.name, r, r.size)
	if err != nil || g.Err() != nil || len(g.Tensors) == 0 {
		return nil
	}
	var end int64
	for _, t := range g.Tensors {
		if t.Opaque { // its header does not tell where it ends
			return nil
		}
		end = max(end, t.DataOffset()+t.Size)
	}
	if end <= f.size && f.size-end < g.Alignment {
		return nil
	}
	return fmt.Errorf("is not a damaged file but another one: by its sound header it ends at byte %d, want %d; remove it to have the right one fetched whole", end, f.size)
}

// wholeFile is all of a file, in steps.
func wholeFile(f *file) []Range {
	var ranges []Range
	for at := int64(0); at < f.size; at += wholeStep {
		ranges = append(ranges, Range{File: f.name, Kind: Bytes, Offset: at, Length: min(wholeStep, f.size-at)})
	}
	return ranges
}

// A tensorCheck takes the digests of one tensor.
type tensorCheck struct {
	place
	hasher *manifest.TensorHasher
	right  int64 // bytes
}

// checks returns the checks of a file's tensors, in the order of their data.
func (f *file) checks() ([]*tensorCheck, error) {
	var checks []*tensorCheck
	for _, p := range f.tensors {
		c := &tensorCheck{place: p, hasher: manifest.NewTensorHasher()}
		if err := c.hasher.Reset(p.pinned.Size, p.pinned.SlabCount()); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", p.pinned.Name, err)
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// wrongTensors compares digests: of experts, or of the whole where a tensor has none.
func (f *file) wrongTensors(checks []*tensorCheck) ([]Range, error) {
	var ranges []Range
	for _, c := range checks {
		got, err := c.hasher.Sums()
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", f.name, c.pinned.Name, err)
		}
		if got.BLAKE3 == c.pinned.BLAKE3 {
			c.right = c.pinned.Size
			continue
		}
		if slabs := c.wrongSlabs(f.name, got); len(slabs) > 0 {
			c.right = c.pinned.Size - int64(len(slabs))*slabs[0].Length
			ranges = append(ranges, slabs...)
			continue
		}
		ranges = append(ranges, Range{File: f.name, Kind: Bytes, Offset: c.offset, Length: c.pinned.Size, Tensor: c.pinned.Name, BLAKE3: &c.pinned.BLAKE3})
	}
	return ranges, nil
}

// wrongSlabs returns the experts of a tensor that are wrong.
func (c *tensorCheck) wrongSlabs(file string, got manifest.TensorSums) []Range {
	s := c.pinned.Slabs
	if s == nil || got.SlabSums == nil { // slabs that stand for themselves are few bytes
		return nil
	}
	const width = len(manifest.Sum{})
	size := c.pinned.Size / int64(s.Count)
	var ranges []Range
	for i := range s.Count {
		if want := s.At(i); !bytes.Equal(got.SlabSums[i*width:(i+1)*width], want) {
			sum := manifest.Sum(want)
			ranges = append(ranges, Range{File: file, Kind: Bytes, Offset: c.offset + int64(i)*size, Length: size, Tensor: c.pinned.Name, Expert: &i, BLAKE3: &sum})
		}
	}
	return ranges
}

// wrongRest compares the header with what it should be, and looks at what lies between
// tensors: what is not zero there is suspect, and all of it where nothing else explains
// the sum.
func (f *file) wrongRest(r *padded, suspect bool) ([]Range, error) {
	var ranges []Range
	at := f.data
	header, err := f.differs(r, 0, f.data)
	if err != nil {
		return nil, err
	}
	if header != nil {
		ranges, suspect = append(ranges, *header), false
	}
	gap := func(to int64) error {
		if to <= at || !suspect && isZero(r, at, to) {
			return nil
		}
		wrong, err := f.differs(r, at, to)
		if wrong != nil {
			ranges = append(ranges, *wrong)
		}
		return err
	}
	for _, p := range f.tensors {
		if err := gap(p.offset); err != nil {
			return nil, err
		}
		at = max(at, p.offset+p.pinned.Size)
	}
	return ranges, gap(f.size)
}

// digest returns that of bytes of a reader.
func digest(r io.ReaderAt, from, to int64) (manifest.Sum, error) {
	hash := blake3.New()
	_, err := io.Copy(hash, io.NewSectionReader(r, from, to-from))
	return manifest.Sum(hash.Sum(nil)), err
}
