package stage

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestLocksThatDoNotLock lets a second run into the folder of a first one before each of its
// operations: as file systems do that grant every lock. The second runs to its end, or is
// killed, or is interrupted, while the first stands still. Then the folder is one of the two
// releases, or unfinished, and can be gone on with.
func TestLocksThatDoNotLock(t *testing.T) {
	r, another := testRelease(t, 3), testRelease(t, 3)
	another.Layout = testLayout(t, gguftest.Mixed(2), 3, nil)
	another.Origin = []Fact{{Name: "plan", Digest: manifest.DigestBytes(nil)}}
	want, operations := reference(t, r)
	wantAnother, _ := reference(t, another)
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	stride := max(8 / *chaos, 1)
	ended := map[string]int{}
	for name, second := range map[string]Release{"the same": r, "another": another} {
		for _, o := range []Options{{Resume: true}, {Force: true}, {Force: true, Resume: true}} {
			for _, end := range []string{"finishes", "is killed", "is interrupted"} {
				for at := 1 + rng.IntN(stride); at <= operations; at += stride {
					what := fmt.Sprintf("seed %d, %s release, resume %t, force %t, which %s at operation %d", seed, name, o.Resume, o.Force, end, at)
					d := &memDisk{lies: true, otherAt: at}
					d.other = func() {
						ended[runSecond(d, second, o, end)]++
						checkEither(t, d, what+", meanwhile", want, wantAnother)
					}
					err := runOn(d, r, Options{Workers: 1})
					if err == nil {
						ended["first finished"]++
					}
					checkEither(t, d, what, want, wantAnother)
					d.restart()
					if !isFinished(d.files()) {
						errFirst, errSecond := runOn(d, r, Options{Resume: true}), error(nil)
						if errFirst != nil {
							errSecond = runOn(d, second, Options{Resume: true})
						}
						if errFirst != nil && errSecond != nil {
							t.Errorf("%s: the folder cannot be gone on with: %v; %v (the first ended with %v)", what, errFirst, errSecond, err)
						}
						checkEither(t, d, what+", going on", want, wantAnother)
					}
				}
			}
		}
	}
	fmt.Printf("chaos: simulated disk, locks that do not lock: of second runs %d were refused, %d stopped and %d finished; %d first runs finished\n",
		ended["refused"], ended["stopped"], ended["finished"], ended["first finished"])
	for _, how := range []string{"first finished", "refused", "finished", "stopped"} {
		if ended[how] == 0 {
			t.Errorf("no run %s", how)
		}
	}
}

// runSecond runs a release on a disk that another run is using, and says how it ended.
func runSecond(d *memDisk, r Release, o Options, end string) string {
	var f *Folder
	keeps := 0
	o.Workers = 1
	o.Unchanged = func() error {
		if keeps++; end != "finishes" && keeps == 3 {
			return errInjected
		}
		return nil
	}
	f, err := openFine(d, r, o)
	if err != nil {
		return "refused"
	}
	_, err = writeAll(f)
	if end == "is killed" && errors.Is(err, errInjected) {
		return "stopped"
	}
	f.Close()
	if err != nil {
		return "stopped"
	}
	return "finished"
}

// checkEither wants a folder that says it is finished to be one of several releases.
func checkEither(t *testing.T, d *memDisk, what string, wants ...map[string]string) {
	t.Helper()
	files := d.files()
	checkSound(t, d, nil, what)
	if !isFinished(files) {
		return
	}
	for _, want := range wants {
		if maps.Equal(files, want) {
			return
		}
	}
	t.Errorf("%s: the folder says that it is finished and is none of the releases", what)
}
