package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
)

// What free text claims only with an unpruned control under the same conditions.
var claims = pattern.Lazy(`(?i)\b(loss[- ]?less(ly)?|equivalent(ly)?|no (quality |accuracy |measurable |noticeable )?(loss|degradation)|without (any |quality |measurable |noticeable )*(loss|degradation)|(zero|negligible)[- ](quality |accuracy |measurable )?(loss|degradation|drop)|loss[- ]free|(identical|same|equal) (quality|accuracy|performance)|on par with|indistinguishable|(no|without( any)?|zero) (\w+ )?(drop|decline|penalty)|as good as the (original|full|parent|source)|match(es|ed|ing)? (the )?(quality|accuracy|performance|original|full|parent|source|unpruned)( model)?)\b`)

// denied finds the words before a claim that turn it around.
var denied = pattern.Lazy(`(?i)\b(not|never|no|neither|nor|isn't|aren't|cannot|can't|n't)\b[^.;:,]{0,24}$`)

// Claim returns the first claim that a text makes of being as good as what it came from, ""
// when it makes none.
func Claim(text string) string {
	for _, at := range claims().FindAllStringIndex(text, -1) {
		if !denied().MatchString(text[:at[0]]) {
			return text[at[0]:at[1]]
		}
	}
	return ""
}

// checkClaims warns of texts that claim more than the rows show.
func (d *Document) checkClaims() {
	d.composites = d.Composites()
	for _, n := range d.Notes {
		d.checkText(n.Line, "a note", n.Text, d.Controlled())
	}
	for _, p := range d.Pairs {
		a, b := d.row(p.A), d.row(p.B)
		equal := a != nil && b != nil && compare(a, b).Equal() && (a.word("unpruned_control") == b.ID || b.word("unpruned_control") == a.ID)
		d.checkText(p.Line, "the claim", p.Said, equal)
	}
	for _, s := range d.Setups {
		d.checkFacts("setup "+s.Name, s.Facts, false)
	}
	for _, r := range d.Rows {
		d.checkText(r.Line, "row "+r.ID, r.Workload, d.matched(r))
		d.checkFirst(r)
		d.checkMeans(r)
		d.checkFacts("row "+r.ID, r.Facts, d.matched(r))
	}
}

// retriedWords are what no first pass can say of itself.
var retriedWords = pattern.Lazy(`(?i)\b(composite|combined|cumulative|after (the )?retr(y|ies)|with retr(y|ies)|incl(\.|uding) retr(y|ies)|best of \d+|final score)\b`)

// checkFirst warns of a first pass whose own words say that it is more than one.
func (d *Document) checkFirst(r *Row) {
	if r.word("pass") != "first" {
		return
	}
	for _, text := range r.words("benchmark", "subset", "correct") {
		if said := retriedWords().FindString(text); said != "" {
			d.Warnings.add(r.Line, "row %q is a first pass and says %q: a pass is entered with what it had at first, what retries added is a row of its own", r.ID, said)
			return
		}
	}
}

var (
	meanWords = pattern.Lazy(`(?i)\b(average|avg|mean|median)( rate)? (of|over|across)\b`)
	kindWords = pattern.Lazy(`(?i)\b(cold|warm|cached|uncached|prefill|decode|prompt|generation|contexts?|lengths?|[0-9]+k|prompts of)\b`)
	lookWords = pattern.Lazy(`(?i)\b(free|top|htop|btop|nvtop|nvidia-smi|rocm-smi|ps|snapshot|after load(ing)?|at start(up)?|when idle)\b`)
)

// checkMeans warns of results that are made of others, and of a peak that was looked at once.
func (d *Document) checkMeans(r *Row) {
	for _, f := range fields {
		s, ok := r.one(f.name)
		if !ok || f.part != result {
			continue
		}
		for _, text := range []string{s.Note, s.Method, r.Workload} {
			if meanWords().MatchString(text) && len(kindWords().FindAllString(text, 2)) > 1 {
				d.Warnings.add(s.Line, "row %q: %s is %q: what was measured under different conditions is not averaged, give each its own row", r.ID, f.name, text)
			}
		}
		if said := lookWords().FindString(s.Method); f.name == "peak_runtime_RAM" && said != "" {
			d.Warnings.add(s.Line, "row %q: peak_runtime_RAM by %q is memory held at some time, which is occupied_RAM, unless it was sampled all along", r.ID, s.Method)
		}
	}
}

// words returns the workload and what is said of some fields.
func (r *Row) words(names ...string) []string {
	list := []string{r.ID, r.Workload}
	for _, name := range names {
		s, _ := r.one(name)
		list = append(list, s.Text, s.Note, s.Method)
	}
	return list
}

// Controlled reports whether some row has an unpruned control under the same conditions.
func (d *Document) Controlled() bool {
	for _, r := range d.Rows {
		if d.matched(r) {
			return true
		}
	}
	return false
}

func (d *Document) checkFacts(what string, f Facts, matched bool) {
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		for _, s := range f.Values[name].Statements {
			for _, text := range []string{s.Text, s.Note, s.Method, s.Label} {
				d.checkText(s.Line, what+": "+name, text, matched)
			}
		}
	}
}

func (d *Document) checkText(line int, what, text string, matched bool) {
	if claim := Claim(text); claim != "" && !matched {
		d.Warnings.add(line, "%s says %q, and no unpruned control under the same conditions shows it (unpruned_control)", what, claim)
	}
	for _, c := range d.composites {
		if c.bare(text) {
			d.Warnings.add(line, "%s gives %d of %d without its history: %s", what, c.Correct, c.Total, c)
		}
	}
}

var ofTotal = pattern.Lazy(`\b([0-9][0-9,]*)\s*(?:of|/|out of)\s*([0-9][0-9,]*)\b`)

// bare reports whether a text gives the numbers of the composite and nothing of how they came
// about.
func (c Composite) bare(text string) bool {
	if first, _ := c.First.number("correct"); first == c.Correct || strings.Contains(strings.ToLower(text), "retr") {
		return false
	}
	for _, m := range ofTotal().FindAllStringSubmatch(text, -1) {
		if m[1] == words.Group(c.Correct) && m[2] == words.Group(c.Total) || fmt.Sprint(c.Correct, "/", c.Total) == m[1]+"/"+m[2] {
			return true
		}
	}
	return false
}
