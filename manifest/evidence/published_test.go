package evidence

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// read reads a file of testdata after replacing texts in it, each of which must be there.
func read(t *testing.T, name string, replace ...string) (*Document, error) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return Read([]byte(text))
}

// table returns the one whose title begins with a text.
func table(t *testing.T, d *Document, title string) Table {
	t.Helper()
	for _, x := range d.Tables() {
		if strings.HasPrefix(x.Title, title) {
			return x
		}
	}
	t.Fatalf("no table %q", title)
	return Table{}
}

// column returns the cells of one column.
func column(t *testing.T, x Table, name string) []string {
	t.Helper()
	i := slices.Index(x.Columns, name)
	if i < 0 {
		t.Fatalf("table %q has no column %q", x.Title, name)
	}
	var cells []string
	for _, row := range x.Rows {
		cells = append(cells, row[i])
	}
	return cells
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestThreeNodeReport gives the published table: what the report says, and nothing that it
// does not.
func TestThreeNodeReport(t *testing.T) {
	d, err := read(t, "three-node-iq1s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Warnings) > 0 {
		t.Errorf("warnings: %v", d.Warnings)
	}
	decode := table(t, d, "Decode")
	same(t, "decode", column(t, decode, "result"), "2.9")
	same(t, "decode", column(t, decode, "output tokens"), NotSpecified)
	prefill := table(t, d, "Prefill")
	same(t, "prefill", column(t, prefill, "result"), "79.6", "43.9", "48.5")
	same(t, "prefill", column(t, prefill, "input tokens"), `"8K" as labelled`, `"32K" as labelled`, `"131K" as labelled`)
	if !strings.HasSuffix(prefill.Title, "cache state not specified") {
		t.Errorf("title %q guesses a cache state", prefill.Title)
	}
	scores := table(t, d, "Scores")
	same(t, "scores", column(t, scores, "correct"), "49 of 50", "14 of 20", "4 of 4")
	same(t, "shares", column(t, scores, "share"), "98.0 %", "70.0 %", "100.0 %")
	same(t, "intervals", column(t, scores, "interval"), "89.5 to 99.6 %", "48.1 to 85.5 %", "51.0 to 100.0 %")
	same(t, "failed", column(t, scores, "failed"), NotSpecified, "2, 7", "none")
	same(t, "timed out", column(t, scores, "timed out"), NotSpecified, "1, 6, 10, 17", "none")
	same(t, "pass", column(t, scores, "pass"), "first", "first", "retry of humaneval")
	history := "HumanEval: 14 of 20 in the first pass; 4 of 4 timed-out items right in a retry (limits changed: higher limits); 18 of 20 in the end, which is not a first pass"
	if !strings.Contains(scores.About, history) {
		t.Errorf("about scores: %q, want %q", scores.About, history)
	}
	for _, x := range d.Tables() {
		for _, row := range x.Rows {
			if slices.Contains(row, "18 of 20") {
				t.Errorf("table %q has the composite in a cell: %q", x.Title, row)
			}
		}
	}
	same(t, "context", column(t, table(t, d, "Context"), "tokens"), NotSpecified, "1,048,576")
	same(t, "memory", column(t, table(t, d, "Memory"), "result"), "119 to 120 GB (convention not specified), method: Not specified, a machine")
	checkConditions(t, table(t, d, "Conditions of rows decode"))
}

func checkConditions(t *testing.T, x Table) {
	t.Helper()
	said := map[string][]string{}
	for _, row := range x.Rows {
		said[row[0]] = append(said[row[0]], row[1]+" | "+row[2])
	}
	same(t, "MTU", said["network.mtu"], "4096, in use | reported by report", "9000 | reported by overview")
	same(t, "limit", said["context_limit_tokens"], "1,048,576 | configured")
	for _, name := range []string{"pin_digest", "model_revision", "engine", "runtime_revision", "image_digest", "kv_dtype", "temperature", "top_p", "thinking",
		"timeout_seconds", "retry_policy", "experiment_date", "output_tokens_cap"} {
		same(t, name, said[name], NotSpecified+" | "+NotSpecified)
	}
}

// TestShortcutsAreRefused enters what the published cards had.
func TestShortcutsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		replace []string
		want    string
	}{
		"composite as a first pass": {
			[]string{"correct: 14\n    failed_ids: [2, 7]\n    timed_out_ids: [1, 6, 10, 17]", "correct: 18\n    failed_ids: [2, 7]\n    timed_out_ids: []"},
			`row "humaneval-retry" retries 4 items, but only 2 of "humaneval" were not correct`},
		"composite with the ids left out": {
			[]string{"correct: 14\n    failed_ids: [2, 7]\n    timed_out_ids: [1, 6, 10, 17]", "correct: 18\n    failed_ids: Not specified\n    timed_out_ids: Not specified"},
			`is "humaneval" a first pass, or what came of the retries too?`},
		"composite with the ids kept": {
			[]string{"correct: 14", "correct: 18"}, `row "humaneval" lists 6 items that failed or timed out, but 2 of 20 were not correct`},
		"composite as a pass":          {[]string{"pass: retry", "pass: composite"}, `pass is "composite", want first or retry`},
		"composite as a field":         {[]string{"correct: 14", "correct: 14\n    final_score: 18"}, "a composite is computed"},
		"percentage for a count":       {[]string{"correct: 49", "correct: 98%"}, `correct is "98%", want a whole number`},
		"percentage alone":             {[]string{"correct: 49", "accuracy: 0.98"}, "a share without a denominator"},
		"no denominator":               {[]string{"    total: 50\n", ""}, `row "gsm8k" is a score without total`},
		"no ids":                       {[]string{"    failed_ids: [2, 7]\n", ""}, `row "humaneval" is a score without failed_ids`},
		"retry of nothing":             {[]string{"retries: humaneval", "retries: other"}, `is a retry of "other", which is no other row`},
		"retry of what passed":         {[]string{"subset_ids: [1, 6, 10, 17]", "subset_ids: [1, 6, 10, 3]"}, "retries the items 3"},
		"retry without its limits":     {[]string{"    limits_changed: higher limits\n", ""}, "limits_changed says what it was allowed"},
		"label as a count":             {[]string{"input_tokens: {label: 131K}", "input_tokens: 131K"}, "want a whole number in digits"},
		"label as a tested context":    {[]string{"input_tokens: {label: 131K}", "tested_context: 131072"}, "a context is tested by a row"},
		"limit as a result":            {[]string{"decode_tokens_per_second: 2.9", "context: 1048576"}, "a context is tested by a row"},
		"configured result":            {[]string{"decode_tokens_per_second: 2.9", "decode_tokens_per_second: {value: 2.9, kind: configured}"}, "cannot be configured"},
		"one rate for all":             {[]string{"decode_tokens_per_second: 2.9", "tokens_per_second: 2.9"}, "rates of different kinds"},
		"range as a number":            {[]string{"kind: approximate", "kind: reported"}, "its kind is approximate"},
		"peak without a method":        {[]string{", method: Not specified", ""}, "does not say how it was found"},
		"memory of no kind":            {[]string{"peak_runtime_RAM:", "memory:"}, "say peak_runtime_RAM"},
		"reported by nobody":           {[]string{"kind: reported\n    source: report\n    setup: three-node\n    decode", "kind: reported\n    setup: three-node\n    decode"}, "reported: by which source?"},
		"measured here, says a source": {[]string{"kind: reported\n    source: report\n    setup: three-node\n    decode", "kind: measured\n    source: report\n    setup: three-node\n    decode"}, "is reported"},
		"no kind":                      {[]string{"kind: reported\n    source: report\n    setup: three-node\n    decode", "setup: three-node\n    decode"}, "does not say how it is known"},
		"two values, one source":       {[]string{"{value: 9000, source: overview}", "9000"}, "each needs a source"},
		"a blank":                      {[]string{"weight_precision: IQ1_S", "weight_precision:"}, "is empty"},
		"a shrug":                      {[]string{"weight_precision: IQ1_S", "weight_precision: n/a"}, `write "Not specified"`},
		"a slip":                       {[]string{"weight_precision: IQ1_S", "weight_precison: IQ1_S"}, `did you mean "weight_precision"?`},
		"a label as a digest":          {[]string{"pin_digest: Not specified\n    node", "pin_digest: Kimi-K3-Neuron-IQ1S-GGUF\n    node"}, "names no algorithm"},
		"criterion by the writer":      {[]string{"weight_precision: IQ1_S", "criterion: measured"}, "taken from the plan"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, "three-node-iq1s.yaml", c.replace...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestOtherShortcuts enters more of the kind, under names and in words that nobody listed.
func TestOtherShortcuts(t *testing.T) {
	for name, want := range map[string]string{
		"decode_tps": "rates of different kinds", "Prefill tok/s": "rates of different kinds", "generation-speed": "rates of different kinds", "tokensPerSecond": "rates of different kinds",
		"avg_prefill": "a mean of what", "mean_ttft": "a mean of what", "prefill_average": "a mean of what", "overall_tps": "a mean of what",
		"humaneval_score": "without a denominator", "GSM8K accuracy": "without a denominator", "humaneval": "without a denominator", "mmlu_pro": "without a denominator", "pass@1": "without a denominator",
		"composite_result": "a composite is computed", "humaneval_after_retries": "a composite is computed", "best_of_2": "a composite is computed",
		"peak_vram": "say peak_runtime_RAM", "memory_used": "say peak_runtime_RAM", "max_rss": "say peak_runtime_RAM", "RAM_GB": "say peak_runtime_RAM",
		"max_tested_context": "a context is tested by", "verified_context": "a context is tested by", "context_window": "a context is tested by",
	} {
		_, err := read(t, "three-node-iq1s.yaml", "decode_tokens_per_second: 2.9", "decode_tokens_per_second: 2.9\n    \""+name+"\": 90")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a field %q: error %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"switch", "storage", "memory_speed", "prompt_template", "score_function", "driver", "rope_scaling", "cards", "mathematics_seed"} {
		if _, err := read(t, "three-node-iq1s.yaml", "decode_tokens_per_second: 2.9", "decode_tokens_per_second: 2.9\n    "+name+": 90"); err != nil {
			t.Errorf("a field %q: %v", name, err)
		}
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"a first pass by its own words": {"workload: HumanEval, first pass", "workload: HumanEval after retries", `says "after retries"`},
		"a benchmark of several passes": {"benchmark: GSM8K", "benchmark: GSM8K (composite)", `says "composite"`},
		"a peak that was looked at":     {"method: Not specified, note: a machine", "method: free -h after loading, note: a machine", "which is occupied_RAM"},
		"a mean of lengths":             {"prefill_tokens_per_second: 79.6", `prefill_tokens_per_second: {value: 57.3, note: "mean of 8K, 32K and 131K"}`, "is not averaged"},
		"a mean of cold and warm":       {"workload: decode\n", "workload: average of cold and warm runs\n", "is not averaged"},
		"another word for lossless":     {"workload: decode\n", "workload: decode, on par with the original\n", `says "on par with"`},
		"and another":                   {"workload: decode\n", "workload: decode with zero quality loss\n", `says "zero quality loss"`},
	} {
		d, err := read(t, "three-node-iq1s.yaml", c.old, c.new)
		if err != nil || len(d.Warnings) == 0 || !strings.Contains(d.Warnings[0].What, c.want) {
			t.Errorf("%s: warnings %v, error %v, want %q", name, d.Warnings, err, c.want)
		}
	}
	d, err := read(t, "three-node-iq1s.yaml", "weight_precision: IQ1_S", "weight_precision: IQ1_S\n    system: 3 machines, 128 GB and 900 GB/s each, 4 GiB swap")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table(t, d, "Conditions of rows decode").Rows {
		if row[0] == "system" && row[1] != "3 machines, 128 GB (convention not specified) and 900 GB/s each, 4 GiB swap" {
			t.Errorf("a size in a text: %q", row[1])
		}
	}
	d, err = read(t, "three-node-iq1s.yaml", "input_tokens: {label: 131K}", "input_tokens: {value: 131072, kind: configured}")
	if err != nil {
		t.Fatal(err)
	}
	if r, n := d.TestedContext(); r != nil {
		t.Errorf("a configured input is a tested context of %d", n)
	}
}

// TestFourNodeCard keeps metrics of different kinds apart, and two statements of one limit.
func TestFourNodeCard(t *testing.T) {
	d, err := read(t, "four-node-reap568.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cold := table(t, d, "Prefill")
	if cold.Title != "Prefill, tokens per second, nothing cached" {
		t.Errorf("title %q", cold.Title)
	}
	same(t, "cold prefill", column(t, cold, "result"), "75.09", "61.30")
	same(t, "cold prefill", column(t, cold, "input tokens"), "3,255", "1,769")
	decode := table(t, d, "Decode")
	same(t, "decode", column(t, decode, "result"), "2.65")
	same(t, "decode", column(t, decode, "output tokens"), "16")
	context := table(t, d, "Context")
	same(t, "context", column(t, context, "tokens"), "3,255 in row cold-3255", `"64K" as labelled`, `"600K" as labelled, served profile`)
	same(t, "context", column(t, context, "known"), "reported by card", "reported by name", "reported by card")
	warm := "  - id: warm\n    workload: warm prefix reuse\n    kind: reported\n    source: card\n    setup: four-node\n    cache_state: warm\n    input_tokens: 3255\n    prefill_tokens_per_second: 900\n    ttft_seconds: 3.6\n"
	d, err = read(t, "four-node-reap568.yaml", "rows:\n", "rows:\n"+warm)
	if err != nil {
		t.Fatal(err)
	}
	for title, want := range map[string]int{
		"Prefill, tokens per second, nothing cached": 2, "Prefill, tokens per second, prefix cached": 1,
		"Time to the first token, seconds, prefix cached": 1, "Decode, tokens per second, cache state not specified": 1,
	} {
		if got := len(table(t, d, title).Rows); got != want {
			t.Errorf("%q has %d rows, want %d", title, got, want)
		}
	}
}

// TestFourNodeShortcuts enters what must not be mixed.
func TestFourNodeShortcuts(t *testing.T) {
	for want, replace := range map[string][]string{
		"they are different metrics":             {"cache_state: cold", "cache_state: cold and warm"},
		"give each a row of its own":             {"prefill_tokens_per_second: 75.09", "prefill_tokens_per_second: [{value: 75.09, source: card}, {value: 900, source: name}]"},
		"cannot be configured":                   {"75.09", "{value: 75.09, kind: configured}"},
		"taken from the plan":                    {"artifact: REAP568", "pruning_method: measured REAP"},
		"both state context_limit_tokens":        {"cache_state: cold", "context_limit_tokens: 600000\n    cache_state: cold"},
		`context_limit_tokens is "600K", want a`: {"{label: 600K,", "{value: 600K,"},
	} {
		if _, err := read(t, "four-node-reap568.yaml", replace...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", replace[1], err, want)
		}
	}
	d, err := read(t, "four-node-reap568.yaml", "schema:", "notes: [\"lossless beside the parent\"]\nschema:")
	if err != nil || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].What, `says "lossless"`) {
		t.Errorf("warnings %v, error %v", d.Warnings, err)
	}
}
