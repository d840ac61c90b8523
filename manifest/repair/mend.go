package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// Mend replaces every range by right bytes, holds the sums of the files that it wrote to against
// those that are known, and then cuts what is behind their ends. The journal goes when all is
// right.
func (d *Damage) Mend(ctx context.Context) error {
	defer d.log.close()
	if len(d.Ranges) == 0 {
		return nil
	}
	if err := d.checkWritable(); err != nil {
		return errors.Join(err, d.log.leave())
	}
	if err := d.log.begin(d); err != nil {
		return err
	}
	m := &mending{Damage: d, count: pass.NewMeter(d.Bytes(), d.job.Fetched), took: map[string]*Took{}, failed: map[*Source]bool{}}
	for i := 0; i < len(d.Ranges); {
		name := d.Ranges[i].File
		end := i
		for end < len(d.Ranges) && d.Ranges[end].File == name {
			end++
		}
		if err := m.mendFile(ctx, name, i, end); err != nil {
			return fmt.Errorf("%s: %w", d.job.path(name), err)
		}
		i = end
	}
	d.Took = m.list()
	err := d.checkFiles(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = d.cutSurplus()
	}
	return errors.Join(err, d.log.remove()) // where a sum is wrong, the next run looks again
}

// checkWritable opens every file that will be written to, before any is.
func (d *Damage) checkWritable() error {
	for _, damage := range d.Files {
		path := d.job.path(damage.File)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // a new file takes its place
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// A mending is one run that mends.
type mending struct {
	*Damage
	count  *pass.Meter
	took   map[string]*Took
	failed map[*Source]bool // of which a part was wrong or could not be read
}

// list returns what was taken, in the order of the sources.
func (m *mending) list() []Took {
	var list []Took
	for _, s := range m.job.Sources {
		if t := m.took[s.Name]; t != nil && !slices.Contains(list, *t) {
			list = append(list, *t)
		}
	}
	if t := m.took[MadeAnew]; t != nil {
		list = append(list, *t)
	}
	return list
}

// tookFrom notes that a range came from a source.
func (m *mending) tookFrom(name string, r Range) {
	if m.took[name] == nil {
		m.took[name] = &Took{Source: name}
	}
	m.took[name].Ranges++
	m.took[name].Bytes += r.replaced()
}

// mendFile replaces the ranges from i to end, which are those of one file.
func (m *mending) mendFile(ctx context.Context, name string, i, end int) error {
	f, number := m.job.file(name)
	if f.frame == nil && m.Ranges[i].Kind == Bytes {
		return m.mendWhole(ctx, f, number, i, end)
	}
	if err := m.ownCopy(f); err != nil {
		return err
	}
	file, err := os.OpenFile(m.job.path(name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.size {
		if err := file.Truncate(f.size); err != nil {
			return err
		}
	}
	return errors.Join(m.eachRange(file, i, end, func(k int) error { return m.mendRange(ctx, file, f, number, k) }), file.Close())
}

// What may have to be fetched again when a run is killed: so many bytes, or those of so long.
const (
	keepStep = 32 << 20
	keepTime = 3 * time.Second
)

// eachRange mends the ranges from i to end that are not mended yet, and notes now and then those
// that are.
func (m *mending) eachRange(file *os.File, i, end int, mend func(i int) error) error {
	var written []int // not durable yet
	var bytes int64
	since := time.Now()
	for ; i < end; i++ {
		if m.done[i] || m.Ranges[i].Kind == Surplus {
			continue
		}
		if err := mend(i); err != nil {
			return errors.Join(err, m.note(file, written))
		}
		written, bytes = append(written, i), bytes+m.Ranges[i].replaced()
		if bytes >= keepStep || time.Since(since) >= keepTime {
			if err := m.note(file, written); err != nil {
				return err
			}
			written, bytes, since = nil, 0, time.Now()
		}
	}
	return m.note(file, written)
}

// note makes ranges durable and has the journal say so.
func (d *Damage) note(file *os.File, written []int) error {
	if len(written) == 0 {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	for _, i := range written {
		d.done[i] = true
	}
	return d.log.note(written)
}

// checkFiles takes the sums of the files that were written to, as far as they should reach.
func (d *Damage) checkFiles(ctx context.Context) error {
	var files []*file
	var total int64
	for _, damage := range d.Files {
		f, _ := d.job.file(damage.File)
		if f.sum != nil && !damage.Whole { // those were summed before they got their names
			files = append(files, f)
			total += f.size
		}
	}
	count := pass.NewMeter(total, d.job.Checked)
	return pass.ForEach(ctx, len(files), d.job.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		got, err := d.job.sumOf(ctx, files[i], files[i].name, w, count)
		if err != nil {
			return err
		}
		if got != *files[i].sum {
			return fmt.Errorf("%s: sha256 is %s after the repair, want %s: the good copy is another one, or bytes that no digest tells apart are wrong", d.job.path(files[i].name), got, *files[i].sum)
		}
		return nil
	})
}

// sumOf takes the sum of what lies in the place of a file.
func (job *Job) sumOf(ctx context.Context, f *file, name string, w *pass.Worker, count io.Writer) (manifest.Sum, error) {
	r, err := job.openPadded(name)
	if err != nil {
		return manifest.Sum{}, err
	}
	defer r.close()
	hasher := w.Hasher()
	if err := pass.Scan(ctx, r, f.size, w.Buf, io.MultiWriter(hasher, count), nil, nil); err != nil {
		return manifest.Sum{}, err
	}
	return manifest.Sum(hasher.Sum()), nil
}

// cutSurplus cuts what is behind the ends of files, which are right now.
func (d *Damage) cutSurplus() error {
	for _, r := range d.Ranges {
		if r.Kind != Surplus {
			continue
		}
		file, err := os.OpenFile(d.job.path(r.File), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = file.Truncate(r.Offset)
		if err == nil {
			err = file.Sync()
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
