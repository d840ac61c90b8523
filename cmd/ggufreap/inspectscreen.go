package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// What the screen shows at most of a list that has no bound.
const (
	screenProblems   = 12
	screenProvenance = 12
	screenMissing    = 6
	screenTypes      = 100 // far more than there are
	screenTypeHints  = 6
)

// What the screen shows at most of a text that has no bound, in columns.
const (
	longTitle   = 200
	longProblem = 1000 // each of a problem's place and what it is
)

// noFirstShard is why nothing is known of a model's metadata.
const noFirstShard = "the first shard, which has the metadata, is missing or cannot be read"

// showInspection prints the screen.
func (con *console) showInspection(in *inspection) {
	con.showTitle(in)
	con.showSizes(in)
	con.showLayers(in)
	con.showText(in)
	con.showTypes(in)
	con.showKeep(in)
	con.showProvenance(in)
	con.showProblems(in)
}

func (con *console) showTitle(in *inspection) {
	title := safe(string(in.Name))
	if in.Title != "" && in.Title != in.Name {
		title += ": " + shortenTo(string(in.Title), longTitle)
	}
	con.paragraph(bold, abridge(title))
	architecture := abridge(architectureText(string(in.Architecture))) + ", "
	if in.noMetadata {
		architecture = "architecture not known: " + noFirstShard + "\n"
	}
	con.paragraph("", architecture+fmt.Sprintf("GGUF version %d, %s endian, alignment %s", in.Version, in.ByteOrder, alignmentText(in.Shards)))
	con.printf("\n")
}

func architectureText(name string) string {
	if name == "" {
		return "no architecture named"
	}
	return shorten(name)
}

// alignmentText gives the alignment, or the least and greatest of shards that differ.
func alignmentText(shards []shardInfo) string {
	least, greatest := shards[0].Alignment, shards[0].Alignment
	for _, s := range shards {
		least, greatest = min(least, s.Alignment), max(greatest, s.Alignment)
	}
	if least == greatest {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d, as shards differ", least, greatest)
}

func (con *console) showSizes(in *inspection) {
	con.field("files", "%s, %s", shardText(in), sizeText(in.FileBytes))
	con.showShards("missing", in.Missing)
	con.showShards("unreadable", in.Unreadable)
	con.field("tensors", "%s", tensorsText(in))
	if in.ParameterCount == 0 {
		return
	}
	con.field("parameters", "%s", parameterText(in.ParameterCount))
	x := in.Experts
	if x != nil && x.Parameters > 0 {
		con.field("", "%s in routed experts", parameterText(x.Parameters))
		if in.ActiveCount != nil {
			con.field("", "%s active for a token", parameterText(*in.ActiveCount))
		}
	}
	bits := fmt.Sprintf("%.2f bits a weight", in.BitsPerWeight.value)
	if x != nil && x.BitsPerWeight != nil {
		bits += fmt.Sprintf(", %.2f in routed experts", x.BitsPerWeight.value)
	}
	con.field("precision", "%s", bits)
}

// showShards names the shards that an artifact lacks, if any.
func (con *console) showShards(label string, shards []text) {
	if len(shards) == 0 {
		return
	}
	names := make([]string, len(shards))
	for i, name := range shards {
		names[i] = string(name)
	}
	con.styledField(red, label, nameList(names, screenMissing))
}

func tensorsText(in *inspection) string {
	n := grouped(in.TensorCount)
	switch {
	case in.statedTensors > uint64(in.TensorCount):
		n += " of " + grouped(in.statedTensors)
	case in.TensorCount == 0:
		return "none"
	}
	return n + ", " + sizeText(in.TensorBytes)
}

func shardText(in *inspection) string {
	if len(in.Shards) < in.ShardCount {
		return fmt.Sprintf("%s of %s", grouped(len(in.Shards)), count(in.ShardCount, "shard"))
	}
	return fileCount(in.ShardCount)
}

// parameterText writes a count as it is, and as people say it: "1.45 T".
func parameterText(n uint64) string {
	for _, u := range []unit{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}} {
		if n >= uint64(u.bytes) {
			return fmt.Sprintf("%s (%.2f %s)", grouped(n), float64(n)/float64(u.bytes), u.name)
		}
	}
	return grouped(n)
}

func (con *console) showLayers(in *inspection) {
	if in.Layers.Count > 0 {
		con.field("layers", "%s", layerText(in.Layers))
	}
	x := in.Experts
	if x == nil {
		return
	}
	con.field("experts", "%s", strings.Join(expertParts(x), ", "))
	if x.SlabBytes != nil {
		con.field("one expert", "%s in %s", sizeText(*x.SlabBytes), count(x.Layers, "layer"))
	}
}

// expertParts says how many experts there are and how they are used.
func expertParts(x *expertsInfo) []string {
	parts := []string{grouped(x.Count) + " a layer"}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if x.Used != nil {
		add("%s used for a token", grouped(*x.Used))
	} else {
		add("number used for a token not known")
	}
	if x.Shared != nil && *x.Shared > 0 {
		add("%s shared", grouped(*x.Shared))
	}
	if x.Groups != nil && *x.Groups > 1 {
		add("%s of %s groups used", grouped(*x.GroupsUsed), grouped(*x.Groups))
	}
	if x.Gating != nil {
		add("%s gating", *x.Gating)
	} else {
		add("gating not known")
	}
	return parts
}

