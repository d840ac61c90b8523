package args

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/cmd/ggufreap/internal/hint"
)

// maxParts is the greatest number of parts: as many as a Kubernetes Job has indexes.
const maxParts = 100_000

// autoIndex stands for the index that a scheduler gives.
const autoIndex = "auto"

// Part reads which part of how many is meant: I/N with I from 1 to N, or auto/N, where I is
// the index that a scheduler has set in the environment. N is never taken from there: a
// scheduler states how many tasks were submitted, which are fewer when some are submitted
// again.
func Part(text string, environment func(string) string) (i, n int, err error) {
	index, count, divided := strings.Cut(text, "/")
	n, whole := wholeNumber(count)
	if !divided || !whole || n < 1 || n > maxParts {
		return 0, 0, hint.With(Usagef("--only is %q, want I/N with N from 1 to %d", text, maxParts),
			"--only 3/14 is the third of 14 parts; the number of parts is always written")
	}
	if index == autoIndex {
		i, err = scheduledIndex(n, environment)
		return i, n, err
	}
	i, whole = wholeNumber(index)
	switch {
	case !whole:
		return 0, 0, hint.With(Usagef("--only is %q, want a number or %q before the slash", text, autoIndex),
			"see that the variable it is given is set; --only %s/%d takes the index that a scheduler gives", autoIndex, n)
	case i == 0:
		return 0, 0, hint.With(Usagef("--only is %q: parts are numbered from 1", text),
			"--only %s/%d adds 1 where the scheduler counts from 0; of a Slurm array: --array=1-%d", autoIndex, n, n)
	case i > n:
		return 0, 0, Usagef("--only is %q: there are %d parts", text, n)
	}
	return i, n, nil
}

// wholeNumber reads digits: no sign, no space, no second spelling of a number.
func wholeNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && strconv.Itoa(n) == s && n >= 0
}

// A scheduler tells a task its index in a variable.
type scheduler struct {
	variable string
	first    int    // the index of the first task
	none     string // what stands there outside of arrays
	array    string // how an array from 1 to N is submitted, where the user decides on the first index
}

// schedulers are those whose variables are read. Where the user decides on the first index,
// it has to be 1.
var schedulers = []scheduler{
	{variable: "SLURM_ARRAY_TASK_ID", first: 1, array: "sbatch --array=1-%d"},
	{variable: "JOB_COMPLETION_INDEX"},
	{variable: "AWS_BATCH_JOB_ARRAY_INDEX"},
	{variable: "BATCH_TASK_INDEX"},
	{variable: "CLOUD_RUN_TASK_INDEX"},
	{variable: "NOMAD_ALLOC_INDEX"},
	{variable: "LSB_JOBINDEX", first: 1, none: "0"},
	{variable: "PBS_ARRAY_INDEX", first: 1, array: "qsub -J 1-%d"},
	{variable: "PBS_ARRAYID", first: 1, array: "qsub -t 1-%d"},
	{variable: "SGE_TASK_ID", first: 1, none: "undefined"},
	{variable: "PARALLEL_SEQ", first: 1},
}

// scheduledIndex returns the index that the environment gives, counted from 1.
func scheduledIndex(n int, environment func(string) string) (int, error) {
	found, from := 0, ""
	for _, s := range schedulers {
		value := environment(s.variable)
		if value == "" || value == s.none {
			continue
		}
		i, err := s.index(value, n)
		if err != nil {
			return 0, err
		}
		said := fmt.Sprintf("%s=%s", s.variable, value)
		if from != "" && i != found {
			return 0, hint.With(Usagef("--only %s/%d: two schedulers give different parts, %s part %d and %s part %d", autoIndex, n, from, found, said, i),
				"write the one that is meant, such as --only $%s/%d where it counts from 1", s.variable, n)
		}
		found, from = i, said
	}
	if from == "" {
		return 0, hint.With(Usagef("--only %s/%d: no scheduler gives an index, as in SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX", autoIndex, n),
			"give the number of the part: --only 1/%d", n)
	}
	return found, nil
}

// index reads what a scheduler gives.
func (s *scheduler) index(value string, n int) (int, error) {
	i, whole := wholeNumber(value)
	last := n - 1 + s.first
	switch {
	case !whole:
		return 0, Usagef("--only %s/%d: %s is %q, want a number from %d to %d", autoIndex, n, s.variable, value, s.first, last)
	case i >= s.first && i <= last:
		return i - s.first + 1, nil
	}
	err := Usagef("--only %s/%d: %s is %d, want %d to %d", autoIndex, n, s.variable, i, s.first, last)
	if s.array == "" {
		return 0, hint.With(err, "the number behind the slash is that of all parts")
	}
	return 0, hint.With(err, "parts are numbered from 1: "+s.array, n)
}
