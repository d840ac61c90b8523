package repair

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// A Source is where right bytes come from.
type Source struct {
	Name string // in messages
	// Identity tells it from any other, for a run that is gone on with by sums alone.
	Identity string
	// Model is a sound model: the files themselves, the same tensors in other files, or what
	// Views are made of.
	Model *gguf.Model
	// Views are the tensors that are made of the model, where they are not its own, in the
	// order of the pin; nil for its own.
	Views []gguf.View
	// Metadata is what goes with Views, as far as is known; nil where nobody knows. What the pin
	// does not say of it is not believed.
	Metadata *gguf.Metadata

	views map[string]gguf.View // of the pinned tensors
	exact bool                 // the model is, by its headers, the pinned one
	files []reader             // by file of the job; nil for a file that it has not

	// Of the ranges, while they are mended: those before copied have been, or were done before;
	// those before next are announced; lead is the bytes between the two.
	copied, next int
	lead         int64
}

// A reader reads bytes of a whole file as it should be, and can make use of knowing which ones
// are wanted soon.
type reader interface {
	io.ReaderAt
	gguf.Prefetcher
	FetchAhead() (window, step, gap int64)
}

// contents is what is written to make the pinned model of the source.
func (s *Source) contents() gguf.Contents {
	c := s.Model.Contents()
	if s.Views != nil {
		c.Views, c.Metadata = s.Views, s.Metadata
	}
	return c
}

// bind finds the views of the pinned tensors, and refuses a source that lacks one.
func (s *Source) bind(pin *manifest.Pin) error {
	pinned := manifest.ByName(pin)
	s.views = map[string]gguf.View{}
	for _, v := range s.contents().Views {
		if t := pinned[v.Name]; t != nil && fits(v, t) {
			s.views[v.Name] = trimmed(v, t.Size)
		}
	}
	var err error
	if s.Views == nil {
		err = pin.CheckHeaders(s.Model)
		s.exact = err == nil
	}
	for _, t := range pin.Tensors {
		if _, ok := s.views[t.Name]; !ok {
			if err == nil {
				err = fmt.Errorf("it has no tensor %q of type %s and shape %v", t.Name, t.Type, t.Shape)
			}
			return fmt.Errorf("%s: is not what the pin is of: %w", s.Name, err)
		}
	}
	return nil
}

// fits reports whether a view can be the pinned tensor. Of a type whose block size is not known,
// padding may be in its bytes.
func fits(v gguf.View, t *manifest.Tensor) bool {
	return v.Type.String() == t.Type && v.Size() >= t.Size &&
		slices.Equal(gguf.CanonicalShape(v.Shape), gguf.CanonicalShape(t.Shape))
}

// trimmed returns the first bytes of a view.
func trimmed(v gguf.View, size int64) gguf.View {
	extents := slices.Clone(v.Extents)
	for i, e := range extents {
		if size <= e.Length {
			extents[i].Length = size
			extents = extents[:i+1]
			break
		}
		size -= e.Length
	}
	v.Extents = extents
	return v
}

// serve settles what the source has of a file, number i of n.
func (s *Source) serve(f *file, i, n int) {
	var r reader
	if s.Views == nil && len(s.Model.Files) == n && s.Model.Files[i].Size == f.size && (f.frame == nil || f.placedAs(s.Model.Files[i])) {
		r = s.Model.Files[i]
	} else if f.frame != nil {
		r = newComposed(f, s.views)
	}
	s.files = append(s.files, r)
}

// A composed is a file made of views, behind a header and with what lies between them.
type composed struct {
	frame io.ReaderAt
	parts []part // by offset
	size  int64
}

type part struct {
	offset int64
	size   int64
	view   gguf.View
}

func newComposed(f *file, views map[string]gguf.View) *composed {
	c := &composed{frame: f.frame, size: f.size}
	for _, p := range f.tensors {
		if p.pinned.Size > 0 {
			c.parts = append(c.parts, part{p.offset, p.pinned.Size, views[p.pinned.Name]})
		}
	}
	return c
}

// ReadAt reads bytes of the file, as [io.ReaderAt].
func (c *composed) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > c.size || int64(len(p)) > c.size-off {
		return 0, io.ErrUnexpectedEOF
	}
	done := 0
	err := c.each(off, int64(len(p)), func(source io.ReaderAt, at, n int64) error {
		got, err := source.ReadAt(p[done:done+int(n)], at)
		done += got
		if int64(got) == n {
			return nil
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return done, err
}

// each hands on the bytes that n at off consist of, in order.
func (c *composed) each(off, n int64, use func(source io.ReaderAt, at, n int64) error) error {
	i := sort.Search(len(c.parts), func(i int) bool { return off < c.parts[i].offset+c.parts[i].size })
	for end := off + n; off < end; {
		until, err := end, error(nil)
		if i < len(c.parts) && c.parts[i].offset <= off {
			p := c.parts[i]
			until = min(end, p.offset+p.size)
			err = extents(p.view, off-p.offset, until-off, use)
			i++
		} else {
			if i < len(c.parts) {
				until = min(end, c.parts[i].offset)
			}
			err = use(c.frame, off, until-off)
		}
		if err != nil {
			return err
		}
		off = until
	}
	return nil
}

// extents hands on the bytes that n at off of a view's data consist of.
func extents(v gguf.View, off, n int64, use func(source io.ReaderAt, at, n int64) error) error {
	for _, e := range v.Extents {
		if off >= e.Length {
			off -= e.Length
			continue
		}
		some := min(n, e.Length-off)
		if err := use(e.Source, e.Offset+off, some); err != nil {
			return err
		}
		if n -= some; n == 0 {
			return nil
		}
		off = 0
	}
	return errors.New("the source has fewer bytes of it")
}

// Prefetch announces bytes to where they come from.
func (c *composed) Prefetch(off, n int64) {
	_ = c.each(off, n, func(source io.ReaderAt, at, n int64) error {
		if p, ok := source.(gguf.Prefetcher); ok {
			p.Prefetch(at, n)
		}
		return nil
	})
}

// FetchAhead tells what pays, as [gguf.Fetcher].
func (c *composed) FetchAhead() (window, step, gap int64) {
	for _, p := range c.parts {
		for _, e := range p.view.Extents {
			if far, ok := e.Source.(gguf.Fetcher); ok {
				return far.FetchAhead()
			}
		}
	}
	return 0, 0, 0
}
