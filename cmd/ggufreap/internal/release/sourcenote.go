package release

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
)

// noteSuffix marks the note that stands beside the pin which is to come.
const noteSuffix = ".part"

// noteShare is after which part of the source's bytes the note is written again: one in so
// many.
const noteShare = 50

// A sourceNote keeps the digests of those files of a source that have passed, in a file beside
// the pin that is to come, for a run that goes on. Nothing of it is believed of a file of
// another size, time of change or identity.
type sourceNote struct {
	path   string
	record *parts.Record
	every  int64 // bytes

	mu      sync.Mutex
	passed  map[int]passedFile
	unsaved int64 // bytes of files that it does not tell
}

// A passedFile is a file of the source with its digests.
type passedFile struct {
	manifest.File
	tensors []manifest.Tensor
}

// newSourceNote returns the note of a source that is read as o says.
func newSourceNote(s *SourcePin, headers *manifest.Pin, o *stage.Options) (*sourceNote, error) {
	var lines []string
	for _, path := range o.Sources {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, parts.FileLine(filepath.Base(path), info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)))
	}
	for _, far := range o.Far {
		lines = append(lines, parts.FileLine(far.Name, far.Size, far.Identity))
	}
	record := parts.New(headers, []parts.Fact{parts.FactOf("list of source files", slices.Values(lines))})
	record.Task, record.Program, record.Part, record.Parts = "prune --pin-source", s.Program, 1, 1
	return &sourceNote{path: s.Path + noteSuffix, record: record, every: headers.Artifact.FileBytes / noteShare, passed: map[int]passedFile{}}, nil
}

// adopt gives the recorder what an earlier run noted of the same source, and returns how many
// bytes need not pass again. What is no such note is passed over, and replaced in time.
func (n *sourceNote) adopt(r *manifest.Recorder) (bytes int64) {
	was := n.read()
	if was == nil || n.record.Difference(was) != "" {
		return 0
	}
	rest := was.Tensors
	for _, f := range was.Files {
		file := passedFile{manifest.File{Name: f.Name, Size: f.Size, SHA256: f.SHA256}, rest[:f.Tensors]}
		rest = rest[f.Tensors:]
		if r.Adopt(f.Number-1, file.File, file.tensors) == nil {
			n.passed[f.Number-1] = file
			bytes += f.Size
		}
	}
	return bytes
}

// read returns what an earlier run left, nil where that is nothing sound.
func (n *sourceNote) read() *parts.Record {
	data, err := files.Read(n.path)
	if err != nil {
		return nil
	}
	record, err := parts.Decode(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return record
}

// take notes a file that has passed. A note that cannot be written costs a later run time, and
// does not end this one.
func (n *sourceNote) take(i int, f manifest.File, tensors []manifest.Tensor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.passed[i] = passedFile{f, tensors}
	if n.unsaved += f.Size; n.unsaved < n.every {
		return
	}
	n.unsaved = 0
	n.record.Files, n.record.Tensors = nil, nil
	for _, i := range slices.Sorted(maps.Keys(n.passed)) {
		n.record.Add(i+1, n.passed[i].File, n.passed[i].tensors)
	}
	var text bytes.Buffer
	if n.record.Encode(&text) == nil {
		_ = files.Replace(n.path, text.Bytes())
	}
}

// remove removes the note, once the pin is there. That it stays does no harm.
func (n *sourceNote) remove() { files.Remove(n.path) }
