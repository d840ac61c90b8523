package card

import (
	"fmt"
	"math"
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// sections are the parts of a card that are made from facts, in their order.
func (f *Facts) sections() []section {
	return []section{
		{"summary", f.summary()},
		{"sizes", f.sizes()},
		{"lineage", f.lineage()},
		{"check", f.check()},
		{"evidence", f.evidence()},
		{"limits", f.limits()},
		{"run", f.run()},
		{"license", f.license()},
	}
}

// summary says what the release is, what it keeps, and what is unchanged.
func (f *Facts) summary() string {
	var b strings.Builder
	a := f.Pin.Artifact
	if f.Plan == nil {
		fmt.Fprintf(&b, "A model in GGUF form, %s, in %s. How it was made: %s.\n", code(a.Architecture), text.Files(a.Shards), notSpecified)
		return b.String()
	}
	fmt.Fprintf(&b, "%s with %s. The bytes that are kept are those of the source: nothing was dequantized, encoded again or trained.\n\n",
		code(orNot(f.Plan.Source.Name)), f.experts())
	t := newTable("", "")
	t.row("architecture", code(a.Architecture))
	t.row("experts kept", f.experts())
	t.row("experts dropped", fmt.Sprintf("%d in each of these layers", f.Plan.NumExperts-f.Plan.KeepCount))
	t.row("criterion", plain(criterion(f.Plan.Criterion)))
	t.row("measured on", f.corpus())
	t.row("score of the kept experts", f.coverage())
	t.row("unchanged", f.unchanged())
	b.WriteString(t.String())
	return b.String()
}

// criterion says how experts were ranked, and what that is worth.
func criterion(c reap.Criterion) string {
	info, known := reap.FindCriterion(c.Name)
	switch {
	case c.Name == reap.Given:
		return "lists of another tool; how they were made: " + notSpecified
	case !known:
		return c.Name + "; what it is worth: " + notSpecified
	}
	return fmt.Sprintf("%s (%s): %s", c.Name, info.Meaning, info.Honesty())
}

// corpus names the files that scores were read from.
func (f *Facts) corpus() string {
	if f.Plan.Criterion.Evidence != reap.Measured {
		return "nothing: no text was run"
	}
	var files []string
	for _, in := range f.Plan.Criterion.Inputs {
		files = append(files, fmt.Sprintf("scores in %s, sha256 %s", code(in.File), code(in.SHA256)))
	}
	if files == nil {
		files = []string{notSpecified}
	}
	return f.texts() + "; " + strings.Join(files, "; ")
}

// texts says on what text scores were measured, as far as the score file told the plan.
func (f *Facts) texts() string {
	c := f.Plan.Coverage
	if c == nil || c.Tokens == 0 && len(c.Texts) == 0 {
		return "text: " + notSpecified
	}
	tokens := func(n int) string {
		if n == 0 {
			return "tokens: " + notSpecified
		}
		return text.Count(n, "token")
	}
	said := tokens(c.Tokens)
	var kinds []string
	for _, t := range c.Texts {
		kinds = append(kinds, plain(t.Label)+" ("+tokens(t.Tokens)+")")
	}
	if kinds != nil {
		said += " of " + strings.Join(kinds, ", ")
	}
	return said
}

// coverage says which part of the measured score is kept.
func (f *Facts) coverage() string {
	c := f.Plan.Coverage
	if c == nil {
		return notSpecified
	}
	said := fmt.Sprintf("%s of a layer's on average, %s in the worst layer, %d", share(c.Kept), share(c.Worst), c.WorstLayer)
	if c.NeverRouted < 0 {
		return said + "; experts without tokens: " + notSpecified
	}
	return said + fmt.Sprintf("; of %s without tokens in all layers, %s kept", text.Count(c.NeverRouted, "expert"), text.Grouped(c.NeverRoutedKept))
}

// share writes a part of a whole in percent, cut down: only a whole is 100 %.
func share(x float64) string { return fmt.Sprintf("%.2f %%", math.Floor(x*1e4)/100) }

// unchanged counts the tensors that have the source's bytes as a whole.
func (f *Facts) unchanged() string {
	same, whole := 0, 0
	for _, t := range f.Pin.Tensors {
		if t.Slabs == nil {
			same++
		} else {
			whole++
		}
	}
	return fmt.Sprintf("%s as they are; %s hold the kept experts' bytes, rows and numbers, each as it is in the source", text.Count(same, "tensor"), text.Count(whole, "other"))
}

func (f *Facts) sizes() string {
	a := f.Pin.Artifact
	var b strings.Builder
	b.WriteString("## Files\n\n")
	t := newTable("", "")
	t.row("files", fmt.Sprintf("%s, %s", text.Files(a.Shards), text.Size(a.FileBytes)))
	t.row("tensor data", text.Size(a.TensorBytes))
	if f.SourcePin != nil {
		t.row("files of the source", fmt.Sprintf("%s, %s", text.Files(f.SourcePin.Artifact.Shards), text.Size(f.SourcePin.Artifact.FileBytes)))
	}
	b.WriteString(t.String() + "\n")
	t = newTable("file", "bytes", "sha256")
	for _, file := range f.Pin.Files {
		t.row(code(file.Name), text.Grouped(file.Size), code(file.SHA256.String()))
	}
	b.WriteString(t.String())
	return b.String()
}

// lineage says what it was made from, and how that is pinned.
func (f *Facts) lineage() string {
	var b strings.Builder
	b.WriteString("## What it is made from\n\n")
	t := newTable("", "this release", "its source")
	source := func(say func(p *manifest.Pin) string) string {
		if f.SourcePin == nil {
			return notSpecified
		}
		return say(f.SourcePin)
	}
	t.row("name", code(f.Pin.Artifact.Name), f.sourceName())
	t.row("repository", plain(said(f.Pin.Declared.Repo)), plain(orNot(f.BaseModel)))
	t.row("revision", plain(said(f.Pin.Declared.Revision)), source(func(p *manifest.Pin) string { return plain(said(p.Declared.Revision)) }))
	t.row("pin digest", code(f.Pin.PinDigest.String()), f.sourceDigest(reap.KeySourcePin, source(func(p *manifest.Pin) string { return code(p.PinDigest.String()) })))
	t.row("weights digest", code(f.Pin.WeightsDigest.String()), f.sourceDigest(reap.KeySourceWeights, source(func(p *manifest.Pin) string { return code(p.WeightsDigest.String()) })))
	b.WriteString(t.String())
	return b.String()
}

func (f *Facts) sourceName() string {
	if f.Plan == nil {
		return notSpecified
	}
	return code(orNot(f.Plan.Source.Name))
}

// sourceDigest is that of the source's pin, else what the release itself states.
func (f *Facts) sourceDigest(key, pinned string) string {
	if pinned != notSpecified {
		return pinned
	}
	if stated := f.Metadata.Text(key); stated != "" {
		return code(stated) + " (stated in the metadata)"
	}
	return notSpecified
}

func (f *Facts) check() string {
	verify := "ggufreap verify ."
	if f.SourcePin != nil && !f.InFolder {
		verify = "ggufreap verify --source-pin SOURCE.pin.json.zst ."
	}
	return "## How to check it\n\nIn the folder of the download:\n\n" +
		block("sha256sum -c MANIFEST.sha256", verify, "ggufreap pin --check "+manifest.PinName+" .") +
		"\nA list of sums shows damage, not forgery: compare the pin digest with one that came to you another way.\n" + f.signers()
}

// signers names the keys that sign the release, for those who know them from elsewhere.
func (f *Facts) signers() string {
	if len(f.Keys) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, k := range f.Keys {
		fmt.Fprintf(&b, "Signed with the %s key %s.\n", k.Kind, code(k.Name))
	}
	b.WriteString("Whose key that is, this page cannot tell: ask where you know its owner from.\n")
	return b.String()
}

// license names who made what this is made of.
func (f *Facts) license() string {
	var b strings.Builder
	b.WriteString("## Attribution and license\n\n")
	t := newTable("", "")
	t.row("license", plain(orNot(strings.Join(f.Licenses, ", "))))
	if f.LicenseName != "" || f.LicenseLink != "" {
		t.row("its name and text", plain(orNot(f.LicenseName))+", "+plain(orNot(f.LicenseLink)))
	}
	t.row("source", plain(orNot(f.BaseModel)))
	for _, key := range []string{"general.author", "general.organization", "general.quantized_by"} {
		t.row(strings.ReplaceAll(strings.TrimPrefix(key, "general."), "_", " ")+", as the metadata states", plain(orNot(f.Metadata.Text(key))))
	}
	t.row("method", "REAP pruning, arXiv 2510.13999, as far as the criterion above is that of the paper")
	b.WriteString(t.String())
	b.WriteString("\nCard, plan, pin and sums were written by ggufreap.\n")
	return b.String()
}
