package picture

import (
	"fmt"
	"strings"
	"unicode"

	"ggufreap/gguf/words"
	"ggufreap/reap"
)

// visible replaces what does not show, or turns the order of letters, in a name from outside.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}

// Ties shows, layer by layer, how many experts the choice could not tell apart at the cut, and
// how many had no tokens.
func Ties(x *reap.Explanation) *Picture {
	p := &Picture{
		Name: "ties", Title: "Ties at the cut, and experts without tokens",
		About:   "Experts that rank exactly as the last one kept and fell on either side of the cut, and experts to which no token came. Of both the scores say nothing.",
		Columns: []string{"layer", "tied and kept", "tied and dropped", "without tokens", "without tokens and kept"},
	}
	var groups []barGroup
	for _, l := range x.Layers {
		groups = append(groups, barGroup{fmt.Sprint(l.Block), []float64{float64(l.TiesKept + l.TiesDropped), float64(max(l.NeverRouted, 0))},
			fmt.Sprintf("layer %d: %s tied and kept, %s tied and dropped, without tokens: %s", l.Block, words.Group(l.TiesKept), words.Group(l.TiesDropped), counted(l.NeverRouted))})
		p.Rows = append(p.Rows, []string{fmt.Sprint(l.Block), fmt.Sprint(l.TiesKept), fmt.Sprint(l.TiesDropped), counted(l.NeverRouted), counted(l.NeverRoutedKept)})
	}
	p.bars("layer", "experts", groups, "tied at the cut", "without tokens")
	return p
}

// counted writes a count that may not be known.
func counted(n int) string {
	if n < 0 {
		return "not counted"
	}
	return words.Group(n)
}

// A Part is a kind of bytes, before and after.
type Part struct {
	Name          string
	Before, After int64
}

// Bytes shows what a model's bytes are for, before pruning and after.
func Bytes(parts []Part) *Picture {
	p := &Picture{
		Name: "bytes", Title: "Bytes by kind, before and after",
		About:   "Tensor data. Pruning takes whole experts away, with their rows of the router and their biases; all other bytes stay as they are.",
		Columns: []string{"kind", "before, bytes", "after, bytes", "left"},
	}
	var groups []barGroup
	for _, x := range parts {
		left := "none"
		if x.Before > 0 {
			left = fmt.Sprintf("%.1f %%", 100*float64(x.After)/float64(x.Before))
		}
		name := visible(x.Name)
		groups = append(groups, barGroup{name, []float64{float64(x.Before), float64(x.After)},
			fmt.Sprintf("%s: %s bytes before, %s after", name, words.Group(x.Before), words.Group(x.After))})
		p.Rows = append(p.Rows, []string{name, words.Group(x.Before), words.Group(x.After), left})
	}
	p.bars("", "bytes", groups, "before", "after")
	return p
}

// A Share is a name with bytes.
type Share struct {
	Name  string
	Bytes int64
}

// Shards shows the sizes of files.
func Shards(list []Share) *Picture {
	return amountsOf(list, "shards", "Shards", "The size of each file, header included.", "shard", "file")
}

// Kinds shows what the bytes of one model are for.
func Kinds(list []Share) *Picture {
	return amountsOf(list, "kinds", "Bytes by kind", "Tensor data, without headers and padding.", "", "kind")
}

func amountsOf(list []Share, name, title, about, x, column string) *Picture {
	p := &Picture{Name: name, Title: title, About: about, Columns: []string{column, "bytes"}}
	var groups []barGroup
	for i, s := range list {
		label := visible(s.Name)
		if x != "" {
			label = fmt.Sprint(i + 1)
		}
		groups = append(groups, barGroup{label, []float64{float64(s.Bytes)}, fmt.Sprintf("%s: %s bytes", visible(s.Name), words.Group(s.Bytes))})
		p.Rows = append(p.Rows, []string{visible(s.Name), words.Group(s.Bytes)})
	}
	p.bars(x, "bytes", groups)
	return p
}

// A Half is how the choice by one kind of text agrees with that by all others.
type Half struct {
	Label     string
	Same      float64 // share of experts that both keep
	Retention float64 // share of the others' best score
}

// Halves shows how far a choice depends on the kind of text.
func Halves(list []Half, chance float64) *Picture {
	p := &Picture{
		Name: "halves", Title: "Each kind of text against all others",
		About:   fmt.Sprintf("How much of the choice stays the same, where blind choices would share %s, and how much of the score by the other texts it keeps.", percent(chance)),
		Columns: []string{"text", "same experts", "score retained"},
	}
	var groups []barGroup
	for _, h := range list {
		label := visible(h.Label)
		groups = append(groups, barGroup{label, []float64{h.Same, h.Retention}, fmt.Sprintf("%s: %s the same, %s of the score", label, percent(h.Same), percent(h.Retention))})
		p.Rows = append(p.Rows, []string{label, percent(h.Same), percent(h.Retention)})
	}
	p.bars("", "share", groups, "same experts", "score retained")
	return p
}
