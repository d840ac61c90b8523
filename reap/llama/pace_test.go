package llama

import (
	"math/rand/v2"
	"testing"
	"time"
)

// run computes for a while on a simulated machine and returns the threads used at the end, and
// the share of the time that the best number would have taken.
func run(p *pace, calls int, cost func(threads int) float64) (threads int, share float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	var took, least float64
	for range calls {
		seconds := 64 * cost(p.threads) * (0.9 + 0.2*rng.Float64())
		took += seconds
		best := cost(1)
		for n := 2; n <= p.most; n *= 2 {
			best = min(best, cost(n))
		}
		least += 64 * best
		p.computed(64, time.Duration(seconds*float64(time.Second)))
	}
	return p.usual, least / took
}

// Whatever the machine is like, nearly as much is computed as with the best number of threads,
// also when the machine becomes busy or idle in the middle.
func TestPaceFindsTheBestNumber(t *testing.T) {
	idle := func(n int) float64 { return 0.001 / float64(n) }
	busy := func(n int) float64 { // each thread that waits for a processor holds up all others
		if n > 1 {
			return 0.003 * float64(n)
		}
		return 0.002
	}
	half := func(n int) float64 { return 0.001/float64(n) + 0.00002*float64(n*n) }
	tiny := func(n int) float64 { return 0.0001 * float64(n) }
	for name, c := range map[string]struct {
		cost func(int) float64
		want int
	}{"idle": {idle, 16}, "busy": {busy, 1}, "half": {half, 4}, "tiny": {tiny, 1}} {
		p := newPace(16)
		run(p, 400, c.cost)
		if threads, share := run(p, 2000, c.cost); threads != c.want || share < 0.85 {
			t.Errorf("%s: %d threads, want %d; %.2f of what is possible", name, threads, c.want, share)
		}
	}
	p := newPace(2)
	run(p, 500, idle)
	if threads, _ := run(p, 3000, busy); threads != 1 {
		t.Errorf("the machine became busy: %d threads", threads)
	}
	if threads, _ := run(p, 3000, idle); threads != 2 {
		t.Errorf("the machine became idle: %d threads", threads)
	}
}

// Where the number is fixed it stays.
func TestFixedThreads(t *testing.T) {
	var p *pace
	if p.computed(1, time.Second) || (&Model{threads: 4}).newPace() != nil || (&Model{threads: 1, tune: true}).newPace() != nil {
		t.Error("a fixed number of threads is changed")
	}
}
