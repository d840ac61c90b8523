package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// importFiles imports files of testdata/import.
func importFiles(t *testing.T, names ...string) (*Document, []string) {
	t.Helper()
	document, notes, err := Import(filesOf(t, names...))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(document)
	if err != nil {
		t.Fatal(err)
	}
	return d, notes
}

func filesOf(t *testing.T, names ...string) []File {
	t.Helper()
	var files []File
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata/import", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{name, data})
	}
	return files
}

// says checks what a row says of fields.
func says(t *testing.T, d *Document, id string, want map[string]string) {
	t.Helper()
	r := d.row(id)
	if r == nil {
		var ids []string
		for _, r := range d.Rows {
			ids = append(ids, r.ID)
		}
		t.Fatalf("no row %q among %q", id, ids)
	}
	for name, text := range want {
		if got := r.shown(name); got != text {
			t.Errorf("%s: %s is %q, want %q", id, name, got, text)
		}
	}
}

func TestImportBench(t *testing.T) {
	d, _ := importFiles(t, "bench.json", "bench.jsonl", "bench.csv")
	says(t, d, "llama-bench-pp512", map[string]string{
		"prefill_tokens_per_second": "7100.002165 ± 140.341520 (standard deviation)", "decode_tokens_per_second": NotSpecified,
		"input_tokens": "512", "cache_state": "cold", "actual_output_tokens": NotSpecified, "repetitions": "5", "runtime_revision": "8cf427ff",
		"experiment_date": "2025-04-24", "kv_dtype": "type_k f16, type_v f16", "load_mode": "mmap", "artifact": "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
		"system": "AMD Ryzen 7 7800X3D 8-Core Processor, NVIDIA GeForce RTX 4080", "temperature": NotSpecified, "pin_digest": NotSpecified,
	})
	says(t, d, "llama-bench-tg128-at-d512", map[string]string{
		"decode_tokens_per_second": "118.880588 ± 1.041811 (standard deviation)", "depth_of_context": "512", "cache_state": NotSpecified, "input_tokens": NotSpecified})
	says(t, d, "llama-bench-pp512+tg128", map[string]string{
		"prompt_and_generation_tokens_per_second": "400.25 ± 1.5 (standard deviation)", "decode_tokens_per_second": NotSpecified, "prefill_tokens_per_second": NotSpecified})
	says(t, d, "llama-bench-pp512-3", map[string]string{"prefill_tokens_per_second": "7285.676949 ± 100.064434 (standard deviation)", "repetitions": NotSpecified})
	if len(d.Rows) != 6 {
		t.Errorf("%d rows, want 6", len(d.Rows))
	}
	for _, r := range d.Rows {
		f := filesOf(t, r.Imported[0].File)[0]
		if sum := sha256.Sum256(f.Data); r.Imported[0].SHA256 != hex.EncodeToString(sum[:]) || r.Kind != Measured {
			t.Errorf("row %q: %s, imported %+v", r.ID, r.Kind, r.Imported)
		}
	}
}

func TestImportPerplexity(t *testing.T) {
	d, _ := importFiles(t, "perplexity.txt", "kl.txt")
	says(t, d, "llama-perplexity", map[string]string{"perplexity": "13.9634 ± 0.25031 (standard error)", "kl_divergence_mean": NotSpecified,
		"chunks": "100", "tokens_of_a_chunk": "512", "runtime_revision": "8cf427ff", "prefill_tokens_per_second": NotSpecified})
	says(t, d, "llama-perplexity-2", map[string]string{"perplexity": "14.268128 ± 0.256326 (standard error)", "kl_divergence_mean": "0.025471 ± 0.000244 (standard error)",
		"same_top_token_percent": "91.110 ± 0.178 (standard error)", "perplexity_of_the_base": "13.942580"})
}

func TestImportServer(t *testing.T) {
	d, _ := importFiles(t, "answers.jsonl", "server.log")
	says(t, d, "llama-server-prefill", map[string]string{"prefill_tokens_per_second": "75.09", "input_tokens": "3,255", "cache_state": "cold",
		"temperature": "0.6 [configured]", "output_tokens_cap": "16 [configured]", "ttft_seconds": NotSpecified})
	says(t, d, "llama-server-decode", map[string]string{"decode_tokens_per_second": "2.65", "actual_output_tokens": "16"})
	says(t, d, "llama-server-prefill-2", map[string]string{"cache_state": "warm", "input_tokens": "3,255", "processed_tokens": "255", "cached_tokens": "3000", "temperature": NotSpecified})
	says(t, d, "llama-server-prefill-3", map[string]string{"cache_state": NotSpecified, "input_tokens": NotSpecified, "processed_tokens": "100"})
	says(t, d, "llama-server-prefill-4", map[string]string{"prefill_tokens_per_second": "75.09", "cache_state": NotSpecified, "processed_tokens": "3255"})
	says(t, d, "llama-server-decode-3", map[string]string{"decode_tokens_per_second": "2.65", "actual_output_tokens": "16"})
	if len(table(t, d, "Prefill, tokens per second, prefix cached").Rows) != 1 {
		t.Error("warm prefill does not stand in a table of its own")
	}
}

