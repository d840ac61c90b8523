package evidence

import (
	"fmt"
	"strings"
)

// A Table is a part of the document for people: every cell says something.
type Table struct {
	Title   string
	About   string // a sentence under the title, "" for none
	Columns []string
	Rows    [][]string
}

// shown returns what a table says of a field: the value, with how it is known where that is
// not how the row is known, and all statements where several differ.
func (r *Row) shown(name string) string {
	v := r.Value(name)
	if v == nil || len(v.Statements) == 0 {
		return NotSpecified
	}
	parts := make([]string, len(v.Statements))
	for i, s := range v.Statements {
		parts[i] = s.shown(r.Kind, r.Source)
	}
	return strings.Join(parts, "; ")
}

// shown returns the statement, with its kind unless that is the one given.
func (s Statement) shown(kind Kind, source string) string {
	var b strings.Builder
	switch {
	case s.IDs != nil:
		b.WriteString(idList(s.IDs))
	case s.Text == "":
		fmt.Fprintf(&b, "%q as labelled", s.Label)
	default:
		b.WriteString(s.Text)
		if s.Label != "" {
			fmt.Fprintf(&b, " (%q)", s.Label)
		}
	}
	if s.Spread != "" {
		b.WriteString(" " + s.Spread)
	}
	if s.Method != "" {
		b.WriteString(", method: " + s.Method)
	}
	if s.Note != "" {
		b.WriteString(", " + s.Note)
	}
	if s.Kind != kind || s.Source != source {
		fmt.Fprintf(&b, " [%s]", s.Kind.words(s.Source))
	}
	return b.String()
}

// shownIDs is how many ids are written out.
const shownIDs = 40

func idList(list []string) string {
	switch {
	case len(list) == 0:
		return "none"
	case len(list) > shownIDs:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shownIDs], ", "), len(list)-shownIDs)
	}
	return strings.Join(list, ", ")
}

// known returns how the results of the row are known.
func (r *Row) known() string {
	if len(r.Imported) > 0 {
		return fmt.Sprintf("%s, from %s", r.Kind.words(r.Source), r.Imported[0].Tool)
	}
	return r.Kind.words(r.Source)
}

