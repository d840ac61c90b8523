package calibration

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestCalibrateInParts measures a text in parts, and wants the scores and the plan of one run.
func TestCalibrateInParts(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	prose, code := head(t, "prose.calib.txt", 3000), head(t, "code.calib.txt", 2000)
	withEngine(t)
	t.Chdir(t.TempDir())
	line := func(out string, more ...string) []string {
		return append([]string{"calibrate", "--threads", "1", "--ctx", "128", "--text", "prose=" + prose, "--text", "code=" + code + ":0.5", "-o", out}, append(more, model)...)
	}
	programtest.Succeed(t, line("s.npz")...)
	programtest.Succeed(t, "plan", "--keep", "16", "--from", "s.json", "-o", "one.plan", model)
	for _, parts := range []int{1, 3} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			var from []string
			for i := parts; i >= 1; i-- {
				name := fmt.Sprintf("s.part-%d-of-%d.sums", i, parts)
				from = append(from, "--from", name)
				said := programtest.Succeed(t, line("s.npz", "--only", fmt.Sprintf("%d/%d", i, parts))...)
				if !strings.Contains(said, name) || programtest.Exists(strings.TrimSuffix(name, "sums")+"checkpoint") {
					t.Errorf("part %d says\n%s", i, said)
				}
				if i > 1 {
					continue
				}
				before := programtest.ReadFile(t, name)
				if said := programtest.Succeed(t, line("s.npz", "--only", fmt.Sprintf("%d/%d", i, parts))...); !strings.Contains(said, "by an earlier run") || !bytes.Equal(programtest.ReadFile(t, name), before) {
					t.Errorf("part %d again says\n%s", i, said)
				}
			}
			plan := fmt.Sprintf("%d.plan", parts)
			programtest.Succeed(t, append(append([]string{"plan", "--keep", "16", "-o", plan}, from...), model)...)
			if !bytes.Equal(programtest.ReadFile(t, plan), programtest.ReadFile(t, "one.plan")) {
				t.Errorf("%d parts give another plan", parts)
			}
			if err := os.Mkdir("joined", 0o777); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll("joined")
			for i := 1; i <= parts; i++ {
				programtest.WriteText(t, fmt.Sprintf("joined/s.part-%d-of-%d.sums", i, parts), string(programtest.ReadFile(t, fmt.Sprintf("s.part-%d-of-%d.sums", i, parts))))
			}
			said := programtest.Succeed(t, "assemble", fmt.Sprintf("joined/s.part-%d-of-%d.sums", parts, parts))
			for _, name := range []string{"s.npz", "s.json"} {
				if !strings.Contains(said, name) || !bytes.Equal(programtest.ReadFile(t, "joined/"+name), programtest.ReadFile(t, name)) {
					t.Errorf("%d parts give another %s: %s", parts, name, said)
				}
			}
		})
	}
	plan := func(from ...string) []string {
		words := []string{"plan", "--keep", "16"}
		for _, name := range from {
			words = append(words, "--from", name)
		}
		return append(words, model)
	}
	fails(t, "part 2 comes twice", plan("s.part-2-of-3.sums", "s.part-2-of-3.sums")...)
	fails(t, "part 3 of 3 is missing", plan("s.part-2-of-3.sums", "s.part-1-of-3.sums")...)
	fails(t, "--array=3", plan("s.part-2-of-3.sums", "s.part-1-of-3.sums")...)
	fails(t, "parts 1, 3 of 3 are missing", plan("s.part-2-of-3.sums")...)
	fails(t, "the number of parts: 3, and 1", plan("s.part-2-of-3.sums", "s.part-1-of-1.sums")...)
	fails(t, "is no part of scores", plan("s.part-2-of-3.sums", "s.json")...)
	fails(t, "is no part of scores", plan("s.npz", "s.npz")...)
	fails(t, "no such file", plan("s.part-2-of-3.sums", "none")...)
	fails(t, "a part of scores, want a plan or scores", "plan", "--keep", "16", "--compare", "s.part-2-of-3.sums", model)

	if err := os.Rename("s.part-1-of-3.sums", "away"); err != nil {
		t.Fatal(err)
	}
	if r := programtest.Run(t, "assemble", "--wait", "0s", "s.part-2-of-3.sums"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "--array=1\n") {
		t.Errorf("a missing part: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := programtest.Run(t, "assemble", "--json", "--wait", "0s", "s.part-2-of-3.sums"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, `"array": "1"`) {
		t.Errorf("a missing part: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if err := os.Rename("away", "s.part-1-of-3.sums"); err != nil {
		t.Fatal(err)
	}

	fails(t, "is of another calibration: the texts", "calibrate", "--threads", "1", "--ctx", "128", "--text", "prose="+prose, "-o", "s.npz", "--only", "2/3", model)
	fails(t, "is of another calibration", "calibrate", "--threads", "1", "--ctx", "256", "--text", "prose="+prose, "--text", "code="+code+":0.5", "-o", "s.npz", "--only", "2/3", model)
	fails(t, "--self-text is not divided", "calibrate", "--self-text", "100", "--only", "1/2", "-o", "t.npz", model)
	fails(t, "--until-stable and --only exclude each other", line("s.npz", "--only", "2/3", "--until-stable", "0.9")...)
	fails(t, "there are 3 parts", line("s.npz", "--only", "4/3")...)
	t.Setenv("JOB_COMPLETION_INDEX", "1")
	if said := programtest.Succeed(t, line("s.npz", "--only", "auto/3")...); !strings.Contains(said, "2 of 3") {
		t.Errorf("with an index of the scheduler: %s", said)
	}
	data := programtest.ReadFile(t, "s.part-2-of-3.sums")
	data[len(data)/2] ^= 1
	if err := os.WriteFile("s.part-2-of-3.sums", data, 0o666); err != nil {
		t.Fatal(err)
	}
	fails(t, "a damaged part of a calibration", line("s.npz", "--only", "2/3")...)
	programtest.Succeed(t, line("s.npz", "--only", "2/3", "--force")...)
}
