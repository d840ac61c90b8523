package reap

import (
	"fmt"
	"strings"
	"testing"
)

// TestLayersThatShareAFault wants one line of a run of layers of which the same is said, each
// other fault on a line of its own, and a count of all that is not shown.
func TestLayersThatShareAFault(t *testing.T) {
	var fs Faults
	fs.Add("plan", "is old")
	for block := 5; block <= 92; block++ {
		fs.Add(fmt.Sprintf("layer %d", block), "in the plan")
	}
	fs.Add("layer 93", "has another fault")
	fs.Add("layer 7", "again, out of order")
	fs.Add("layer 3", "again, out of order")
	want := "plan: is old\nlayers 5-92: in the plan\nlayer 93: has another fault\nlayer 7: again, out of order\nlayer 3: again, out of order"
	if got := fs.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i := range maxFaults {
		fs.Add("expert", "number %d", i)
	}
	lines := strings.Split(fs.Error(), "\n")
	shown := 88 + 4 + errorLines - 5 // all in the five lines above, and the rest a line each
	if got, want := lines[len(lines)-1], fmt.Sprintf("and %d more", 92+maxFaults-shown); len(lines) != errorLines+1 || got != want {
		t.Errorf("%d lines, the last is %q, want %d and %q", len(lines), got, errorLines+1, want)
	}
}
