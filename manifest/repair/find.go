package repair

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	if err := job.check(); err != nil {
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
	found := make([][]Range, len(job.Good.Files))
	count := pass.NewMeter(job.Good.FileBytes(), job.Checked)
	err = pass.ForEach(ctx, len(found), job.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		var err error
		found[i], err = job.compare(ctx, job.Good.Files[i], w, count)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := &Damage{job: job, log: log, done: map[int]bool{}}
	for _, ranges := range found {
		if len(ranges) > 0 {
			d.Files++
			if job.Pin == nil {
				d.Whole++
			}
		}
		d.Ranges = append(d.Ranges, ranges...)
	}
	return d, nil
}

// check makes sure that the good copy is what it is taken for.
func (job *Job) check() error {
	if err := job.Good.Err(); err != nil {
		return err
	}
	if job.Pin == nil && job.Sums == nil {
		return errors.New("nothing says what the bytes should be: neither a pin nor a list of sums")
	}
	if err := job.checkFiles(); err != nil {
		return err
	}
	if job.Pin != nil {
		if err := job.Pin.CheckHeaders(job.Good); err != nil {
			return fmt.Errorf("the good copy is not what the pin is of: %w", err)
		}
		return nil
	}
	for _, f := range job.Good.Files {
		if _, known := job.Sums[base(f)]; !known {
			return fmt.Errorf("the list of sums has none of %q", base(f))
		}
	}
	return nil
}

// checkFiles refuses a folder that has none of the files, or is the good copy itself.
func (job *Job) checkFiles() error {
	there := 0
	for _, f := range job.Good.Files {
		info, err := os.Stat(job.path(base(f)))
		if err != nil {
			continue
		}
		there++
		if good, err := os.Stat(f.Name); err == nil && os.SameFile(info, good) {
			return fmt.Errorf("%s: is the good copy itself", job.path(base(f)))
		}
	}
	if there == 0 {
		return fmt.Errorf("%s: holds none of the files of the good copy, such as %q", job.Dir, base(job.Good.Files[0]))
	}
	return nil
}

// base returns the file name in the name of a source.
func base(f *gguf.File) string { return f.Name[strings.LastIndexAny(f.Name, `/\`)+1:] }

func (job *Job) path(name string) string { return filepath.Join(job.Dir, name) }

// sum returns the sum that a file must have, where anybody says.
func (job *Job) sum(f *gguf.File) (manifest.Sum, bool) {
	if job.Pin == nil {
		sum, known := job.Sums[base(f)]
		return sum, known
	}
	for _, pinned := range job.Pin.Files {
		if pinned.Name == base(f) && pinned.Size == f.Size {
			return pinned.SHA256, true
		}
	}
	return manifest.Sum{}, false
}

// A padded reader reads zeros behind the end of a file that is too short.
type padded struct {
	file *os.File // nil for one that is not there
	size int64
}

// openPadded opens a file of the folder. One that is not there reads as zeros.
func (job *Job) openPadded(name string) (*padded, error) {
	file, info, err := manifest.OpenRegular(job.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return &padded{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &padded{file, info.Size()}, nil
}

func (p *padded) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	if there := min(int64(len(b)), p.size-off); p.file != nil && there > 0 {
		var err error
		if n, err = p.file.ReadAt(b[:there], off); n < int(there) {
			return n, err
		}
	}
	clear(b[n:])
	return len(b), nil
}

func (p *padded) close() {
	if p.file != nil {
		p.file.Close()
	}
}

// compare returns what is wrong with one file.
func (job *Job) compare(ctx context.Context, f *gguf.File, w *pass.Worker, count io.Writer) ([]Range, error) {
	r, err := job.openPadded(base(f))
	if err != nil {
		return nil, err
	}
	defer r.close()
	whole := w.Hasher()
	var spans []pass.Span
	var tensors []*tensorCheck
	if job.Pin != nil {
		if tensors, err = job.tensorChecks(f); err != nil {
			return nil, err
		}
		for _, t := range tensors {
			spans = append(spans, pass.Span{Offset: t.offset, Size: t.pinned.Size, Begin: func() io.Writer { return t.hasher }})
		}
	}
	if err := pass.Scan(ctx, r, f.Size, w.Buf, io.MultiWriter(whole, count), spans, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", base(f), err)
	}
	want, known := job.sum(f)
	if known && manifest.Sum(whole.Sum()) == want && r.size == f.Size {
		return nil, nil
	}
	if job.Pin == nil {
		return wholeFile(f), nil
	}
	ranges, err := job.wrongTensors(f, tensors)
	if err != nil {
		return nil, err
	}
	rest, err := job.wrongRest(f, r, tensors, known && len(ranges) == 0)
	ranges = append(ranges, rest...)
	slices.SortStableFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Offset, b.Offset) })
	if r.size != f.Size && len(ranges) == 0 { // too long, or its missing end is zeros
		ranges = []Range{{File: base(f)}}
	}
	return ranges, err
}

// wholeFile is all of a file, in steps.
func wholeFile(f *gguf.File) []Range {
	var ranges []Range
	for at := int64(0); at < f.Size; at += wholeStep {
		ranges = append(ranges, Range{File: base(f), Offset: at, Length: min(wholeStep, f.Size-at)})
	}
	return ranges
}

// A tensorCheck takes the digests of one tensor.
type tensorCheck struct {
	offset int64 // in the file
	pinned *manifest.Tensor
	hasher *manifest.TensorHasher
}

// tensorChecks returns the checks of a file's tensors, in the order of their data.
func (job *Job) tensorChecks(f *gguf.File) ([]*tensorCheck, error) {
	pinned := map[string]*manifest.Tensor{}
	for i := range job.Pin.Tensors {
		pinned[job.Pin.Tensors[i].Name] = &job.Pin.Tensors[i]
	}
	var checks []*tensorCheck
	for _, t := range f.Tensors {
		c := &tensorCheck{t.DataOffset(), pinned[t.Name], manifest.NewTensorHasher()}
		slabs := 0
		if c.pinned.Slabs != nil {
			slabs = c.pinned.Slabs.Count
		}
		if err := c.hasher.Reset(c.pinned.Size, slabs); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		checks = append(checks, c)
	}
	slices.SortStableFunc(checks, func(a, b *tensorCheck) int { return cmp.Compare(a.offset, b.offset) })
	return checks, nil
}

// wrongTensors compares digests: of experts, or of the whole where a tensor has none.
func (job *Job) wrongTensors(f *gguf.File, checks []*tensorCheck) ([]Range, error) {
	var ranges []Range
	for _, c := range checks {
		got, err := c.hasher.Sums()
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", base(f), c.pinned.Name, err)
		}
		if got.BLAKE3 == c.pinned.BLAKE3 {
			continue
		}
		if slabs := c.wrongSlabs(f, got); len(slabs) > 0 {
			ranges = append(ranges, slabs...)
			continue
		}
		ranges = append(ranges, Range{File: base(f), Offset: c.offset, Length: c.pinned.Size, Tensor: c.pinned.Name, BLAKE3: &c.pinned.BLAKE3})
	}
	return ranges, nil
}

// wrongSlabs returns the experts of a tensor that are wrong.
func (c *tensorCheck) wrongSlabs(f *gguf.File, got manifest.TensorSums) []Range {
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
			ranges = append(ranges, Range{File: base(f), Offset: c.offset + int64(i)*size, Length: size, Tensor: c.pinned.Name, Expert: &i, BLAKE3: &sum})
		}
	}
	return ranges
}

// wrongRest compares the header with that of the good copy, and looks at what lies between
// tensors: what is not zero there is suspect, and all of it where nothing else explains
// the sum.
func (job *Job) wrongRest(f *gguf.File, r io.ReaderAt, checks []*tensorCheck, suspect bool) ([]Range, error) {
	var ranges []Range
	at := f.DataOffset
	header, err := job.differs(f, r, 0, f.DataOffset)
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
		wrong, err := job.differs(f, r, at, to)
		if wrong != nil {
			ranges = append(ranges, *wrong)
		}
		return err
	}
	for _, c := range checks {
		if err := gap(c.offset); err != nil {
			return nil, err
		}
		at = max(at, c.offset+c.pinned.Size)
	}
	return ranges, gap(f.Size)
}

// differs compares bytes that no pin has a digest of with those of the good copy.
func (job *Job) differs(f *gguf.File, r io.ReaderAt, from, to int64) (*Range, error) {
	good, have := blake3.New(), blake3.New()
	for _, side := range []struct {
		hash *blake3.Hasher
		r    io.ReaderAt
	}{{good, f}, {have, r}} {
		if _, err := io.Copy(side.hash, io.NewSectionReader(side.r, from, to-from)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	want := manifest.Sum(good.Sum(nil))
	if manifest.Sum(have.Sum(nil)) == want {
		return nil, nil
	}
	return &Range{File: base(f), Offset: from, Length: to - from, BLAKE3: &want}, nil
}

func isZero(r io.ReaderAt, from, to int64) bool {
	b := make([]byte, 4<<10)
	for from < to {
		part := b[:min(int64(len(b)), to-from)]
		if n, _ := r.ReadAt(part, from); n < len(part) || len(bytes.Trim(part, "\x00")) > 0 {
			return false
		}
		from += int64(len(part))
	}
	return true
}
