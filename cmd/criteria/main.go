// Command criteria shows what criteria are worth on the trained model of the project. It
// calibrates, plans and prunes that model with ggufreap, runs each result in llama.cpp over
// held-out text of four domains, and prints how far its predictions are from the full model's:
// the mean KL divergence in nats a token, and the perplexity.
//
//	go run ./cmd/criteria [-windows 32] [-threads 1]
//
// It takes some ten minutes and 20 MB of temporary files.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/reap"
	"ggufreap/reap/engine/enginetest"
	"ggufreap/reap/llama"
)

// domains are the kinds of text of the trained model.
var domains = []string{"prose", "code", "table", "german"}

// keeps are 75, 62.5 and 50 % of 32 experts.
var keeps = []int{24, 20, 16}

const (
	folder = "testdata/trained"
	model  = folder + "/dots1-trained-Q8_0.gguf"
	seeds  = 5
)

func main() {
	log.SetFlags(0)
	windows := flag.Int("windows", 32, "windows of 256 tokens of each held-out text")
	threads := flag.Int("threads", 1, "threads of llama.cpp")
	flag.Parse()
	if err := run(*windows, *threads); err != nil {
		log.Fatal("criteria: ", err)
	}
}

func run(windows, threads int) error {
	dir, err := os.MkdirTemp("", "criteria")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tool, err := newTool(dir, threads)
	if err != nil {
		return err
	}
	library, err := enginetest.FindFolder()
	if err != nil {
		return err
	}
	engine, err := llama.Load(library)
	if err != nil {
		return err
	}
	j := &judge{tool: tool, engine: engine, threads: threads}
	if err := j.readTexts(windows); err != nil {
		return err
	}
	fmt.Printf("%s, %s\n\n", model, engine.Build())
	if err := j.calibrate(); err != nil {
		return err
	}
	if err := j.mixed(); err != nil {
		return err
	}
	if err := j.alone(); err != nil {
		return err
	}
	return j.selfWritten()
}

// A tool is the program ggufreap with its engine.
type tool struct {
	dir     string
	threads int
}

// newTool builds both programs.
func newTool(dir string, threads int) (*tool, error) {
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/ggufreap", "./cmd/ggufreap-engine")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	library, err := enginetest.FindFolder()
	if err != nil {
		return nil, err
	}
	if library, err = filepath.Abs(library); err != nil {
		return nil, err
	}
	os.Setenv("GGUFREAP_LLAMA_LIB", library)
	os.Unsetenv("GGUFREAP_ENGINE")
	return &tool{dir, threads}, nil
}

func (t *tool) path(name string) string { return filepath.Join(t.dir, name) }

// run runs ggufreap.
func (t *tool) run(args ...string) error {
	out, err := exec.Command(t.path("ggufreap"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ggufreap %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// scores measures the model over texts and returns the score file.
func (t *tool) scores(name string, texts ...string) (string, error) {
	path := t.path(name + ".json")
	args := []string{"calibrate", "--quiet", "--threads", fmt.Sprint(t.threads), "-o", path}
	for _, text := range texts {
		args = append(args, "--text", text)
	}
	return path, t.run(append(args, model)...)
}

// prune makes the model that a choice keeps, and returns its path.
func (t *tool) prune(keep int, choice ...string) (string, error) {
	out := t.path("pruned")
	if err := os.RemoveAll(out); err != nil {
		return "", err
	}
	args := append([]string{"prune", "--quiet", "--keep", fmt.Sprint(keep), "--name", "m", "-o", out}, choice...)
	return filepath.Join(out, "m.gguf"), t.run(append(args, model)...)
}

// measuredCriteria are those that a score file can be ranked by.
func measuredCriteria() []string {
	var names []string
	for _, c := range reap.Criteria {
		if c.Evidence == reap.Measured {
			names = append(names, c.Name)
		}
	}
	return names
}

// proxies are those from the weights alone.
func proxies() []string {
	names := []string{}
	for _, c := range reap.Criteria {
		if c.Evidence == reap.Proxy {
			names = append(names, c.Name)
		}
	}
	slices.Reverse(names)
	return names
}
