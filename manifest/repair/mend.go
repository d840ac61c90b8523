package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// copyStep is how much of a range is in memory at a time.
const copyStep = 1 << 20

// maxTries is how often a range is fetched that is not what it should be.
const maxTries = 2

// Mend replaces every range by the bytes of the good copy, and then holds the sums of the
// files that it wrote to against those that are known. The journal goes when all is right.
func (d *Damage) Mend(ctx context.Context) error {
	defer d.log.close()
	if len(d.Ranges) == 0 {
		return nil
	}
	if err := d.log.begin(d); err != nil {
		return err
	}
	ahead := &announcer{damage: d}
	count := pass.NewMeter(d.Bytes(), d.job.Fetched)
	for i := 0; i < len(d.Ranges); {
		name := d.Ranges[i].File
		end := i
		for end < len(d.Ranges) && d.Ranges[end].File == name {
			end++
		}
		if err := d.mendFile(ctx, name, i, end, ahead, count); err != nil {
			return fmt.Errorf("%s: %w", d.job.path(name), err)
		}
		i = end
	}
	err := d.checkFiles(ctx)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, d.log.remove()) // where a sum is wrong, the next run looks again
}

// mendFile replaces the ranges from i to end, which are those of one file.
func (d *Damage) mendFile(ctx context.Context, name string, i, end int, ahead *announcer, count io.Writer) error {
	good := d.job.good(name)
	file, err := os.OpenFile(d.job.path(name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errors.New("is not a regular file"))
	}
	if err := file.Truncate(good.Size); err != nil {
		return err
	}
	var written []int // not durable yet
	var bytes int64
	since := time.Now()
	for ; i < end; i++ {
		ahead.announce(i)
		if d.done[i] {
			continue
		}
		if err := d.mendRange(ctx, file, good, d.Ranges[i], count); err != nil {
			return errors.Join(err, d.note(file, written))
		}
		written, bytes = append(written, i), bytes+d.Ranges[i].Length
		if bytes >= keepStep || time.Since(since) >= keepTime {
			if err := d.note(file, written); err != nil {
				return err
			}
			written, bytes, since = nil, 0, time.Now()
		}
	}
	return errors.Join(d.note(file, written), file.Close())
}

// What may have to be fetched again when a run is killed: so many bytes, or those of so long.
const (
	keepStep = 32 << 20
	keepTime = 3 * time.Second
)

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

// good returns a file of the good copy.
func (job *Job) good(name string) *gguf.File {
	for _, f := range job.Good.Files {
		if base(f) == name {
			return f
		}
	}
	return nil // ranges are of files of the copy
}

// mendRange replaces one range. What was fetched counts once it has the digest that it must
// have; until then the bytes in the file are wrong as before.
func (d *Damage) mendRange(ctx context.Context, file *os.File, good *gguf.File, r Range, count io.Writer) error {
	for try := 1; ; try++ {
		sum, err := copyRange(ctx, file, good, r, count)
		if err != nil {
			return err
		}
		if r.BLAKE3 == nil || sum == *r.BLAKE3 {
			return nil
		}
		if try == maxTries {
			return fmt.Errorf("%s: blake3 of the good copy's %d bytes at %d is %s, want %s: it is damaged too, or another one", r.what(), r.Length, r.Offset, sum, *r.BLAKE3)
		}
		count = io.Discard
	}
}

// what names what a range is of.
func (r Range) what() string {
	switch {
	case r.Expert != nil:
		return fmt.Sprintf("tensor %q, expert %d", r.Tensor, *r.Expert)
	case r.Tensor != "":
		return fmt.Sprintf("tensor %q", r.Tensor)
	}
	return "header or padding"
}

// copyRange copies a range and returns its digest.
func copyRange(ctx context.Context, file *os.File, good *gguf.File, r Range, count io.Writer) (manifest.Sum, error) {
	hash := blake3.New()
	buf := make([]byte, min(copyStep, max(r.Length, 1)))
	for at := r.Offset; at < r.Offset+r.Length; {
		if err := ctx.Err(); err != nil {
			return manifest.Sum{}, err
		}
		part := buf[:min(int64(len(buf)), r.Offset+r.Length-at)]
		if n, err := good.ReadAt(part, at); n < len(part) {
			return manifest.Sum{}, err
		}
		hash.Write(part)
		count.Write(part)
		if _, err := file.WriteAt(part, at); err != nil {
			return manifest.Sum{}, err
		}
		at += int64(len(part))
	}
	return manifest.Sum(hash.Sum(nil)), nil
}

// An announcer tells a copy that is far away which ranges come next.
type announcer struct {
	damage *Damage
	copied int   // ranges before it have been copied, or were done before
	next   int   // ranges before it are announced, where they are not done
	lead   int64 // bytes of those between the two
}

// announce is told that range i is copied next.
func (a *announcer) announce(i int) {
	d := a.damage
	for ; a.copied < i; a.copied++ {
		if a.copied < a.next {
			a.lead -= d.Ranges[a.copied].Length
		}
	}
	for a.next = max(a.next, i); a.next < len(d.Ranges); a.next++ {
		r := d.Ranges[a.next]
		f := d.job.good(r.File)
		window, _, _ := f.FetchAhead()
		if window == 0 || a.next > i && a.lead+r.Length > window {
			return
		}
		if !d.done[a.next] {
			f.Prefetch(r.Offset, r.Length)
		}
		a.lead += r.Length
	}
}

// checkFiles takes the sums of the files that were written to.
func (d *Damage) checkFiles(ctx context.Context) error {
	written := map[string]bool{}
	for _, r := range d.Ranges {
		written[r.File] = true
	}
	var files []*gguf.File
	var total int64
	for _, f := range d.job.Good.Files {
		if _, known := d.job.sum(f); known && written[base(f)] {
			files = append(files, f)
			total += f.Size
		}
	}
	count := pass.NewMeter(total, d.job.Checked)
	return pass.ForEach(ctx, len(files), d.job.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		f := files[i]
		r, err := d.job.openPadded(base(f))
		if err != nil {
			return err
		}
		defer r.close()
		hasher := w.Hasher()
		if err := pass.Scan(ctx, r, f.Size, w.Buf, io.MultiWriter(hasher, count), nil, nil); err != nil {
			return err
		}
		want, _ := d.job.sum(f)
		if got := manifest.Sum(hasher.Sum()); got != want {
			return fmt.Errorf("%s: sha256 is %s after the repair, want %s: the good copy is another one, or bytes that no digest tells apart are wrong", d.job.path(base(f)), got, want)
		}
		return nil
	})
}
