package parts

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/strict"
)

// RecordSchema is the schema of the records that this package writes, and the only one that
// it reads.
const RecordSchema = "ggufreap/record/v1"

// A Record says what was done of one part of some work. Everything up to Metadata is about
// the whole work, and the same in the records of all its parts but for Part.
type Record struct {
	Schema       string            `json:"schema"`
	RecordDigest manifest.Digest   `json:"record_digest"` // over the document with the digest of nothing in this place
	Task         string            `json:"task"`          // the command: prune, reshard, pin
	Program      string            `json:"program"`       // version
	Part         int               `json:"part"`          // from 1
	Parts        int               `json:"parts"`
	Artifact     manifest.Artifact `json:"artifact"` // that is written or pinned
	Declared     manifest.Declared `json:"declared"`
	Facts        []Fact            `json:"facts"`    // what decides the work
	Metadata     []manifest.Pair   `json:"metadata"` // of the artifact
	Documents    []Document        `json:"documents"`
	Findings     []Finding         `json:"findings"` // of verify
	Files        []File            `json:"files"`    // of this part, in order
	Tensors      []manifest.Tensor `json:"tensors"`  // of these files, in order
}

// A Fact names a thing by its digest, such as the plan that a release is made by.
type Fact struct {
	Name   string          `json:"name"`
	Digest manifest.Digest `json:"digest"`
}

// FactOf names what some lines say by their digest.
func FactOf(name string, lines iter.Seq[string]) Fact {
	h := blake3.New()
	for line := range lines {
		io.WriteString(h, line+"\n")
	}
	return Fact{Name: name, Digest: manifest.Digest{Algorithm: manifest.BLAKE3, Sum: manifest.Sum(h.Sum(nil))}}
}

// FileLine says which file a source is: its name, its size, and, where it is not of this
// machine, what tells it from any other. When it was modified does not count: machines can
// have copies of their own.
func FileLine(name string, size int64, identity string) string {
	return fmt.Sprintf("%q\t%d\t%q", name, size, identity)
}

// A File is one file of the artifact.
type File struct {
	Number  int          `json:"number"` // among all files, from 1
	Name    string       `json:"name"`   // base name
	Size    int64        `json:"size"`
	SHA256  manifest.Sum `json:"sha256"`
	Tensors int          `json:"tensors"` // how many of the record's
}

// A Document is another file of a release, which the first part writes.
type Document struct {
	Name   string       `json:"name"`
	Size   int64        `json:"size"`
	SHA256 manifest.Sum `json:"sha256"`
}

// New returns the record of a part of work on the artifact of a pin, whose digests of data are
// not looked at. Task, program and part are for the caller to set.
func New(pin *manifest.Pin, facts []Fact) *Record {
	return &Record{Schema: RecordSchema, Artifact: pin.Artifact, Declared: pin.Declared, Metadata: pin.Metadata, Facts: facts}
}

// Add puts a file into the record, by its number from 1, with its tensors.
func (r *Record) Add(number int, f manifest.File, tensors []manifest.Tensor) {
	r.Files = append(r.Files, File{Number: number, Name: f.Name, Size: f.Size, SHA256: f.SHA256, Tensors: len(tensors)})
	r.Tensors = append(r.Tensors, tensors...)
}

// A Finding is one thing that is not as it should be.
type Finding struct {
	File string `json:"file"` // "" when it is about no single file
	What string `json:"what"`
}

// Name returns the file name of the record of part i of n, counted from 1.
func Name(i, n int) string { return fmt.Sprintf("%s%d-of-%d%s", namePrefix, i, n, nameSuffix) }

const (
	namePrefix = "PART-"
	nameSuffix = ".json"
)

// ParseName reads a name that [Name] makes.
func ParseName(name string) (i, n int, ok bool) {
	middle, suffixed := strings.CutSuffix(name, nameSuffix)
	middle, prefixed := strings.CutPrefix(middle, namePrefix)
	first, second, divided := strings.Cut(middle, "-of-")
	if !suffixed || !prefixed || !divided {
		return 0, 0, false
	}
	i, errI := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	if errI != nil || errN != nil || i < 1 || i > n || n > MaxParts || Name(i, n) != name {
		return 0, 0, false
	}
	return i, n, true
}

// MaxParts bounds the number of parts.
const MaxParts = 100_000

// Bounds of a record. That of all of a model with 93 layers of 896 experts has 15 MB.
const (
	maxRecordBytes = 64 << 20
	maxRecordPart  = 6 << 20
)

// Encode writes the document of a record: UTF-8 JSON, indented by two spaces, keys in the
// order of the fields, a newline at the end. The same record gives the same bytes.
func (r *Record) Encode(w io.Writer) error {
	if err := r.Validate(); err != nil {
		return err
	}
	sealed := *r
	sealed.RecordDigest = r.digest()
	return strict.Encode(w, &sealed)
}

// digest returns the digest of the document.
func (r *Record) digest() manifest.Digest {
	open := *r
	open.RecordDigest = manifest.DigestBytes(nil)
	h := blake3.New()
	if err := strict.Encode(h, &open); err != nil {
		return manifest.Digest{}
	}
	return manifest.Digest{Algorithm: manifest.BLAKE3, Sum: manifest.Sum(h.Sum(nil))}
}

// Decode reads the document of a record. It refuses another schema, a field that it does not
// know, a document that differs in any byte from what Encode writes, and one whose digest is
// that of another. A document larger than 64 MiB is an error.
func Decode(r io.Reader) (*Record, error) {
	kind := strict.Kind{Noun: "record", Schema: RecordSchema, Bytes: maxRecordBytes, Part: maxRecordPart}
	record := &Record{}
	if err := kind.Decode(r, record); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := record.Validate(); err != nil {
		return nil, err
	}
	if got := record.digest(); got != record.RecordDigest {
		return nil, fmt.Errorf("record: its digest is %q, what stands in it gives %q: it was changed", record.RecordDigest, got)
	}
	return record, nil
}
