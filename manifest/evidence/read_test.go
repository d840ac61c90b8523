package evidence

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestJSONReadsAsYAML reads the published rows from JSON that another encoder wrote.
func TestJSONReadsAsYAML(t *testing.T) {
	for _, name := range []string{"three-node-iq1s.yaml", "four-node-reap568.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.MarshalIndent(tree, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("61.30"), []byte("61.3")) // as the encoder writes the number
		a, err := Read(text)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Read(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rowsOf(a), rowsOf(b)) {
			t.Errorf("%s: JSON gives %v, YAML %v", name, rowsOf(b), rowsOf(a))
		}
	}
}

// rowsOf returns what tables of results say; members of JSON objects have no order.
func rowsOf(d *Document) map[string][][]string {
	all := map[string][][]string{}
	for _, x := range d.Tables() {
		if x.Title != "Sources" {
			all[x.Title] = x.Rows
		}
	}
	return all
}

// TestAllFaultsAtOnce wants every fault with its line, in YAML and in JSON.
func TestAllFaultsAtOnce(t *testing.T) {
	const asYAML = `schema: ggufreap/evidence/v2
rows:
  - id: a
    workload: x
    kind: guessed
    decode_tokens_per_second: fast
  - id: a
    kind: measured
    correct: -1
unknown: 1
`
	const asJSON = `{"schema": "ggufreap/evidence/v2",
 "rows": [
	{"id": "a",
	 "workload": "x",
	 "kind": "guessed",
	 "decode_tokens_per_second": "fast"},
	{"id": "a", "kind": "measured",
	 "correct": "-1", "correct": 2}],
 "unknown": 1}
`
	for text, want := range map[string][]string{
		asYAML: {"line 1: schema is", `line 5: kind is "guessed"`, `line 6: decode_tokens_per_second is "fast"`, `line 7: row "a" stands twice, first in line 3`,
			"line 7: a row needs an id and a workload", `line 9: correct is "-1"`, `line 10: the document has "unknown"`},
		asJSON: {"line 1: schema is", `line 5: kind is "guessed"`, `line 6: decode_tokens_per_second is "fast"`, `line 7: row "a" stands twice`,
			`line 8: correct is "-1"`, `line 8: "correct" stands twice`, `line 9: the document has "unknown"`},
	} {
		_, err := Read([]byte(text))
		if err == nil {
			t.Fatal("no error")
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in:\n%v", w, err)
			}
		}
	}
}

