package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
	"ggufreap/gguf/pattern"
)

const harnessName = "lm-evaluation-harness"

// harnessResults is a results file.
type harnessResults struct {
	file    File
	Results map[string]map[string]jsontext.Value `json:"results"`
	Samples map[string]struct {
		Original  int64 `json:"original"`
		Effective int64 `json:"effective"`
	} `json:"n-samples"`
	Shots    map[string]jsontext.Value `json:"n-shot"`
	Versions map[string]jsontext.Value `json:"versions"`
	Config   struct {
		Model     jsontext.Value `json:"model"`
		GenKwargs jsontext.Value `json:"gen_kwargs"`
	} `json:"config"`
	ModelName string         `json:"model_name"`
	GitHash   string         `json:"git_hash"`
	Date      jsontext.Value `json:"date"`
}

func (in *reading) harnessResults(f File) error {
	r := &harnessResults{file: f}
	if err := json.Unmarshal(f.Data, r); err != nil {
		return fmt.Errorf("no valid JSON: %w", jsondoc.ReadError(err))
	}
	in.results = append(in.results, r)
	return nil
}

// harnessSamples is a file of samples: what became of each item.
type harnessSamples struct {
	file  File
	task  string
	marks map[string]*marks // by "metric,filter"
	used  bool
}

// marks are the items of one metric.
type marks struct {
	ids, failed []string
	graded      bool // some are neither 0 nor 1
}

var samplesName = pattern.Lazy(`^samples_(.+)_\d{4}-\d{2}-\d{2}T[0-9.:-]+\.jsonl?$`)

func (in *reading) harnessSamples(f File) error {
	s := &harnessSamples{file: f, task: strings.TrimSuffix(f.Name, ".jsonl"), marks: map[string]*marks{}}
	if m := samplesName().FindStringSubmatch(f.Name); m != nil {
		s.task = m[1]
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(f.Data))
	for n := 1; ; n++ {
		var fields map[string]jsontext.Value
		switch err := json.UnmarshalDecode(d, &fields); {
		case errors.Is(err, io.EOF):
			in.samples = append(in.samples, s)
			return nil
		case err != nil:
			return fmt.Errorf("sample %d: no valid JSON: %w", n, jsondoc.ReadError(err))
		}
		if err := s.add(fields); err != nil {
			return fmt.Errorf("sample %d: %w", n, err)
		}
	}
}

// add takes the marks of one sample, which names its metrics or has them among the known.
func (s *harnessSamples) add(fields map[string]jsontext.Value) error {
	id := plain(fields["doc_id"])
	if id == "" {
		return errors.New("no doc_id")
	}
	if task := plain(fields["task_name"]); task != "" {
		s.task = task
	}
	filter := plain(fields["filter"])
	if filter == "" {
		filter = "none"
	}
	var metrics []string
	if json.Unmarshal(fields["metrics"], &metrics) != nil {
		metrics = countedMetrics
	}
	for _, metric := range metrics {
		mark := plain(fields[metric])
		if mark == "" {
			continue
		}
		m := s.marks[metric+","+filter]
		if m == nil {
			m = &marks{}
			s.marks[metric+","+filter] = m
		}
		m.add(id, mark)
	}
	return nil
}

func (m *marks) add(id, mark string) {
	m.ids = append(m.ids, id)
	switch x, err := strconv.ParseFloat(mark, 64); {
	case mark == "true" || err == nil && x == 1:
	case mark == "false" || err == nil && x == 0:
		m.failed = append(m.failed, id)
	default:
		m.graded = true
	}
}

// countedMetrics are those that a sample passes or fails, where its file does not show it.
var countedMetrics = []string{"acc", "acc_norm", "exact_match", "pass@1", "pass_at_1"}

// harness makes rows of results and samples of the harness.
func (in *reading) harness() error {
	var faults []error
	for _, r := range in.results {
		for _, task := range slices.Sorted(maps.Keys(r.Results)) {
			if r.Samples[task].Effective == 0 {
				in.note("%s: %q has no number of samples (a group, whose tasks are imported): left out", r.file.Name, task)
				continue
			}
			for _, metric := range slices.Sorted(maps.Keys(r.Results[task])) {
				if err := in.harnessRow(r, task, metric); err != nil {
					faults = append(faults, fmt.Errorf("%s: %s: %w", r.file.Name, task, err))
				}
			}
		}
	}
	for _, s := range in.samples {
		if !s.used {
			in.samplesAlone(s)
		}
	}
	return errors.Join(faults...)
}

