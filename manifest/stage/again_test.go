package stage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ggufreap/gguf/gguftest"
)

// TestLittleIsWrittenAgain ends runs at random operations, by a kill and by the loss of
// power, and counts what the next run writes again. It prints the greatest share of all
// bytes by how far the run had come.
func TestLittleIsWrittenAgain(t *testing.T) {
	r := testRelease(t, 8)
	r.Layout = testLayout(t, gguftest.Mixed(1), 8, nil)
	all := r.Layout.Bytes()
	want, _ := reference(t, r)
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	for _, end := range []string{"kill", "power cut"} {
		count := newTally(t, end+"s, written again")
		for _, workers := range []int{2, 8, 16} {
			o := Options{Resume: true, Workers: workers}
			undisturbed := &memDisk{}
			if err := runOn(undisturbed, r, o); err != nil {
				t.Fatal(err)
			}
			var worst [11]int64
			for range 12 * *chaos {
				d := &memDisk{dieAt: 1 + rng.IntN(undisturbed.count)}
				if runOn(d, r, o) == nil {
					continue
				}
				what := fmt.Sprintf("seed %d, %d workers, %s at operation %d, %s", seed, workers, end, d.dieAt, d.failed)
				count.kills++
				before := d.wrote
				if end == "power cut" {
					d.cutPower(rng)
				}
				d.restart()
				if !isFinished(d.files()) {
					checkNothingRedone(t, d, r, o, what)
				}
				count.compare(t, d, want, what)
				again := d.wrote - all
				tenth := 10 * before / all
				if worst[tenth] = max(worst[tenth], again); again > all/20 {
					t.Errorf("%s, with %d of %d bytes written: %d were written again", what, before, all, again)
				}
			}
			fmt.Printf("chaos: simulated disk, %s at 0, 10, ... 100 %%, %d workers: written again at most", end, workers)
			for _, n := range worst {
				fmt.Printf(" %.1f", 100*float64(n)/float64(all))
			}
			fmt.Println(" %")
		}
	}
}

// checkNothingRedone goes on with a release, of which nothing that was kept may be lost.
func checkNothingRedone(t *testing.T, d *memDisk, r Release, o Options, what string) {
	t.Helper()
	f, err := openFine(d, r, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer f.Close()
	if _, err := writeAll(f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if _, redone := f.Resumed(); len(redone) > 0 {
		t.Errorf("%s: %q were written again", what, redone)
	}
}
