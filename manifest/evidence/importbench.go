package evidence

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
)

// A benchResult is one of llama-bench's, by the names of its fields. Numbers keep their text.
type benchResult map[string]string

// benchJSON reads -o json, a list, and -o jsonl, an object a line.
func (in *reading) benchJSON(f File) error {
	return eachObject(f.Data, func(fields map[string]jsontext.Value) error {
		r := benchResult{}
		for name, raw := range fields {
			r[name] = plain(raw)
		}
		var samples []jsontext.Value
		if json.Unmarshal(fields["samples_ts"], &samples) == nil {
			r["repetitions"] = fmt.Sprint(len(samples))
		}
		return in.bench(f, r)
	})
}

// plain returns the text of a JSON string, number or truth value, "" of anything else.
func plain(raw jsontext.Value) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// eachObject calls a function for each object of a stream of objects and lists of them.
func eachObject(data []byte, do func(map[string]jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		var fields map[string]jsontext.Value
		var err error
		kind := d.PeekKind()
		inList := kind == jsontext.KindBeginArray || kind == jsontext.KindEndArray
		if inList {
			_, err = d.ReadToken()
		} else {
			err = json.UnmarshalDecode(d, &fields)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("no valid JSON: %w", jsondoc.ReadError(err))
		case inList:
			continue
		}
		if err := do(fields); err != nil {
			return err
		}
	}
}

// benchCSV reads -o csv.
func (in *reading) benchCSV(f File) error {
	if !utf8.Valid(f.Data) {
		return errors.New("invalid UTF-8")
	}
	lines := csv.NewReader(bytes.NewReader(f.Data))
	head, err := lines.Read()
	if err != nil {
		return err
	}
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := benchResult{}
		for i, name := range head {
			r[name] = cells[i]
		}
		if err := in.bench(f, r); err != nil {
			return err
		}
	}
}

// bench adds the row of one result.
func (in *reading) bench(f File, r benchResult) error {
	if r["avg_ts"] == "" || r["n_prompt"] == "" || r["n_gen"] == "" {
		return errors.New("a result without n_prompt, n_gen or avg_ts")
	}
	test, result := r.test()
	if result == "" {
		in.note("%s: a test of no tokens was left out", f.Name)
		return nil
	}
	row := start("llama-bench-"+strings.NewReplacer(" ", "-", "@", "at").Replace(test), test, "llama-bench", f)
	r.conditions(&row)
	spread := ""
	if sd := r["stddev_ts"]; sd != "" {
		spread = "± " + sd + " (standard deviation)"
	}
	row = append(row, member{result, measured(r["avg_ts"], spread)})
	in.rows = append(in.rows, row)
	return nil
}

// test names the test as llama-bench does, and the result that it gives.
func (r benchResult) test() (name, result string) {
	switch prompt, gen := r["n_prompt"], r["n_gen"]; {
	case prompt == "0" && gen == "0":
		return "", ""
	case gen == "0":
		name, result = "pp"+prompt, "prefill_tokens_per_second"
	case prompt == "0":
		name, result = "tg"+gen, "decode_tokens_per_second"
	default:
		name, result = "pp"+prompt+"+tg"+gen, "prompt_and_generation_tokens_per_second"
	}
	if r.deep() {
		name += " @ d" + r["n_depth"]
	}
	return name, result
}

// deep reports whether the test began with a context that was filled before.
func (r benchResult) deep() bool { return r["n_depth"] != "" && r["n_depth"] != "0" }

func (r benchResult) conditions(row *row) {
	row.add("model", r["model_type"])
	row.add("artifact", path.Base(strings.ReplaceAll(r["model_filename"], `\`, "/")))
	row.add("engine", "llama.cpp")
	row.add("runtime_revision", r["build_commit"])
	row.add("system", strings.Trim(r["cpu_info"]+", "+r["gpu_info"], ", "))
	row.add("parallelism", joined(r, "split_mode", "n_gpu_layers", "n_threads"))
	row.add("kv_dtype", joined(r, "type_k", "type_v"))
	row.add("load_mode", r.loadMode())
	if date, _, ok := strings.Cut(r["test_time"], "T"); ok {
		row.add("experiment_date", date)
	}
	row.add("repetitions", r["repetitions"])
	if r["n_prompt"] != "0" {
		row.add("input_tokens", r["n_prompt"])
		if !r.deep() { // llama-bench clears the cache before each repetition
			row.add("cache_state", "cold")
		}
	}
	if r["n_gen"] != "0" {
		row.add("actual_output_tokens", r["n_gen"])
	}
	if r.deep() {
		row.add("depth_of_context", r["n_depth"])
	}
	for _, name := range []string{"backends", "n_batch", "n_ubatch", "flash_attn"} {
		row.add(name, r[name])
	}
}

func (r benchResult) loadMode() string {
	switch {
	case r["load_mode"] != "":
		return r["load_mode"]
	case r["use_mmap"] == "true" || r["use_mmap"] == "1":
		return "mmap"
	case r["use_mmap"] != "":
		return "no-mmap"
	}
	return ""
}

// joined lists those of the named fields that are there.
func joined(r benchResult, names ...string) string {
	var parts []string
	for _, name := range names {
		if r[name] != "" {
			parts = append(parts, name+" "+r[name])
		}
	}
	return strings.Join(parts, ", ")
}
