// Command mutate changes one operator at a time in the files that decide, and counts how many
// changes the tests of the package notice. It draws the changes by a seed, so a number that
// it prints can be had again. The tree stays as it is: the go command is shown each changed
// file by an overlay. Run it in the module's folder:
//
//	go run ./testdata/mutate -n 60 -seed 1
//	go run ./testdata/mutate -n 0 manifest/pincheck.go
//
// go-gremlins changes more kinds of code, and all of it: hours, since it draws nothing.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// deciding are the folders whose files decide what a model is, what is pruned, and what
// passes.
var deciding = []string{"gguf", "reap", "manifest", "manifest/lists", "manifest/verify"}

// slow names tests of a package that run only on changes that the others did not notice.
var slow = map[string]string{"reap": "^TestArchitectures$|^TestEngine"}

// perTest bounds the tests of one change, which may make them run for ever.
const perTest = 3 * time.Minute

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutate: ")
	n := flag.Int("n", 60, "how many changes to try, 0 for all")
	seed := flag.Uint64("seed", 1, "which of them")
	flag.Parse()
	all, err := changesOf(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(*seed, 0))
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	if err := try(all, cmp.Or(*n, len(all))); err != nil {
		log.Fatal(err)
	}
}

// changesOf lists the changes of the files, or of all that decide.
func changesOf(files []string) ([]change, error) {
	if len(files) == 0 {
		for _, dir := range deciding {
			found, err := filepath.Glob(dir + "/*.go")
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		}
	}
	var all []change
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		list, err := fileChanges(file)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// try tests changes until n of them have compiled, and prints those that no test noticed.
func try(list []change, n int) error {
	folder, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	counts := counts{}
	tried := 0
	for _, c := range list {
		if tried == n {
			break
		}
		dir := path.Dir(c.file)
		if err := counts.begin(dir); err != nil {
			return err
		}
		overlay, err := c.overlay(folder)
		if err != nil {
			return err
		}
		verdict := noticing(dir, overlay)
		if verdict == notBuilt {
			continue
		}
		tried++
		counts[dir].tried++
		if verdict == noticed {
			counts[dir].noticed++
		} else {
			fmt.Printf("not noticed: %s\n", c)
		}
	}
	counts.print()
	return nil
}

// counts are how many changes were tried by folder, and how many of them a test noticed.
type counts map[string]*struct{ noticed, tried int }

// begin sees to it that the tests of a folder pass as they are.
func (c counts) begin(dir string) error {
	if c[dir] != nil {
		return nil
	}
	if out, verdict := test(dir, "", ""); verdict != survived {
		return fmt.Errorf("the tests of %s do not pass as they are:\n%s", dir, out)
	}
	c[dir] = &struct{ noticed, tried int }{}
	return nil
}

func (c counts) print() {
	noticed, tried := 0, 0
	for _, dir := range slices.Sorted(maps.Keys(c)) {
		fmt.Printf("%-16s noticed %d of %d\n", dir, c[dir].noticed, c[dir].tried)
		noticed += c[dir].noticed
		tried += c[dir].tried
	}
	fmt.Printf("noticed %d of %d changes, %.0f %%\n", noticed, tried, 100*float64(noticed)/float64(max(tried, 1)))
}

type verdict int

const (
	survived verdict = iota
	noticed
	notBuilt
)

// noticing runs the tests of a package on a change, the slow ones last.
func noticing(dir, overlay string) verdict {
	if slow[dir] != "" {
		if _, v := test(dir, overlay, slow[dir]); v != survived {
			return v
		}
	}
	_, v := test(dir, overlay, "")
	return v
}

// test runs the tests of a package without those that match skip. Memory is bounded too,
// since a changed loop may fill it.
func test(dir, overlay, skip string) (string, verdict) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*perTest)
	defer cancel()
	args := []string{"-c", `ulimit -v 16000000; exec "$@"`, "sh", "go", "test", "-vet=off", "-failfast", "-timeout", perTest.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if skip != "" {
		args = append(args, "-skip", skip)
	}
	out, err := exec.CommandContext(ctx, "sh", append(args, "./"+dir)...).CombinedOutput()
	switch text := string(out); {
	case err == nil:
		return text, survived
	case strings.Contains(text, "[build failed]"):
		return text, notBuilt
	default:
		return text, noticed
	}
}

// overlay writes the changed file and a description by which the go command takes it in
// place of the true one, and returns the description's path.
func (c change) overlay(folder string) (string, error) {
	changed, err := c.apply()
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "changed.go")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{c.file: file}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, description, 0o600)
}
