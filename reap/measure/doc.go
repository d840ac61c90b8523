// Package measure runs a calibration: it cuts texts into chunks, has each chunk measured, adds
// the sums up by kind of text, keeps what was done so that a run can go on after it was
// interrupted, and makes the score document of it.
//
// It does not compute: a [Meter] does, which is the engine.
package measure

import (
	"context"

	"ggufreap/reap/tally"
)

// A Meter measures sequences of tokens of one length, each from its beginning.
type Meter interface {
	Measure(ctx context.Context, sequences [][]int) (*tally.Tally, error)
}
