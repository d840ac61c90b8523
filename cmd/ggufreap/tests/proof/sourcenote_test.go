package proof

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestPinOfTheSourceGoesOn ends a run that has read the whole source, and goes on with it. The
// pin is the same, whether the note of what had passed counts or, being damaged, does not.
func TestPinOfTheSourceGoesOn(t *testing.T) {
	proofFolder(t)
	want, err := os.ReadFile("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	const taken, note = "taken.pin.json.zst", "taken.pin.json.zst.part"
	args := []string{"prune", "--keep", "16", "--pin-source", taken, "--no-source-pin", "-o", "out"}
	interrupt := func() {
		t.Helper()
		other := "blake3:" + strings.Repeat("0", 64)
		if r := programtest.Run(t, append(args, "--resume", "--source-digest", other, "source")...); r.Code == programtest.OK || !programtest.Exists(note) || programtest.Exists(taken) {
			t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
		}
	}
	goOn := func(adopts bool) {
		t.Helper()
		r := programtest.Run(t, append(args, "--resume", "source")...)
		if got := strings.Contains(r.Stderr, "the run before has pinned"); r.Code != programtest.OK || got != adopts {
			t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
		}
		if programtest.Exists(note) {
			t.Error("the note is left")
		}
		if got, err := os.ReadFile(taken); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of another pin, %v", len(got), err)
		}
		programtest.Succeed(t, "verify", "--source-pin", taken, "out")
		for _, path := range []string{taken, "out"} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	interrupt()
	goOn(true)

	interrupt()
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(note, text, 0o666); err != nil {
		t.Fatal(err)
	}
	goOn(false)
}
