package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// A Fault is one thing that is wrong with a document, or one to be warned of.
type Fault struct {
	Line int // from 1; 0 when it is about no single line
	What string
}

// String returns the fault on one line.
func (f Fault) String() string {
	if f.Line == 0 {
		return f.What
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.What)
}

// Faults are all that was found, or the first thousand.
type Faults []Fault

// maxFaults is how many are kept of a document, which can have a fault in each line.
const maxFaults = 1000

// errorLines is how many faults an error lists, one a line; then it counts.
const errorLines = 64

// Error lists the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, 0, len(fs))
	for i, f := range fs {
		if i == errorLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(fs)-errorLines))
			break
		}
		lines = append(lines, f.String())
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

func (fs *Faults) add(line int, format string, args ...any) {
	if len(*fs) < maxFaults {
		*fs = append(*fs, Fault{line, fmt.Sprintf(format, args...)})
	}
}

// sort puts the faults in the order of their lines.
func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int { return a.Line - b.Line })
}
