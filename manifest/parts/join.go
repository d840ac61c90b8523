package parts

import (
	"fmt"
	"slices"

	"ggufreap/manifest"
)

// A Join takes in the records of all parts.
type Join struct {
	first *Record // what all have in common
	part  []int   // which part has file i, 0 for none yet
	files []manifest.File
	data  [][]manifest.Tensor // by file
	seen  map[int]bool        // parts
	docs  []Document          // of the first part
	found []Finding           // by any part
	known map[Finding]bool    // those
	bytes int64               // of text, about
}

// NewJoin returns a Join of work that has the record like as one of its parts.
func NewJoin(like *Record) *Join {
	n := like.Artifact.Shards
	return &Join{first: like, part: make([]int, n), files: make([]manifest.File, n), data: make([][]manifest.Tensor, n), seen: map[int]bool{}, known: map[Finding]bool{}}
}

// Add takes in a record. It refuses one that is about other work, and one that claims a file
// that another part has.
func (j *Join) Add(r *Record) error {
	if what := j.first.Difference(r); what != "" {
		return fmt.Errorf("%s is of other work than %s: %s", Name(r.Part, r.Parts), Name(j.first.Part, j.first.Parts), what)
	}
	if j.seen[r.Part] {
		return fmt.Errorf("part %d comes twice", r.Part)
	}
	if j.bytes += textBytes(r); j.bytes > maxRecordBytes {
		return fmt.Errorf("the records have more than %d bytes, which no pin can have", maxRecordBytes)
	}
	rest := r.Tensors
	for _, f := range r.Files {
		i := f.Number - 1
		if j.part[i] != 0 {
			return fmt.Errorf("parts %d and %d both have file %d, %q", j.part[i], r.Part, f.Number, f.Name)
		}
		j.part[i], j.files[i] = r.Part, manifest.File{Name: f.Name, Size: f.Size, SHA256: f.SHA256}
		j.data[i], rest = rest[:f.Tensors], rest[f.Tensors:]
	}
	for _, f := range r.Findings {
		if !j.known[f] { // those of headers have all parts
			j.known[f], j.found = true, append(j.found, f)
		}
	}
	j.seen[r.Part] = true
	if r.Part == 1 {
		j.docs = r.Documents
	}
	return nil
}

// textBytes returns about how many bytes the tensors of a record take in a pin.
func textBytes(r *Record) int64 {
	n := int64(0)
	for i := range r.Tensors {
		t := &r.Tensors[i]
		n += 250 + int64(len(t.Name))
		if t.Slabs != nil {
			n += int64(len(t.Slabs.BLAKE3)+len(t.Slabs.Bytes)) * 4 / 3
		}
		if t.IDs != nil {
			n += int64(len(t.IDs.Table)+len(t.IDs.Nearest)) * 4 / 3
		}
	}
	for _, f := range r.Findings {
		n += 50 + int64(len(f.File)+len(f.What))
	}
	return n + 200*int64(len(r.Files))
}

// Part returns the part that has a file, by its number from 1.
func (j *Join) Part(number int) int { return j.part[number-1] }

// Files returns the files of the artifact in order; those that no part has yet are empty.
func (j *Join) Files() []manifest.File { return j.files }

// Tensors returns those of file i, counted from 0.
func (j *Join) Tensors(i int) []manifest.Tensor { return j.data[i] }

// Findings returns what any part has found, each once.
func (j *Join) Findings() []Finding { return j.found }

// Documents returns the files beside the artifact's own.
func (j *Join) Documents() []Document { return j.docs }

// Complete returns an error when no part has some file.
func (j *Join) Complete() error {
	if i := slices.Index(j.part, 0); i >= 0 {
		return fmt.Errorf("no part has file %d of %d", i+1, len(j.part))
	}
	return nil
}

// Pin returns the pin of the artifact, once all parts were added.
func (j *Join) Pin() (*manifest.Pin, error) {
	if err := j.Complete(); err != nil {
		return nil, err
	}
	return manifest.JoinPin(j.first.Artifact, j.first.Declared, j.files, j.first.Metadata, slices.Concat(j.data...))
}