const (
	harnessResultsFile = "results_2026-08-12T10-00-00.000000.json"
	harnessSamplesFile = "samples_gsm8k_2026-08-12T10-00-00.000000.jsonl"
)

func TestImportHarness(t *testing.T) {
	d, notes := importFiles(t, harnessResultsFile, harnessSamplesFile)
	says(t, d, "lm-eval-gsm8k-exact_match-strict-match", map[string]string{"correct": "4", "total": "5", "subset": "5 of 1319 items",
		"subset_ids": "0, 1, 2, 3, 4", "failed_ids": "2", "timed_out_ids": NotSpecified, "temperature": "0 [configured]",
		"output_tokens_cap": "512 [configured]", "experiment_date": "2026-08-12", "shots": "5", "harness_revision": "1a2b3c4", "model": "K3-REAP568"})
	says(t, d, "lm-eval-gsm8k-exact_match-flexible-extract", map[string]string{"correct": "5", "total": "5", "subset_ids": NotSpecified, "failed_ids": NotSpecified})
	if len(d.Rows) != 2 || len(d.Rows[0].Imported) != 2 {
		t.Errorf("%d rows, imported %v", len(d.Rows), d.Rows[0].Imported)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"bleu", `"group" has no number of samples`} {
		if !strings.Contains(all, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
	alone, _ := importFiles(t, harnessSamplesFile)
	says(t, alone, "lm-eval-gsm8k-exact_match-strict-match", map[string]string{"correct": "4", "total": "5", "subset": NotSpecified, "failed_ids": "2"})
}

// TestImportRefuses holds files against each other and against what they say themselves.
func TestImportRefuses(t *testing.T) {
	files := filesOf(t, harnessResultsFile, harnessSamplesFile)
	edit := func(i int, from, to string) []File {
		changed := append([]File{}, files...)
		if !strings.Contains(string(files[i].Data), from) {
			t.Fatalf("%s has no %q", files[i].Name, from)
		}
		changed[i].Data = []byte(strings.Replace(string(files[i].Data), from, to, 1))
		return changed
	}
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"samples that disagree": {edit(1, `"exact_match": 0.0`, `"exact_match": 1.0`), "is 4 of 5, but samples_gsm8k"},
		"no count":              {edit(0, `strict-match": 0.8`, `strict-match": 0.83`), "no count of 5 samples"},
		"an item twice":         {edit(1, `"doc_id": 4`, `"doc_id": 3`), `subset_ids has "3" twice`},
		"half a file":           {[]File{{"x.json", []byte(`[{"avg_ts": 1`)}}, "no valid JSON"},
		"an end alone":          {[]File{{"x.json", []byte(`[]] "avg_ts"`)}}, "no valid JSON"},
		"a name twice":          {[]File{{"x.json", []byte(`[{"avg_ts": 1, "avg_ts": 2, "n_prompt": 1, "n_gen": 0}]`)}}, `key "avg_ts" stands twice`},
		"a sample's name twice": {[]File{{"x.jsonl", []byte(`{"doc_id": 1, "acc": 1, "acc": 0}`)}}, `sample 1: no valid JSON: JSON, byte 24: key "acc" stands twice`},
		"no text":               {[]File{{"x.json", []byte("{\"avg_ts\": 1, \"x\": \"\xff\"}")}}, "invalid UTF-8"},
		"a CSV that is no text": {[]File{{"x.csv", []byte("n_prompt,n_gen,avg_ts,model_type\n1,0,2,\x86\n")}}, "x.csv: invalid UTF-8"},
		"another file":          {[]File{{"x.txt", []byte("hello")}}, "not what a tool wrote that can be imported: llama-bench CSV"},
		"an empty file":         {[]File{{"x.txt", nil}}, "x.txt: empty"},
		"no final figure":       {[]File{{"x.txt", []byte("Maximum KLD:   4.2\n")}}, "did not come to a final figure"},
		"a rate that is none":   {[]File{{"x.jsonl", []byte(`{"n_prompt":1,"n_gen":0,"avg_ts":"fast"}`)}}, `want a number`},
	} {
		if _, _, err := Import(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// FuzzImport wants every document that comes of an import to be sound, and no panic.
func FuzzImport(f *testing.F) {
	paths, _ := filepath.Glob("testdata/import/*")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document, _, err := Import([]File{{"file", data}})
		if err != nil {
			return
		}
		if _, err := Read(document); err != nil {
			t.Errorf("%v\n%s", err, document)
		}
	})
}

// FuzzRead wants no panic, and tables without a blank of all that is sound.
func FuzzRead(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("{\n\"schema\": \"" + Schema + "\",\n\"rows\": []}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(data)
		if err != nil {
			return
		}
		for _, x := range d.Tables() {
			for _, row := range x.Rows {
				for i, cell := range row {
					if strings.TrimSpace(cell) == "" || len(row) != len(x.Columns) {
						t.Errorf("%s: %s is blank in %q", x.Title, x.Columns[i], row)
					}
				}
			}
		}
	})
}