// Tables returns everything that the document says, for any way to show it.
func (d *Document) Tables() []Table {
	if d.Blank() {
		return nil
	}
	var list []Table
	add := func(t Table) {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	add(d.scores())
	for _, rate := range rates {
		for _, t := range d.rateTables(rate) {
			add(t)
		}
	}
	add(d.others())
	add(d.comparisons())
	add(d.contexts())
	for _, t := range d.conditions() {
		add(t)
	}
	add(d.imports())
	add(d.sources())
	return list
}

func (d *Document) scores() Table {
	t := Table{
		Title:   "Scores",
		About:   "The interval is Wilson's at 95 %, as if the items had been drawn at random from all of the benchmark.",
		Columns: []string{"row", "benchmark", "pass", "correct", "share", "interval", "subset", "failed", "timed out", "known"},
	}
	for _, r := range d.Rows {
		if !r.scored() {
			continue
		}
		total, _ := r.number("total")
		correct, _ := r.number("correct")
		share, interval := shareText(correct, total)
		pass := r.word("pass")
		if r.first != nil {
			pass = "retry of " + r.first.ID
		}
		t.Rows = append(t.Rows, []string{r.ID, r.shown("benchmark"), pass, fmt.Sprintf("%d of %d", correct, total), share, interval,
			r.subset(), r.shown("failed_ids"), r.shown("timed_out_ids"), r.known()})
	}
	for _, c := range d.Composites() {
		t.About += " " + c.String() + "."
	}
	return t
}

// subset says which items a pass was of. One that was not drawn is called fixed.
func (r *Row) subset() string {
	said, ids := r.shown("subset"), r.shown("subset_ids")
	switch {
	case said == "all" || strings.HasPrefix(said, "random"):
		return said
	case said != NotSpecified:
		return "fixed subset: " + strings.TrimPrefix(said, "fixed subset: ")
	case ids != NotSpecified:
		return "fixed subset: items " + ids
	}
	return NotSpecified
}

// A rate is a result that has a table of its own.
type rate struct{ field, title string }

var rates = []rate{
	{"prefill_tokens_per_second", "Prefill, tokens per second"},
	{"decode_tokens_per_second", "Decode, tokens per second"},
	{"prompt_and_generation_tokens_per_second", "Prompt and generation in one rate, tokens per second"},
	{"ttft_seconds", "Time to the first token, seconds"},
}

// rateTables returns the tables of one rate: cold, warm, and of unknown cache state.
func (d *Document) rateTables(rate rate) []Table {
	var list []Table
	for _, state := range []string{"cold", "warm", ""} {
		t := Table{Title: rate.title + ", " + cacheTitle(state),
			Columns: []string{"row", "workload", "result", "input tokens", "output tokens", "concurrency", "repetitions", "known"}}
		for _, r := range d.Rows {
			if r.said(rate.field) && r.word("cache_state") == state {
				t.Rows = append(t.Rows, []string{r.ID, r.Workload, r.shown(rate.field), r.shown("input_tokens"), r.shown("actual_output_tokens"),
					r.shown("concurrency"), r.shown("repetitions"), r.known()})
			}
		}
		list = append(list, t)
	}
	return list
}

func cacheTitle(state string) string {
	switch state {
	case "cold":
		return "nothing cached"
	case "warm":
		return "prefix cached"
	}
	return "cache state not specified"
}

// others are results that are told one by one.
func (d *Document) others() Table {
	t := Table{Title: "Memory and divergence", Columns: []string{"row", "workload", "what", "result", "known"}}
	for _, name := range []string{"peak_runtime_RAM", "occupied_RAM", "perplexity", "kl_divergence_mean", "same_top_token_percent"} {
		for _, r := range d.Rows {
			if r.said(name) {
				t.Rows = append(t.Rows, []string{r.ID, r.Workload, name, r.shown(name), r.known()})
			}
		}
	}
	return t
}

func (d *Document) comparisons() Table {
	t := Table{Title: "Comparisons", Columns: []string{"rows", "controls", "claim"}}
	for _, c := range d.Comparisons() {
		said := c.Said
		if said == "" {
			said = "none"
		}
		t.Rows = append(t.Rows, []string{c.A.ID + " and " + c.B.ID, c.Verdict(), said})
	}
	return t
}

// contexts sets what was configured beside what was tested.
func (d *Document) contexts() Table {
	t := Table{Title: "Context", About: "A configured limit is not a tested one: a context counts as tested by a row with that many input tokens.",
		Columns: []string{"what", "tokens", "known"}}
	tested := []string{"greatest tested input", NotSpecified, NotSpecified}
	if r, n := d.TestedContext(); r != nil {
		s, _ := r.one("input_tokens")
		tested = []string{tested[0], fmt.Sprintf("%s in row %s", s.Text, r.ID), r.Kind.words(r.Source)}
		_ = n
	}
	t.Rows = append(t.Rows, tested)
	seen := map[string]bool{}
	for _, f := range d.facts() {
		v := f.Values["context_limit_tokens"]
		for i := 0; v != nil && i < len(v.Statements); i++ {
			s := v.Statements[i]
			row := []string{"configured limit", s.shown(s.Kind, s.Source), s.Kind.words(s.Source)}
			if key := strings.Join(row, "\x00"); !seen[key] {
				seen[key] = true
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}

// facts returns those of setups and rows.
func (d *Document) facts() []Facts {
	var list []Facts
	for _, s := range d.Setups {
		list = append(list, s.Facts)
	}
	for _, r := range d.Rows {
		list = append(list, r.Facts)
	}
	return list
}

func (d *Document) imports() Table {
	t := Table{Title: "Imported files", Columns: []string{"row", "tool", "file", "sha256"}}
	for _, r := range d.Rows {
		for _, i := range r.Imported {
			t.Rows = append(t.Rows, []string{r.ID, i.Tool, i.File, i.SHA256})
		}
	}
	return t
}

func (d *Document) sources() Table {
	t := Table{Title: "Sources", Columns: []string{"source", "title", "address", "document read", "read on"}}
	for _, s := range d.Sources {
		t.Rows = append(t.Rows, []string{s.Name, orNot(s.Title), orNot(s.Address), s.Pinned(), orNot(s.ReadOn)})
	}
	return t
}

func orNot(s string) string {
	if s == "" {
		return NotSpecified
	}
	return s
}