// TestRefusesHostileDocuments wants a clear error for what is no document.
func TestRefusesHostileDocuments(t *testing.T) {
	bomb := "a: &a [x, x]\nb: &b [*a, *a]\nschema: " + Schema
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "empty"},
		"a bomb":         {bomb, "anchors and aliases are not read"},
		"deep YAML":      {"schema: " + Schema + "\nrows: " + strings.Repeat("[", 64) + strings.Repeat("]", 64), "nested more than"},
		"deep JSON":      {`{"rows": ` + strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16) + "}", "nested more than"},
		"half YAML":      {"schema: [", "line 1: no valid YAML"},
		"half JSON":      {`{"schema": `, "no valid JSON"},
		"two documents":  {"schema: x\n---\nschema: x\n", "a second document"},
		"two objects":    {`{"schema": "x"} {}`, "something follows"},
		"many values":    {"rows: [" + strings.Repeat("a,", maxMarks) + "]", "more than 262,144 values"},
		"a large one":    {strings.Repeat("#", maxDocument+1), "at most"},
		"letters turned": {"schema: " + Schema + "\nnotes: [\"a\\u202eb\"]", "turn the order"},
		"a list":         {"- a", "want names with values"},
	} {
		_, err := Read([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestTemplate wants the template to be sound as it is, and with its examples in use.
func TestTemplate(t *testing.T) {
	if _, err := Read(Template()); err != nil {
		t.Errorf("the template: %v", err)
	}
	text := string(Template())
	for _, empty := range []string{"sources: {}", "rows: []", "comparisons: []"} {
		text = strings.Replace(text, empty, strings.Fields(empty)[0], 1)
	}
	head, body, _ := strings.Cut(text, "sources:")
	body = strings.ReplaceAll(body, "\n#  ", "\n  ")
	text = head + "sources:" + body
	for from, to := range map[string]string{
		"#\n":                     "",
		"humaneval-of-the-parent": "humaneval-retry", "source: overview": "source: report, note: in the overview",
	} {
		text = strings.ReplaceAll(text, from, to)
	}
	d, err := Read([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(d.Rows) != 4 || len(d.Composites()) != 1 || len(d.Comparisons()) != 1 {
		t.Errorf("%d rows, %d composites, %d comparisons", len(d.Rows), len(d.Composites()), len(d.Comparisons()))
	}
}

// TestWilson holds the interval against its definition: at its ends, the share that was seen
// is z deviations away.
func TestWilson(t *testing.T) {
	for _, n := range []int64{1, 2, 20, 50, 164, 1319, 14042} {
		for k := int64(0); k <= n; k += 1 + n/50 {
			low, high := Wilson(k, n)
			seen := float64(k) / float64(n)
			for _, end := range []float64{low, high} {
				if end == 0 && k == 0 || end == 1 && k == n {
					continue
				}
				away := math.Abs(seen-end) / math.Sqrt(end*(1-end)/float64(n))
				if math.Abs(away-1.959964) > 1e-5 {
					t.Errorf("%d of %d: %v is %v deviations away", k, n, end, away)
				}
			}
			if low > seen || high < seen || low < 0 || high > 1 {
				t.Errorf("%d of %d: %v to %v", k, n, low, high)
			}
		}
	}
}

// TestComparisons says what two passes of one benchmark differ in, and what is open.
func TestComparisons(t *testing.T) {
	const text = `schema: ggufreap/evidence/v1
rows:
  - {id: pruned, workload: w, kind: measured, benchmark: B, pass: first, total: 2, correct: 1, subset_ids: [1, 2], failed_ids: [2], timed_out_ids: [], unpruned_control: full,
     temperature: 0, top_p: 1, thinking: none, output_tokens_cap: 512, timeout_seconds: 60, retry_policy: none, x: lossless}
  - {id: full, workload: w, kind: measured, benchmark: B, pass: first, total: 2, correct: 1, subset_ids: [2, 1], failed_ids: [2], timed_out_ids: [],
     temperature: 0, top_p: 1, thinking: none, output_tokens_cap: 512, timeout_seconds: 60, retry_policy: none}
`
	d, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Comparisons(); len(c) != 1 || c[0].Verdict() != "equal controls" || len(d.Warnings) != 0 {
		t.Errorf("comparisons %v, warnings %v", c, d.Warnings)
	}
	for _, c := range []struct{ from, to, want string }{
		{"temperature: 0,", "temperature: 0.6,", "unequal controls: temperature (0.6 [configured] / 0 [configured])"},
		{"output_tokens_cap: 512,", "output_tokens_cap: 1024,", "unequal controls: output_tokens_cap"},
		{"timeout_seconds: 60,", "timeout_seconds: 600,", "unequal controls: timeout_seconds"},
		{"retry_policy: none,", "retry_policy: twice,", "unequal controls: retry_policy"},
		{"subset_ids: [1, 2], failed_ids: [2]", "subset_ids: [1, 3], failed_ids: [3]", "unequal controls: subset_ids"},
		{"temperature: 0,", "", "not known to be equal: temperature (Not specified / 0 [configured])"},
	} {
		d, err := Read([]byte(strings.Replace(text, c.from, c.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Comparisons()[0].Verdict(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.to, got, c.want)
		}
		if len(d.Warnings) != 2 { // the control does not match, and so nothing shows the claim
			t.Errorf("%s: warnings %v", c.to, d.Warnings)
		}
	}
}

// TestClaims tells claims from their denial.
func TestClaims(t *testing.T) {
	for text, want := range map[string]string{
		"lossless": "lossless", "practically loss-less": "loss-less", "no quality loss": "no quality loss", "Equivalent to the parent": "Equivalent",
		"without any measurable degradation": "without any measurable degradation", "as good as the original": "as good as the original",
		"a routing proxy, not lossless": "", "this is not a lossless build": "", "never equivalent": "", "glossless": "", "loss of 3 %": "",
		"not tested; lossless": "lossless",
	} {
		if got := Claim(text); got != want {
			t.Errorf("%q claims %q, want %q", text, got, want)
		}
	}
}

// TestBareComposite warns of text that gives a composite without its history.
func TestBareComposite(t *testing.T) {
	for note, warn := range map[string]bool{"HumanEval 18 of 20": true, "18/20 on HumanEval": true, "18 out of 20": true,
		"14 of 20, after retries 18 of 20": false, "118 of 200": false} {
		d, err := read(t, "three-node-iq1s.yaml", "rows:\n", "notes: [\""+note+"\"]\nrows:\n")
		if err != nil {
			t.Fatal(err)
		}
		if (len(d.Warnings) == 1) != warn {
			t.Errorf("%q: warnings %v", note, d.Warnings)
		}
	}
}
