package reap

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggufreap/gguf/words"
)

// A Fault is one thing that stands in the way of pruning.
type Fault struct {
	Where string // a tensor, a layer, a key, or a place in a document
	What  string

	more int // faults that this one, the last, stands for
}

// String returns the place and the fault on one line.
func (f Fault) String() string {
	if f.Where == "" {
		return f.What
	}
	return f.Where + ": " + f.What
}

// Faults are the faults found in one look: all of them, or the first thousand and one that
// counts the others.
type Faults []Fault

// errorLines is how many faults an error lists, one a line; then it counts.
const errorLines = 32

// Error lists the faults, one a line, and says how many more there are than a person reads.
// Layers in a row of which the same is said share a line.
func (fs Faults) Error() string {
	var list []string
	for i := 0; i < len(fs); {
		if len(list) == errorLines {
			list = append(list, fmt.Sprintf("and %d more", fs.total()-i))
			break
		}
		f, n := fs.joined(i)
		list = append(list, f.String())
		i += n
	}
	return strings.Join(list, "\n")
}

// joined returns a fault that says what n of them do, from the i-th on.
func (fs Faults) joined(i int) (f Fault, n int) {
	var blocks []int
	for _, f := range fs[i:] {
		number, ok := strings.CutPrefix(f.Where, "layer ")
		block, err := strconv.Atoi(number)
		if !ok || err != nil || f.What != fs[i].What || len(blocks) > 0 && block <= blocks[len(blocks)-1] {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) < 2 {
		return fs[i], 1
	}
	return Fault{Where: layerList(blocks), What: fs[i].What}, len(blocks)
}

// total counts the faults, those that the last one stands for too.
func (fs Faults) total() int {
	n := len(fs)
	if more := fs[n-1].more; more > 0 {
		return n - 1 + more
	}
	return n
}

// Err returns the faults as an error, nil when there are none.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// What is kept of faults: a document of a few megabytes can have a million.
const (
	maxFaults    = 1000
	maxFaultText = 1000 // bytes of a place or a message
)

// Add adds a fault. Of those that are too many to be kept it counts how many there are.
func (fs *Faults) Add(where, format string, args ...any) {
	switch n := len(*fs); {
	case n < maxFaults:
		*fs = append(*fs, Fault{Where: shorten(where), What: shorten(fmt.Sprintf(format, args...))})
	case n == maxFaults:
		*fs = append(*fs, Fault{What: "and 1 more", more: 1})
	default:
		last := &(*fs)[n-1]
		last.more++
		last.What = fmt.Sprintf("and %d more", last.more)
	}
}

// shorten cuts a text that is longer than any that is meant.
func shorten(s string) string {
	if len(s) <= maxFaultText {
		return s
	}
	end := maxFaultText
	for !utf8.RuneStart(s[end]) && end > maxFaultText-utf8.UTFMax {
		end--
	}
	return s[:end] + "..."
}

// layerList names layers in an error: "layer 4" or "layers 1-3, 7".
func layerList(blocks []int) string {
	if len(blocks) == 1 {
		return "layer " + words.Ranges(blocks)
	}
	return "layers " + words.Ranges(blocks)
}
