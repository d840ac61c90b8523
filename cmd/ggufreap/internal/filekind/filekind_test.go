package filekind

import (
	"strings"
	"testing"

	"ggufreap/reap/planfile"
	"ggufreap/reap/scorefile"
)

func TestOf(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	for text, want := range map[string]Kind{
		"":           0,
		"Entry":      0,
		"{":          0,
		"[]":         0,
		"[1,2]":      0,
		`{"a":1}`:    0,
		"PK\x03\x04": 0,
		"PK\x03\x04" + strings.Repeat("\x00", 22) + "\x05\x00\x00\x00a.txt":             0,
		"PK\x03\x04" + strings.Repeat("\x00", 22) + "\x0c\x00\x00\x00saliency.npyxxxxx": Scores,
		"PK\x03\x04" + strings.Repeat("\x00", 22) + "\xff\xff\x00\x00saliency":          0,
		"\x28\xb5\x2f\xfdxxxx":         0,
		"GGUF":                         0,
		"GGUF....general.architecture": Model,
		"GGUF.general.architecture.quantize.imatrix.file": Model,
		"GGUF....general.type imatrix":                    Scores,
		"GGUF.general.architecture reap.s_sum.blk.1":      Scores,
		`{"schema":"ggufreap/pin/v1","files":[`:           Pin,
		`{"schema":"` + planfile.Schema + `"}`:            Plan,
		` {"model":{"x":[1]},"keep":[[],[1]]}`:            Plan,
		`{"format":"aikar-moe-prune"}`:                    Plan,
		`{"schema":"` + scorefile.SaliencySchema + `"}`:   Scores,
		`{"schema":"ggufreap/check/v1"}`:                  0,
		`{"1":{"activation_counts":[1]}}`:                 Scores,
		"\ufefflayer,expert,count\r\n1,2,3\n":             Scores,
		`[{"type":"file","oid":"x","path":"a"}]`:          Listing,
		`[ {"path":"a"}]`:                                 Listing,
		"ggufreap calibration part 1\n\x10\x00":           ScorePart,
		sum + "  a.gguf\n":                                Sums,
		sum + " *a.gguf\n":                                Sums,
		"SHA256 (a.gguf) = " + sum:                        Sums,
		"sha256    " + sum + "  a.gguf\n":                 Hashes,
	} {
		if got := Of(strings.NewReader(text)); got != want {
			t.Errorf("%q is of kind %d, want %d", text, got, want)
		}
	}
}
