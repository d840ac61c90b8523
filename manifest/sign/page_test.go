package sign

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The example of the page has the fields of a statement, all and in their order.
func TestExampleOfThePage(t *testing.T) {
	page, err := os.ReadFile("PROVENANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	var s statement
	var p provenanceText
	read := func(text string, v any) {
		if err := json.Unmarshal([]byte(text), v, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
	}
	read(example, &s)
	read(string(s.Predicate), &p)
	s.Predicate, err = json.Marshal(p, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	want := jsontext.Value(example)
	if err := want.Compact(); err != nil || string(again) != string(want) {
		t.Errorf("%v; the example is written as\n%s\nwant\n%s", err, again, want)
	}
}
