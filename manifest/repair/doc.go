// Package repair finds which bytes of a model's files are not what they should be, and replaces
// those alone. What is right a pin says, to the expert, or a list of sums, to the file. Right
// bytes come from one or several sources, which may be far away: a copy of the files, the same
// model in other files, or a model that this one is made of, such as the one before pruning.
//
// No byte of a file is overwritten before those in its place are known to be right. A journal
// in the folder notes the wrong ranges once they are known and each range once it is replaced
// and durable, so that a run that was killed is gone on with. Its lock keeps other runs away.
// The package knows nothing of addresses and of experts: a source is a [gguf.Model], or what
// somebody makes of one.
package repair

import (
	"errors"
	"os"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// ErrInUse says that another run repairs the same folder.
var ErrInUse = errors.New("another run repairs the files of this folder")

// ErrHeader says that nothing tells how a file begins, and with that where its tensors lie.
var ErrHeader = errors.New("its header is damaged or not there, and cannot be made anew")

// JournalName is the file that marks a folder in which a repair has not ended.
const JournalName = "REPAIR.jsonl"

// newSuffix is what follows the name of a file in that of the one that will take its place.
const newSuffix = ".repair"

// A Job says what is to be repaired, and by what.
type Job struct {
	Dir string // the folder of the files
	// Sources have right bytes; the first one that has those of a place is asked first.
	Sources []*Source
	// Pin says what the bytes should be; nil where only sums do.
	Pin *manifest.Pin
	// Sums are the files' SHA-256, by base name, for files that the pin does not name.
	Sums map[string]manifest.Sum
	// Workers is how many files are read at once; 0 means two a processor.
	Workers int
	// DryRun says that the files will not be mended: then no journal is made, and no other run
	// held off.
	DryRun bool
	// Checked is told how many bytes of the files are compared, Fetched how many are replaced.
	Checked, Fetched manifest.Progress

	files []*file
}

// Kinds of ranges.
const (
	Bytes   = "bytes"   // other bytes must stand there
	Surplus = "surplus" // no bytes: they are behind the end
	End     = "end"     // zeros, which are missing at the end
)

// A Range is bytes of one file that are not what they should be.
type Range struct {
	File   string `json:"file"` // base name
	Kind   string `json:"kind"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	// Tensor and Expert say what the bytes are of: "" for header and padding, and no
	// expert for a tensor without.
	Tensor string `json:"tensor,omitempty"`
	Expert *int   `json:"expert,omitempty"`
	// BLAKE3 is what the bytes must have; nil where only the sum of the file tells.
	BLAKE3 *manifest.Sum `json:"blake3,omitempty"`
}

// replaced is how many bytes are written to mend it.
func (r Range) replaced() int64 {
	if r.Kind == Bytes {
		return r.Length
	}
	return 0
}

// A FileDamage is a file that is not what it should be.
type FileDamage struct {
	File  string `json:"file"`  // base name
	Size  int64  `json:"size"`  // that it should have
	Found int64  `json:"found"` // size that it had; -1 where it was not there
	Whole bool   `json:"whole"` // only its sum is known, so that all of it is replaced
}

// Damage is what was found, in the order of the files.
type Damage struct {
	Ranges []Range
	Files  []FileDamage
	// Took says what came from where, once all is mended.
	Took []Took
	// Notes say what was special about the mending.
	Notes []string
	job   *Job
	done  map[int]bool // ranges that an earlier run has replaced
	log   *journal
}

// A Took says how many bytes a source gave.
type Took struct {
	Source string // its name, or [MadeAnew]
	Ranges int
	Bytes  int64
}

// MadeAnew stands for a source where a header was made of what pin and sources say.
const MadeAnew = "made anew"

// Bytes returns how many bytes are to be replaced that are not yet.
func (d *Damage) Bytes() int64 {
	var n int64
	for i, r := range d.Ranges {
		if !d.done[i] {
			n += r.replaced()
		}
	}
	return n
}

// Resumed returns how many ranges an earlier run has replaced.
func (d *Damage) Resumed() int { return len(d.done) }

// Compared counts what the files were held against: tensors, the experts that the pin tells
// apart, and files whose sum is known.
func (job *Job) Compared() (tensors, experts, sums int) {
	for _, f := range job.files {
		tensors += len(f.tensors)
		for _, t := range f.tensors {
			experts += t.pinned.SlabCount()
		}
		if f.sum != nil {
			sums++
		}
	}
	return tensors, experts, sums
}

// Others lists what else lies in the folder and was not looked at, by name.
func (job *Job) Others() []string {
	entries, err := os.ReadDir(job.Dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if f, _ := job.file(e.Name()); f == nil && e.Name() != JournalName {
			names = append(names, e.Name())
		}
	}
	return names
}

// HeaderNotes say of files where their headers come from, where neither a copy has them nor the
// sum of the whole file tells.
func (job *Job) HeaderNotes() []string {
	var made, own []string
	for _, f := range job.files {
		switch {
		case f.made:
			made = append(made, f.name)
		case f.own && f.sum == nil:
			own = append(own, f.name)
		}
	}
	var notes []string
	if len(made) > 0 {
		notes = append(notes, strings.Join(made, ", ")+": the header is made anew, of what the pin and the source say")
	}
	if len(own) > 0 {
		notes = append(notes, strings.Join(own, ", ")+": the header is taken as right, since all in it is as the pin says")
	}
	return notes
}

// ensure that a file of a model can be a source as it is.
var _ reader = (*gguf.File)(nil)
