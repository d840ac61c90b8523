package args

import (
	"fmt"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/hint"
)

// environment makes one of "NAME=value" words.
func environment(words string) func(string) string {
	return func(name string) string {
		for _, word := range strings.Fields(words) {
			if value, ok := strings.CutPrefix(word, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestPart(t *testing.T) {
	for _, tc := range []struct {
		text, environment string
		i, n              int
	}{
		{"1/1", "", 1, 1},
		{"3/14", "SLURM_ARRAY_TASK_ID=9", 3, 14}, // what is written counts
		{"14/14", "", 14, 14},
		{"100000/100000", "", 100000, 100000},
		{"auto/14", "SLURM_ARRAY_TASK_ID=14 SLURM_ARRAY_TASK_COUNT=1", 14, 14},
		{"auto/14", "JOB_COMPLETION_INDEX=0", 1, 14},
		{"auto/14", "JOB_COMPLETION_INDEX=13", 14, 14},
		{"auto/4", "AWS_BATCH_JOB_ARRAY_INDEX=3", 4, 4},
		{"auto/4", "BATCH_TASK_INDEX=2", 3, 4},
		{"auto/4", "CLOUD_RUN_TASK_INDEX=1", 2, 4},
		{"auto/4", "NOMAD_ALLOC_INDEX=0", 1, 4},
		{"auto/4", "LSB_JOBINDEX=4", 4, 4},
		{"auto/4", "PBS_ARRAY_INDEX=1", 1, 4},
		{"auto/4", "PBS_ARRAYID=2", 2, 4},
		{"auto/4", "SGE_TASK_ID=3", 3, 4},
		{"auto/4", "PARALLEL_SEQ=4", 4, 4},
		{"auto/4", "SGE_TASK_ID=undefined LSB_JOBINDEX=0 PARALLEL_SEQ=2", 2, 4},
		{"auto/4", "SLURM_ARRAY_TASK_ID=3 JOB_COMPLETION_INDEX=2", 3, 4}, // they agree
	} {
		i, n, err := Part(tc.text, environment(tc.environment))
		if err != nil || i != tc.i || n != tc.n {
			t.Errorf("%s with %q: got %d/%d, %v, want %d/%d", tc.text, tc.environment, i, n, err, tc.i, tc.n)
		}
	}
}

func TestPartIsRefused(t *testing.T) {
	for _, tc := range []struct{ text, environment, want, hint string }{
		{"3", "", `"3", want I/N`, "always written"},
		{"3/", "SLURM_ARRAY_TASK_COUNT=14", `want I/N`, ""},
		{"3/0", "", `want I/N`, ""},
		{"3/-1", "", `want I/N`, ""},
		{"1/100001", "", `N from 1 to 100000`, ""},
		{"1/2/3", "", `want I/N`, ""},
		{"1/ 2", "", `want I/N`, ""},
		{"/14", "", `want a number or "auto"`, "variable"},
		{"03/14", "", `want a number or "auto"`, ""},
		{"+3/14", "", `want a number or "auto"`, ""},
		{"0/14", "", "numbered from 1", "--array=1-14"},
		{"15/14", "", "there are 14 parts", ""},
		{"auto", "SLURM_ARRAY_TASK_ID=1", "want I/N", "always written"},
		{"auto/14", "", "no scheduler gives an index", "--only 1/14"},
		{"auto/14", "SGE_TASK_ID=undefined", "no scheduler gives an index", ""},
		{"auto/14", "SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_TASK_ID is 0, want 1 to 14", "sbatch --array=1-14"},
		{"auto/14", "PBS_ARRAY_INDEX=0", "PBS_ARRAY_INDEX is 0, want 1 to 14", "qsub -J 1-14"},
		{"auto/14", "SLURM_ARRAY_TASK_ID=15", "want 1 to 14", ""},
		{"auto/14", "JOB_COMPLETION_INDEX=14", "want 0 to 13", "all parts"},
		{"auto/14", "JOB_COMPLETION_INDEX=two", `"two", want a number from 0 to 13`, ""},
		{"auto/14", "JOB_COMPLETION_INDEX=-1", "want a number from 0 to 13", ""},
		{"auto/14", "SLURM_ARRAY_TASK_ID=3 PARALLEL_SEQ=1", "SLURM_ARRAY_TASK_ID=3 part 3 and PARALLEL_SEQ=1 part 1", "write the one that is meant"},
	} {
		i, n, err := Part(tc.text, environment(tc.environment))
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hint.Of(err), tc.hint) {
			t.Errorf("%s with %q: got %d/%d, %v (%s), want an error with %q and a hint with %q", tc.text, tc.environment, i, n, err, hint.Of(err), tc.want, tc.hint)
		}
	}
}

// What is taken is written in one way only, so that two tasks of one part are seen to be.
func FuzzPart(f *testing.F) {
	for _, text := range []string{"1/1", "3/14", "auto/14", "/14", "0/14", "1/99999999999999999999", "٣/14"} {
		f.Add(text, "3")
	}
	f.Fuzz(func(t *testing.T, text, index string) {
		i, n, err := Part(text, func(name string) string {
			if name == "SLURM_ARRAY_TASK_ID" {
				return index
			}
			return ""
		})
		if err != nil {
			return
		}
		if i < 1 || i > n || n > maxParts {
			t.Fatalf("%q, %q: part %d of %d", text, index, i, n)
		}
		if written := fmt.Sprintf("%d/%d", i, n); text != written && (text != fmt.Sprintf("auto/%d", n) || index != fmt.Sprint(i)) {
			t.Errorf("%q, %q is taken for %s", text, index, written)
		}
	})
}
