package reap

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
)

// KeySizeLabel is the key whose value llama.cpp's converter counts from the tensors: "896x1B"
// has 896 experts, and 1 billion parameters beside the experts and in one of them.
const KeySizeLabel = "general.size_label"

// labelled tells the expert count at the beginning of a size label.
var labelled = pattern.Lazy(`^([0-9]{1,9})x[0-9.]+[KMBTkmbt]`)

// StaleSizeLabel reports whether a size label states another number of experts.
func StaleSizeLabel(label string, experts int) bool {
	match := labelled().FindStringSubmatch(label)
	if match == nil {
		return false
	}
	n, err := strconv.Atoi(match[1])
	return err == nil && n != experts
}

// SizeLabel returns the label of the model that keeps so many of a model's experts, as the
// converter counts it: of tensors named "_exps." one expert, of all others everything.
func SizeLabel(m *gguf.Model, e *Experts, keep int) string {
	routed := map[string]bool{}
	for _, t := range e.Tensors() {
		routed[t.Name] = t.Role != IDTable
	}
	var parameters float64
	for _, t := range m.Tensors() {
		n := float64(t.Elements())
		switch {
		case strings.Contains(t.Name, "_exps."):
			n /= float64(e.Count)
		case routed[t.Name]:
			n = n / float64(e.Count) * float64(keep)
		}
		parameters += n
	}
	return fmt.Sprintf("%dx%s", keep, rounded(parameters))
}

// rounded writes a number of parameters with at least two digits: 7.2B, 13B, 141B. It computes
// as the converter does, so that the last digit is the same.
func rounded(n float64) string {
	scaled, unit := n*1e-3, "K"
	switch {
	case n >= 1e12:
		scaled, unit = n*1e-12, "T"
	case n >= 1e9:
		scaled, unit = n*1e-9, "B"
	case n >= 1e6:
		scaled, unit = n*1e-6, "M"
	}
	digits := len(strings.TrimLeft(fmt.Sprintf("%.0f", scaled), "0"))
	return fmt.Sprintf("%.*f%s", max(2-digits, 0), scaled, unit)
}
