package calibration

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

// Programs are told with lines of JSON alone, people with words, and others nothing.
func TestPaceIsTold(t *testing.T) {
	for mode, want := range map[string]int{progress.JSON: 2, progress.Plain: 1, progress.None: 0} {
		var stderr bytes.Buffer
		con := ui.New(nil, io.Discard, &stderr)
		con.Progress = mode
		p := &pace{con: con, what: "writing", all: 400, before: 100, begun: time.Now().Add(-100 * time.Second)}
		p.tell(200, func() string { return "more" })
		p.end(400)
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		if stderr.Len() == 0 {
			lines = nil
		}
		if len(lines) != want {
			t.Fatalf("%s: %q, want %d lines", mode, lines, want)
		}
		if mode == progress.Plain && (!strings.Contains(lines[0], "writing: 200 of 400 tokens, 1 a second, 3m2")) {
			t.Errorf("people are told %q", lines)
		}
		if mode != progress.JSON {
			continue
		}
		var s state
		if err := json.Unmarshal([]byte(lines[0]), &s); err != nil || s.Done != 200 || s.Total != 400 || s.Speed < 0.5 || s.Speed > 1 || s.Left == nil || s.Finished {
			t.Errorf("programs are told %s (%v)", lines[0], err)
		}
		if err := json.Unmarshal([]byte(lines[1]), &s); err != nil || !s.Finished || *s.Left != 0 {
			t.Errorf("programs are told %s (%v)", lines[1], err)
		}
	}
}
