package card

import (
	"fmt"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/evidence"
	"ggufreap/reap"
)

// Facts are what a card is made of.
type Facts struct {
	Pin       *manifest.Pin // of the release
	Metadata  *gguf.Metadata
	Plan      *reap.Plan    // nil when the release has none
	SourcePin *manifest.Pin // nil when there is none
	InFolder  bool          // the source's pin lies in the release
	Evidence  []Evidence

	Licenses    []string // identifiers of the hub
	LicenseName string   // of a license that has none
	LicenseLink string
	BaseModel   string // repository of the source, "" when nobody said
	Keys        []Key  // that sign the release
	Nodes       int    // machines that the second way to run it is for
}

// A Key signs releases: an SSH key by its fingerprint, an EC key by the SHA-256 of its PEM text.
type Key struct{ Kind, Name string }

// Evidence is a file of evidence that the card rests on.
type Evidence struct {
	Name   string // base name
	SHA256 manifest.Sum
	Data   []byte
	Inside bool // lies in the release, or is put in
	*evidence.Document
}

const notSpecified = evidence.NotSpecified

// Renew returns the card with the facts in it. text is the card as it is, "" for a new one.
// What stands outside of marked sections is left alone, to the byte.
func Renew(text string, f *Facts) (string, error) {
	crlf := strings.Contains(text, "\r\n")
	if crlf {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	matter, rest, err := front(text)
	if err != nil {
		return "", err
	}
	if matter, err = renewFront(matter, f.front()); err != nil {
		return "", err
	}
	if strings.TrimSpace(rest) == "" {
		rest = "\n# " + plain(f.Pin.Artifact.Name) + "\n"
	}
	if rest, err = renew(rest, f.sections()); err != nil {
		return "", err
	}
	text = rest
	if matter != "" {
		text = "---\n" + matter + "---\n" + rest
	}
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text, nil
}

// Open names what a card leaves open that a flag could say, with the flag.
func (f *Facts) Open() []string {
	var list []string
	if f.BaseModel == "" {
		list = append(list, "the source's repository (--base-model OWNER/NAME)")
	}
	if len(f.Licenses) == 0 {
		list = append(list, "the license (--license ID)")
	}
	return list
}

// A Difference is a place where a card does not fit its release.
type Difference struct {
	Section   string // "front matter" for that
	Card      string // the line that the card has, "" for none
	Should    string // the line that it should have, "" for none
	CardLine  int    // of the card, from 1
	LineCount int    // lines of the section that differ
}

// Check compares a card with the facts and returns every section that does not fit.
func Check(text string, f *Facts) ([]Difference, error) {
	want, err := Renew(text, f)
	if err != nil || want == text {
		return nil, err
	}
	var list []Difference
	oldMatter, oldRest, _ := front(text)
	newMatter, newRest, _ := front(want)
	if d, differs := lines(oldMatter, newMatter); differs {
		d.Section, d.CardLine = "front matter", d.CardLine+1
		list = append(list, d)
	}
	had, err := spans(oldRest)
	if err != nil {
		return nil, err
	}
	has, err := spans(newRest)
	if err != nil {
		return nil, err
	}
	above := strings.Count(text[:len(text)-len(oldRest)], "\n")
	for _, s := range f.sections() {
		before, after := had[s.name], has[s.name]
		if d, differs := lines(oldRest[before.from:before.to], newRest[after.from:after.to]); differs {
			d.Section = s.name
			d.CardLine += above + strings.Count(oldRest[:before.from], "\n")
			list = append(list, d)
		}
	}
	if list == nil {
		list = append(list, Difference{Section: "layout", Card: "line ends or order", Should: "as this program writes them"})
	}
	return list, nil
}

// lines returns the first line in which two texts differ.
func lines(have, want string) (d Difference, differs bool) {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x == y {
			continue
		}
		if !differs {
			d, differs = Difference{Card: x, Should: y, CardLine: i + 1}, true
		}
		d.LineCount++
	}
	return d, differs
}

// front are the fields of the front matter. base_model_relation has no word for a model with
// fewer experts, so it is left to people; library_name has none for GGUF.
func (f *Facts) front() []frontField {
	fields := []frontField{{key: "base_model", values: some(f.BaseModel)}, {key: "license", values: f.Licenses},
		{key: "license_name", values: some(f.LicenseName)}, {key: "license_link", values: some(f.LicenseLink)}}
	tags := []string{"gguf"}
	if f.Plan != nil {
		tags = append(tags, "moe", "pruning", "expert-pruning")
		if f.Plan.Criterion.Name == reap.ReapMean || f.Plan.Criterion.Name == reap.ReapSum {
			tags = append(tags, "reap", "arxiv:2510.13999")
		}
	}
	return append(fields, frontField{key: "tags", values: tags, list: true})
}

func some(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func orNot(s string) string {
	if s == "" {
		return notSpecified
	}
	return s
}

func said(s *string) string {
	if s == nil {
		return notSpecified
	}
	return *s
}

// experts says how many are kept.
func (f *Facts) experts() string {
	return fmt.Sprintf("%d of %d routed experts in each of %d layers", f.Plan.KeepCount, f.Plan.NumExperts, len(f.Plan.Layers))
}
