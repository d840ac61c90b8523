package stage

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
)

// A cluster is many machines on one disk, in simulated time: the machine whose clock is behind
// all others is the next one to do something, and what it does takes it longer the slower it is.
type cluster struct {
	disk *memDisk

	mu    sync.Mutex
	turn  sync.Cond
	tasks map[*task]bool // that have not ended
}

// A task is a process on a machine. It dies at some operation, or at none.
type task struct {
	cluster *cluster
	clock   time.Duration
	slow    time.Duration // what an operation costs
	left    int           // operations until it dies; below 0 for ever
	waits   int           // operations that wait for their turn
}

func newCluster(d *memDisk) *cluster {
	c := &cluster{disk: d, tasks: map[*task]bool{}}
	c.turn.L = &c.mu
	return c
}

// start adds a task. All that are to run at once are added before the first one runs.
func (c *cluster) start(slow time.Duration, diesAfter int, begins time.Duration) *task {
	t := &task{cluster: c, slow: slow, left: diesAfter, clock: begins}
	c.mu.Lock()
	c.tasks[t] = true
	c.mu.Unlock()
	return t
}

// end takes out a task. Its clock tells when it ended.
func (t *task) end() {
	t.cluster.mu.Lock()
	delete(t.cluster.tasks, t)
	t.cluster.turn.Broadcast()
	t.cluster.mu.Unlock()
}

// step waits until it is the task's turn, and fails once it is dead.
func (t *task) step() error {
	c := t.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.left == 0 {
		return errDead
	}
	t.waits++
	c.turn.Broadcast()
	for !c.isNext(t) {
		c.turn.Wait()
	}
	t.waits--
	t.left--
	t.clock += t.slow
	c.turn.Broadcast()
	if t.left == 0 {
		return errDead
	}
	return nil
}

// isNext reports whether all tasks wait for their turns, and this one is behind them.
func (c *cluster) isNext(t *task) bool {
	for other := range c.tasks {
		if other.waits == 0 || other.clock < t.clock {
			return false
		}
	}
	return true
}

// The task's view of the disk.
func (t *task) Open(path string) (disk.Folder, error) {
	f, err := t.cluster.disk.Open(path)
	return taskFolder{f, t}, err
}

func (t *task) Make(path string) (disk.Folder, error) {
	if err := t.step(); err != nil {
		return nil, err
	}
	f, err := t.cluster.disk.Make(path)
	return taskFolder{f, t}, err
}

func (t *task) Remove(path string) error {
	return errors.Join(t.step(), errors.New("a task removes no folder"))
}

type taskFolder struct {
	disk.Folder
	task *task
}

func (f taskFolder) Create(name string) (disk.OutputFile, error) {
	if err := f.task.step(); err != nil {
		return nil, err
	}
	file, err := f.Folder.Create(name)
	return taskFile{file, f.task}, err
}

func (f taskFolder) Rename(from, to string) error {
	if err := f.task.step(); err != nil {
		return err
	}
	return f.Folder.Rename(from, to)
}

func (f taskFolder) Remove(name string) error {
	if err := f.task.step(); err != nil {
		return err
	}
	return f.Folder.Remove(name)
}

func (f taskFolder) List() ([]fs.DirEntry, error) {
	if err := f.task.step(); err != nil {
		return nil, err
	}
	return f.Folder.List()
}

func (f taskFolder) Sync() error {
	if err := f.task.step(); err != nil {
		return err
	}
	return f.Folder.Sync()
}

type taskFile struct {
	disk.OutputFile
	task *task
}

func (f taskFile) Write(p []byte) (int, error) {
	if err := f.task.step(); err != nil {
		return 0, err
	}
	return f.OutputFile.Write(p)
}

func (f taskFile) Sync() error {
	if err := f.task.step(); err != nil {
		return err
	}
	return f.OutputFile.Sync()
}

// manyShards is a release of as many shards as the model of 1,148 has.
func manyShards(t testing.TB, shards int) Release {
	return Release{
		Stem: "out", Layout: testLayout(t, gguftest.K3(gguftest.K3Options{Layers: shards/12 + 4, Experts: 8, Used: 2}), shards, nil),
		Documents: []string{"plan.json", manifest.PinName},
		Known:     map[string]manifest.Sum{"plan.json": sha256.Sum256([]byte(planText))},
		Origin:    []Fact{{Name: "plan", Digest: manifest.DigestBytes([]byte(planText))}},
	}
}

// TestManyTasksOnOneDisk has tasks of all parts of a release at work at once, some on slow
// machines, some twice. A third of them dies somewhere, and the parts that are missing are
// submitted again, until all are there. The join gives the release of one run.
func TestManyTasksOnOneDisk(t *testing.T) {
	shards, n := 72, 16
	if *chaos > 1 {
		shards, n = 1148, 256
	}
	r := manyShards(t, shards)
	want := wholeRelease(t, r)
	rng := rand.New(rand.NewPCG(newSeed(t), 20))
	tally := newTally(t, fmt.Sprintf("%d shards by %d tasks at once", shards, n))
	d := &memDisk{lies: true}
	missing := make([]int, n)
	for i := range missing {
		missing[i] = i + 1
	}
	var now time.Duration
	rounds, doubles := 0, 0
	for ; len(missing) > 0; rounds++ {
		if rounds > 40 {
			t.Fatalf("parts %v are never done", missing)
		}
		c := newCluster(d)
		var group sync.WaitGroup
		var tasks []*task
		var parts []int
		for _, i := range missing {
			for range 1 + rng.IntN(5)/4 {
				slow := time.Millisecond
				if rng.IntN(8) == 0 {
					slow *= time.Duration(10 + rng.IntN(90))
				}
				dies := -1
				if rng.IntN(3) == 0 {
					dies = 1 + rng.IntN(60)
				}
				tasks, parts = append(tasks, c.start(slow, dies, now)), append(parts, i)
			}
		}
		doubles += len(tasks) - len(missing)
		for k, task := range tasks {
			group.Go(func() {
				defer task.end()
				err := runPart(task, r, parts[k], n)
				if err != nil && task.left != 0 {
					t.Errorf("part %d: %v", parts[k], err)
				}
			})
		}
		group.Wait()
		for _, task := range tasks {
			now = max(now, task.clock)
			if task.left == 0 {
				tally.kills++
			}
		}
		checkSound(t, d, nil, fmt.Sprintf("round %d", rounds+1))
		faults, err := joinAll(d)
		if err != nil {
			t.Fatal(err)
		}
		missing = nil
		for _, f := range faults {
			missing = append(missing, f.Part)
		}
	}
	tally.compare(t, d, want, "in the end")
	fmt.Printf("chaos: simulated disk, %d shards by %d tasks at once: submitted in %d rounds, %d doubles, %.0f simulated seconds\n", shards, n, rounds, doubles, now.Seconds())
}
