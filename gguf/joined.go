package gguf

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// A Joined is a file of a model that is read from pieces, as if cat had joined them.
type Joined struct {
	File   string   // the name that it would have, in the folder of its pieces
	Pieces []string // paths, in order
}

// Joined returns the files of the model that are read from pieces.
func (m *Model) Joined() []Joined {
	var list []Joined
	for _, f := range m.Files {
		if s, ok := f.r.(*joinedSource); ok {
			list = append(list, Joined{f.Name, s.paths()})
		}
	}
	return list
}

// A joinedSource is the pieces of a file, read as one.
type joinedSource struct {
	parts []*sourceFile
	ends  []int64 // byte of the whole where each ends
}

// joined looks at pieces without opening them.
func (p *filePool) joined(paths []string) (*joinedSource, error) {
	s := &joinedSource{}
	var end int64
	for _, path := range paths {
		part, err := p.source(path)
		if err != nil {
			return nil, err
		}
		end = AddSize(end, part.info.Size())
		s.parts, s.ends = append(s.parts, part), append(s.ends, end)
	}
	return s, nil
}

// doubt says which piece may be at fault where what they make is not sound. Names may tell how
// many pieces there are.
func (s *joinedSource) doubt(count int) string {
	var list []piece
	for _, part := range s.parts {
		list = append(list, piece{path: part.path, size: part.info.Size()})
	}
	last := base(list[len(list)-1].path)
	switch small := smallPiece(list); {
	case small != "":
		return small
	case count > 0:
		return "one of them, most likely the last, " + last + ", may not be whole"
	}
	return "one behind " + last + " may be missing"
}

func (s *joinedSource) size() int64 { return s.ends[len(s.ends)-1] }

func (s *joinedSource) paths() []string {
	paths := make([]string, len(s.parts))
	for i, part := range s.parts {
		paths[i] = part.path
	}
	return paths
}

// ReadAt fills p as that of a [sourceFile] does.
func (s *joinedSource) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for i := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > off }); done < len(p); i++ {
		at := off + int64(done)
		if i >= len(s.parts) {
			return done, &readError{s.parts[len(s.parts)-1].path, s.parts[len(s.parts)-1].info.Size(), fmt.Errorf("the last piece ends here: %w", io.ErrUnexpectedEOF)}
		}
		part := p[done:min(int64(len(p)), int64(done)+s.ends[i]-at)]
		n, err := s.parts[i].ReadAt(part, at-s.ends[i]+s.parts[i].info.Size())
		if done += n; n < len(part) {
			return done, err
		}
	}
	return done, nil
}

// Unchanged looks at the pieces again.
func (s *joinedSource) Unchanged() error {
	var errs []error
	for _, part := range s.parts {
		errs = append(errs, part.Unchanged())
	}
	return errors.Join(errs...)
}