// harnessRow makes the row of one metric of a task.
func (in *reading) harnessRow(r *harnessResults, task, metric string) error {
	name, filter, ok := strings.Cut(metric, ",")
	value, err := strconv.ParseFloat(plain(r.Results[task][metric]), 64)
	if !ok || err != nil || strings.HasSuffix(name, "_stderr") {
		return nil
	}
	samples := in.samplesOf(task)
	var m *marks
	files := []File{r.file}
	if samples != nil {
		samples.used = true
		m = samples.marks[metric]
		files = append(files, samples.file)
	}
	total := r.Samples[task].Effective
	correct := int64(math.Round(value * float64(total)))
	switch {
	case m != nil && m.graded, m == nil && !slices.Contains(countedMetrics, name):
		in.note("%s: %s of %s is %v, no count of items: left out", r.file.Name, metric, task, value)
		return nil
	case math.Abs(value*float64(total)-float64(correct)) > 1e-6*float64(total) || value < 0 || value > 1:
		return fmt.Errorf("%s is %v, which is no count of %d samples", metric, value, total)
	case m != nil && (int64(len(m.ids)) != total || int64(len(m.ids)-len(m.failed)) != correct):
		return fmt.Errorf("%s is %d of %d, but %s has %d of %d", metric, correct, total, samples.file.Name, len(m.ids)-len(m.failed), len(m.ids))
	}
	out := start("lm-eval-"+task+"-"+name+"-"+filter, task+", "+name+" ("+filter+")", harnessName, files...)
	r.conditions(&out, task)
	score(&out, task+", "+name+" ("+filter+")", subsetText(total, r.Samples[task].Original), correct, total, m)
	in.rows = append(in.rows, out)
	return nil
}

func (in *reading) samplesOf(task string) *harnessSamples {
	for _, s := range in.samples {
		if s.task == task {
			return s
		}
	}
	return nil
}

// subsetText says how many of the benchmark's items were asked. Which ones, only ids tell.
func subsetText(effective, original int64) string {
	switch {
	case original == 0:
		return NotSpecified
	case effective == original:
		return "all"
	}
	return fmt.Sprintf("%d of %d items", effective, original)
}

// samplesAlone makes rows of samples without a results file.
func (in *reading) samplesAlone(s *harnessSamples) {
	for _, metric := range slices.Sorted(maps.Keys(s.marks)) {
		m := s.marks[metric]
		if m.graded {
			in.note("%s: %s is no count of items: left out", s.file.Name, metric)
			continue
		}
		name, filter, _ := strings.Cut(metric, ",")
		out := start("lm-eval-"+s.task+"-"+name+"-"+filter, s.task+", "+name+" ("+filter+")", harnessName, s.file)
		total := int64(len(m.ids))
		score(&out, s.task+", "+name+" ("+filter+")", NotSpecified, total-int64(len(m.failed)), total, m)
		in.rows = append(in.rows, out)
	}
}

// score adds a first pass. The harness does not tell wrong answers from those that were given
// up, so time outs are not specified.
func score(out *row, benchmark, subset string, correct, total int64, m *marks) {
	out.add("benchmark", benchmark)
	out.add("pass", "first")
	out.add("subset", subset)
	out.add("total", strconv.FormatInt(total, 10))
	out.add("correct", strconv.FormatInt(correct, 10))
	items, failed := any(NotSpecified), any(NotSpecified)
	if m != nil {
		items, failed = m.ids, append([]string{}, m.failed...)
	}
	*out = append(*out, member{"subset_ids", items}, member{"failed_ids", failed}, member{"timed_out_ids", NotSpecified})
}

// maxDate is behind any date of a run: seconds to the year 10000.
const maxDate = 253402300800

// conditions adds what the results file says of the run.
func (r *harnessResults) conditions(out *row, task string) {
	out.add("model", r.ModelName)
	if seconds, err := strconv.ParseFloat(plain(r.Date), 64); err == nil && seconds > 0 && seconds < maxDate {
		out.add("experiment_date", time.Unix(int64(seconds), 0).UTC().Format(time.DateOnly))
	}
	settings := generation(r.Config.GenKwargs)
	out.add("temperature", settings["temperature"])
	out.add("top_p", settings["top_p"])
	for _, name := range []string{"max_gen_toks", "max_tokens", "max_new_tokens"} {
		if integerForm().MatchString(settings[name]) {
			out.add("output_tokens_cap", settings[name])
			break
		}
	}
	out.add("harness_model_type", plain(r.Config.Model))
	out.add("harness_revision", r.GitHash)
	out.add("shots", plain(r.Shots[task]))
	out.add("task_version", plain(r.Versions[task]))
}

// generation reads settings that are an object, or a text "temperature=0,top_p=1".
func generation(raw jsontext.Value) map[string]string {
	settings := map[string]string{}
	var object map[string]jsontext.Value
	if json.Unmarshal(raw, &object) == nil {
		for name, value := range object {
			settings[name] = plain(value)
		}
	}
	for item := range strings.SplitSeq(plain(raw), ",") {
		if name, value, ok := strings.Cut(item, "="); ok {
			settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	for _, name := range []string{"temperature", "top_p"} {
		if !numberForm().MatchString(settings[name]) {
			delete(settings, name)
		}
	}
	return settings
}
