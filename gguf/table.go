package gguf

import "slices"

const (
	tensorRoom  = 1 << 17 // tensors for which room is made at once
	tensorChunk = 512     // tensors that are read at a time
	tensorAhead = 4       // chunks that are read ahead of the listing
)

// A tableChunk is some tensors that follow each other in a table.
type tableChunk struct {
	tensors []Tensor
	end     int64 // position in the file behind them
}

// readTensors reads the table of tensor infos, and lists them by name while it reads on.
// Little is set aside for tensors that have not been seen yet: in a file of many
// gigabytes, that the bytes could hold as many as are declared says nothing.
func (f *File) readTensors(s *scanner, count int64, found *problems) {
	if s.err == nil && count > s.remaining()/minTensorInfoBytes {
		s.fail(s.offset(), "%d tensors declared, but only %d bytes remain: the file is truncated or damaged", count, s.remaining())
	}
	if s.err != nil {
		return
	}
	f.names = newNameIndex(min(count, tensorRoom))
	chunks, enough := make(chan tableChunk, tensorAhead), make(chan struct{})
	go s.table(count, chunks, enough)
	repeats := 0
	for chunk := range chunks {
		if repeats += f.list(chunk.tensors, found); repeats > maxRepeats {
			close(enough)
			for range chunks { // until the scanner has stopped
			}
			s.overrule(chunk.end, "more than %d tensor names are repeated up to here: this part of the file is damaged", maxRepeats)
		}
	}
	f.Tensors = f.names.list
}

// list adds tensors to those of the file, and counts the names that stood before.
func (f *File) list(chunk []Tensor, found *problems) (repeats int) {
	for i := range chunk {
		t := &chunk[i]
		t.file = f
		if first := f.names.add(t); first >= 0 {
			found.errorf(t.where(), "name stands twice, as tensor %d and as tensor %d", first+1, len(f.names.list))
			repeats++
		}
	}
	return repeats
}

// table reads the tensor infos of a table of count, and sends those that are whole until
// enough is closed. At the end it closes chunks.
func (s *scanner) table(count int64, chunks chan<- tableChunk, enough <-chan struct{}) {
	defer close(chunks)
	s.ahead.pairs, s.ahead.table = 0, s.offset()
	for done := int64(0); done < count; {
		chunk := make([]Tensor, min(count-done, tensorChunk))
		if s.tensors(chunk, done, count); s.err != nil {
			return
		}
		select {
		case chunks <- tableChunk{chunk, s.offset()}:
		case <-enough:
			return
		}
		done += int64(len(chunk))
	}
}

// tensors reads a chunk of tensor infos, of which done were read before. The names of
// a chunk share one string, and the shapes one array.
func (s *scanner) tensors(chunk []Tensor, done, count int64) {
	names, dims := s.names[:0], s.dims[:0]
	var ends [tensorChunk]struct{ name, dim int }
	for i := range chunk {
		start := len(names)
		names = s.appendText(names, maxNameLength, "name")
		if dims = s.tensor(&chunk[i], dims); s.err != nil {
			s.within("tensor %d of %d %s", done+int64(i)+1, count, quoted(string(names[start:])))
			return
		}
		ends[i].name, ends[i].dim = len(names), len(dims)
		s.ahead.listed++
	}
	s.names, s.dims = names, dims
	allNames, allDims := string(names), slices.Clone(dims)
	name, dim := 0, 0
	for i := range chunk {
		end := ends[i]
		chunk[i].Name, chunk[i].Shape = allNames[name:end.name], allDims[dim:end.dim:end.dim]
		name, dim = end.name, end.dim
	}
}

// tensor reads what follows a tensor's name, and appends its shape to dims.
func (s *scanner) tensor(t *Tensor, dims []uint64) []uint64 {
	at := s.offset()
	count := s.u32("number of dims")
	if count > maxDims {
		s.fail(at, "%d dims, at most %d are possible", count, maxDims)
		return dims
	}
	at = s.offset()
	rest := s.next(8*int(count)+4+8, "dims, type and offset")
	if rest == nil {
		return dims
	}
	start := len(dims)
	for ; count > 0; count-- {
		dims = append(dims, s.decode64(rest))
		rest = rest[8:]
	}
	offset := s.decode64(rest[4:])
	if _, ok := elements(dims[start:]); !ok {
		s.fail(at, "shape %v has more elements than a signed 64-bit count holds", dims[start:])
	} else if offset > maxOffset {
		s.fail(at, "offset %d is beyond any file", offset)
	}
	t.Type, t.Offset = Type(s.decode32(rest)), int64(offset)
	return dims
}
