// Package repair finds which bytes of an artifact are not what they should be, and replaces
// those alone by the bytes of a good copy, which may be far away. What is right a pin says,
// to the expert, or a list of sums, to the file.
//
// A journal in the folder notes the wrong ranges once they are known and each range once it
// is replaced, compared and durable, so that a run that was killed is gone on with. Its lock
// keeps other runs away. The package knows nothing of addresses: the good copy is a
// [gguf.Model].
package repair

import (
	"errors"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// ErrInUse says that another run repairs the same folder.
var ErrInUse = errors.New("another run repairs the files of this folder")

// JournalName is the file that marks a folder in which a repair has not ended.
const JournalName = "REPAIR.jsonl"

// A Job says what is to be repaired, and by what.
type Job struct {
	Dir string // the folder of the files
	// Good is a sound copy of the artifact: the same files, by name and size.
	Good *gguf.Model
	// Identity tells the copy from any other, for a run that is gone on with.
	Identity string
	// Pin says what the bytes should be; nil where only sums do.
	Pin *manifest.Pin
	// Sums are the files' SHA-256, by base name, where there is no pin.
	Sums map[string]manifest.Sum
	// Workers is how many files are read at once; 0 means two a processor.
	Workers int
	// DryRun says that the files will not be mended: then no journal is made, and no other run
	// held off.
	DryRun bool
	// Checked is told how many bytes of the files are compared, Fetched how many are replaced.
	Checked, Fetched manifest.Progress
}

// A Range is bytes of one file that are not what they should be.
type Range struct {
	File   string `json:"file"` // base name
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	// Tensor and Expert say what the bytes are of: "" for header and padding, and no
	// expert for a tensor without.
	Tensor string `json:"tensor,omitempty"`
	Expert *int   `json:"expert,omitempty"`
	// BLAKE3 is what the bytes must have; nil where only the sum of the file tells.
	BLAKE3 *manifest.Sum `json:"blake3,omitempty"`
}

// Damage is what was found, in the order of the files.
type Damage struct {
	Ranges []Range
	Files  int // that are not what they should be
	Whole  int // of those, files of which only a sum is known
	job    *Job
	done   map[int]bool // ranges that an earlier run has replaced
	log    *journal
}

// Bytes returns the bytes of all ranges that are not replaced yet.
func (d *Damage) Bytes() int64 {
	var n int64
	for i, r := range d.Ranges {
		if !d.done[i] {
			n += r.Length
		}
	}
	return n
}

// Resumed returns how many ranges an earlier run has replaced.
func (d *Damage) Resumed() int { return len(d.done) }