func layerText(l layersInfo) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", grouped(n), what))
		}
	}
	dense := "dense"
	if slices.ContainsFunc(l.Kinds, func(k layerKind) bool { return k.Kind == feedForwardKind }) {
		dense = "without experts"
	}
	add(l.Dense, dense)
	add(l.MoE, "MoE")
	add(l.Draft, "draft")
	ffn := strings.Join(parts, ", ")
	parts = nil
	for _, k := range l.Kinds {
		add(k.Layers, k.Kind)
	}
	all := []string{grouped(l.Count)}
	for _, part := range []string{ffn, strings.Join(parts, ", ")} {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Replace(strings.Join(all, "; "), ";", ":", 1)
}

// showText prints what the metadata says of use: context, tokenizer, license.
func (con *console) showText(in *inspection) {
	if in.ContextLength != nil {
		con.field("context", "%s", count(*in.ContextLength, "token"))
	}
	if t := in.Tokenizer; t != nil {
		con.field("tokenizer", "%s", tokenizerText(t))
	}
	if in.License != nil {
		con.field("license", "%s", shorten(string(*in.License)))
	}
}

func tokenizerText(t *tokenizer) string {
	var names, parts []string
	for _, name := range []text{t.Model, t.Pre} {
		if name != "" {
			names = append(names, shorten(string(name)))
		}
	}
	if len(names) > 0 {
		parts = append(parts, strings.Join(names, " / "))
	}
	if t.Tokens > 0 {
		parts = append(parts, count(t.Tokens, "token"))
	}
	return strings.Join(parts, ", ")
}

func (con *console) showTypes(in *inspection) {
	if len(in.Types) == 0 {
		return
	}
	con.printf("\n")
	cols := []column{{"type", false}, {"tensors", true}, {"parameters", true}, {"bytes", true}, {"share", true}}
	con.table("", cols, func(yield func([]string) bool) {
		for _, t := range in.Types[:min(len(in.Types), screenTypes)] {
			share := 100 * float64(t.Bytes) / float64(max(in.TensorBytes, 1))
			if !yield([]string{t.Type, grouped(t.Tensors), grouped(t.Parameters), grouped(t.Bytes), fmt.Sprintf("%.1f %%", share)}) {
				return
			}
		}
	})
	con.showMore(len(in.Types)-screenTypes, "type")
}

func (con *console) showKeep(in *inspection) {
	if in.Experts == nil || len(in.Experts.Keep) == 0 {
		return
	}
	con.printf("\n")
	cols := []column{{"keep", true}, {"tensor bytes left", true}, {"", false}, {"saved", true}, {"preset", false}}
	keep := in.Experts.Keep
	if !slices.ContainsFunc(keep, func(k keepInfo) bool { return k.Preset != "" }) {
		cols = cols[:len(cols)-1]
	}
	con.table("", cols, func(yield func([]string) bool) {
		for _, k := range keep {
			saved := 100 * float64(k.SavedBytes) / float64(max(in.TensorBytes, 1))
			kept := fmt.Sprintf("%s of %s", grouped(k.Keep), grouped(in.Experts.Count))
			row := []string{kept, grouped(k.TensorBytes), roundedSize(k.TensorBytes), fmt.Sprintf("%.1f %%", saved), k.Preset}
			if !yield(row[:len(cols)]) {
				return
			}
		}
	})
}

func (con *console) showProvenance(in *inspection) {
	pairs := in.provenance()
	if len(pairs) == 0 {
		return
	}
	con.printf("\n")
	shown := pairs[:min(len(pairs), screenProvenance)]
	con.table("", []column{{"provenance", false}, {"", false}}, pairRows(shown))
	if more := len(pairs) - len(shown); more > 0 {
		con.printf("and %s more; --json lists them\n", count(more, "key"))
	}
}

func pairRows(pairs []pair) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, p := range pairs {
			if !yield([]string{shorten(p.key), value{p.Value}.short()}) {
				return
			}
		}
	}
}

// showProblems prints the problems, errors first.
func (con *console) showProblems(in *inspection) {
	errors, warnings := in.countProblems()
	con.printf("\n")
	if errors+warnings == 0 {
		con.field("problems", "none found")
		return
	}
	con.field("problems", "%s", problemCounts(errors, warnings))
	list := slices.Clone(in.Problems)
	slices.SortStableFunc(list, func(a, b problem) int { return severityRank(a) - severityRank(b) })
	for _, p := range list[:min(len(list), screenProblems)] {
		color := yellow
		if p.Severity == gguf.Error.String() {
			color = red
		}
		con.styledField(color, p.Severity, strings.TrimPrefix(shortenTo(p.Where, longProblem)+": "+shortenTo(p.What, longProblem), ": "))
	}
	if more := len(list) - screenProblems; more > 0 {
		con.field("", "and %s more; --json lists them", grouped(more))
	}
	if flags := in.typeFlags(); len(flags) > 0 {
		con.field("hint", "who knows the block size of a type can teach it: %s", nameList(flags, screenTypeHints))
	}
}

// typeFlags returns what would teach the types whose block size is not known. An id
// that one fork uses has that fork's.
func (in *inspection) typeFlags() []string {
	var flags []string
	for _, t := range in.Types {
		if t.Known {
			continue
		}
		size := "BYTES/ELEMENTS"
		if fork, ok := gguf.Type(t.ID).ForkInfo(); ok {
			size = fmt.Sprintf("%d/%d", fork.Bytes, fork.Elements)
		}
		flags = append(flags, fmt.Sprintf("--type %d=%s", t.ID, size))
	}
	return flags
}

// problemCounts writes the counts that are not 0.
func problemCounts(errors, warnings int) string {
	switch {
	case warnings == 0:
		return count(errors, "error")
	case errors == 0:
		return count(warnings, "warning")
	}
	return count(errors, "error") + ", " + count(warnings, "warning")
}

func severityRank(p problem) int {
	if p.Severity == gguf.Error.String() {
		return 0
	}
	return 1
}
