package reap_test

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/reap"
)

var update = flag.Bool("update", false, "rewrite ARCHITECTURES.md")

//go:embed ARCHITECTURES.md
var architecturesPage []byte

// architecturesTable stands between these lines of the page.
const (
	tableBegin = "<!-- table -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// TestArchitecturesPage compares the table for people with the cases that llama.cpp judges.
func TestArchitecturesPage(t *testing.T) {
	before, rest, begun := bytes.Cut(architecturesPage, []byte(tableBegin))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !begun || !ended {
		t.Fatal("ARCHITECTURES.md has no table")
	}
	page := slices.Concat(before, []byte(tableBegin), []byte(architecturesTable(t)), []byte(tableEnd), after)
	var undivided []string
	for _, c := range archCases() {
		if c.routing == softmaxAll && c.variant == "" {
			undivided = append(undivided, c.arch)
		}
	}
	words := strings.Join(strings.Fields(string(page)), " ")
	if list := strings.Join(undivided, ", "); !strings.Contains(words, "("+list+", and deepseek2") {
		t.Errorf("ARCHITECTURES.md does not say that weights grow in %s", list)
	}
	if *update {
		if err := os.WriteFile("ARCHITECTURES.md", page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, architecturesPage) {
		t.Error("the table of ARCHITECTURES.md is not that of the cases: go test -run TestArchitecturesPage -update")
	}
}

// TestStandings holds the lists of architectures against the rows that llama.cpp judges and
// against the page.
func TestStandings(t *testing.T) {
	rows := map[string]bool{}
	for _, c := range archCases() {
		rows[c.arch] = true
		if got := reap.StandingOf(c.arch); got != reap.Judged {
			t.Errorf("%s has a row and is said to be %s", c.arch, got)
		}
	}
	_, list, found := strings.Cut(string(architecturesPage), "## Known by name only\n\n")
	if !found {
		t.Fatal("the page has no such heading")
	}
	list, _, _ = strings.Cut(list, " have no row")
	for _, name := range strings.Fields(strings.NewReplacer(",", "", " and", "").Replace(list)) {
		if got := reap.StandingOf(name); got != reap.KnownByName {
			t.Errorf("the page knows %s by name, and it is said to be %s", name, got)
		}
	}
	if len(rows) != reap.JudgedCount() || !strings.Contains(list, "jina-bert-v3") {
		t.Errorf("%d architectures have rows, %d are said to be judged", len(rows), reap.JudgedCount())
	}
	if got := reap.StandingOf("never-heard-of"); got != reap.NotJudged {
		t.Errorf("an unknown one is said to be %s", got)
	}
}

func architecturesTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| model | follows the keep list | order | pruned |\n| --- | --- | --- | --- |\n")
	types := map[string][]string{}
	for _, c := range archCases() {
		if typ := c.options.Projections; typ != gguf.F32 {
			types[c.arch] = append(types[c.arch], typ.String())
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name(), c.follows(t), c.order(), c.method())
	}
	b.WriteString("\nThe same with routed projections in block types: ")
	var list []string
	for arch, names := range types {
		list = append(list, fmt.Sprintf("%s (%s)", arch, strings.Join(names, ", ")))
	}
	slices.Sort(list)
	b.WriteString(strings.Join(list, "; ") + ".\n\n")
	return b.String()
}

// roleWords name roles for people, in the order of the table.
var roleWords = []struct {
	word  string
	roles []reap.Role
}{
	{"gate", []reap.Role{reap.GateProjection}},
	{"up", []reap.Role{reap.UpProjection}},
	{"gate_up", []reap.Role{reap.GateUpProjection}},
	{"down", []reap.Role{reap.DownProjection}},
	{"their biases", []reap.Role{"ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias"}},
	{"their scales", []reap.Role{"ffn_gate_exps.scale", "ffn_up_exps.scale", "ffn_down_exps.scale"}},
	{"their input scales", []reap.Role{"ffn_gate_exps.input_scale", "ffn_up_exps.input_scale", "ffn_down_exps.input_scale"}},
	{"router", []reap.Role{reap.Router}},
	{"router bias", []reap.Role{reap.RouterBias}},
	{"selection bias", []reap.Role{reap.SelectionBias}},
	{"id table", []reap.Role{reap.IDTable}},
}

// follows names the tensors of a model that follow the keep list. What the engine does not
// read stands in brackets.
func (c archCase) follows(t *testing.T) string {
	t.Helper()
	if c.refused != "" {
		return ""
	}
	model, err := c.spec(t).Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	experts, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	present := map[reap.Role]bool{}
	draft := false
	for layer, tensor := range experts.Tensors() {
		present[tensor.Role] = true
		draft = draft || layer.Draft
	}
	var words []string
	for _, w := range roleWords {
		if !slices.ContainsFunc(w.roles, func(r reap.Role) bool { return present[r] }) {
			continue
		}
		for _, r := range w.roles {
			delete(present, r)
		}
		if c.reads(w.roles[0]) {
			words = append(words, w.word)
		} else {
			words = append(words, "["+w.word+"]")
		}
	}
	if len(present) > 0 {
		t.Errorf("%s: no words for %v", c.name(), present)
	}
	if draft {
		words = append(words, "[all of the draft layer]")
	}
	return strings.Join(words, ", ")
}

// order names how another order of all experts is judged.
func (c archCase) order() string {
	switch {
	case c.refused != "":
		return ""
	case c.unread:
		return "bytes"
	case c.softmax:
		return "bits, in blocks"
	}
	return "bits"
}
