package card

import (
	"fmt"
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
)

// limits says what is not known, and what must not be read into the rest.
func (f *Facts) limits() string {
	return "## Limits\n\n- " + strings.Join(f.limitTexts(plain, code), "\n- ") + "\n"
}

// limitTexts are the limits, one a sentence or two; plain and code say how names stand in them.
func (f *Facts) limitTexts(plain, code func(string) string) []string {
	var list []string
	item := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if f.Plan != nil {
		item("%s", f.choiceLimit())
	}
	item("Quality beside the source: %s.", f.quality())
	limit, _ := f.Metadata.ArchUint("context_length")
	item("Context: the metadata states %s; greatest input that a row of evidence has: %s. A stated or configured limit is not a tested one.", context(limit), f.tested(plain))
	if label := f.Metadata.Text(reap.KeySizeLabel); f.Plan != nil && reap.StaleSizeLabel(label, f.Plan.KeepCount) {
		item("The metadata's size label, %s, is the source's: this model has %d experts in a layer.", code(label), f.Plan.KeepCount)
	}
	return list
}

// choiceLimit says what the way in which experts were chosen leaves open.
func (f *Facts) choiceLimit() string {
	info, _ := reap.FindCriterion(f.Plan.Criterion.Name)
	switch info.Evidence {
	case reap.Measured:
		return "Experts were chosen by what a text needed. What that text did not need may be gone."
	case reap.Proxy:
		return "Experts were chosen by a proxy from the weights alone: not measured, not lossless."
	case reap.Baseline:
		return "Experts were chosen by a baseline for comparisons: no evidence at all."
	}
	return fmt.Sprintf("How experts were chosen: %s.", notSpecified)
}

func context(tokens uint64) string {
	if tokens == 0 {
		return "none"
	}
	return text.Grouped(tokens) + " tokens"
}
