package reap

import (
	"fmt"
	"strings"
)

// A Fault is one thing that stands in the way of pruning.
type Fault struct {
	Where string // a tensor, a layer, a key, or a place in a document
	What  string
}

// String returns the place and the fault on one line.
func (f Fault) String() string {
	if f.Where == "" {
		return f.What
	}
	return f.Where + ": " + f.What
}

// Faults are all the faults found in one look. As an error it has one line for each.
type Faults []Fault

// Error lists the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults as an error, nil when there are none.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

func (fs *Faults) add(where, format string, args ...any) {
	*fs = append(*fs, Fault{Where: where, What: fmt.Sprintf(format, args...)})
}

// intList prints ascending numbers with runs closed up: "1-3, 7".
func intList(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if fmt.Fprintf(&b, "%d", list[i]); j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}

// layerList names layers in an error: "layer 4" or "layers 1-3, 7".
func layerList(blocks []int) string {
	if len(blocks) == 1 {
		return "layer " + intList(blocks)
	}
	return "layers " + intList(blocks)
}
