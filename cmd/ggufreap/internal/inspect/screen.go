package inspect

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/metadata"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
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
	LongTitle   = 200
	longProblem = 1000 // each of a problem's place and what it is
)

// noFirstShard is why nothing is known of a model's metadata.
const noFirstShard = "the first shard, which has the metadata, is missing or cannot be read"

// Show prints the screen.
func Show(con *ui.Console, in *Inspection) {
	showTitle(con, in)
	showSizes(con, in)
	showLayers(con, in)
	showText(con, in)
	showTypes(con, in)
	showKeep(con, in)
	showProvenance(con, in)
	showProblems(con, in)
}

func showTitle(con *ui.Console, in *Inspection) {
	title := text.Safe(string(in.Name))
	if in.Title != "" && in.Title != in.Name {
		title += ": " + text.ShortenTo(string(in.Title), LongTitle)
	}
	con.Paragraph(ui.Bold, text.Abridge(title))
	architecture := text.Abridge(text.Architecture(string(in.Architecture))) + ", "
	if in.noMetadata {
		architecture = "architecture not known: " + noFirstShard + "\n"
	}
	con.Paragraph("", architecture+fmt.Sprintf("GGUF version %d, %s endian, alignment %s", in.Version, in.ByteOrder, alignmentText(in.Shards)))
	con.Printf("\n")
	if in.Kind != "" {
		con.Field("kind", "%s", kindMeanings[in.Kind])
	}
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

func showSizes(con *ui.Console, in *Inspection) {
	con.Field("files", "%s, %s", shardText(in), text.Size(in.FileBytes))
	showShards(con, "missing", in.Missing)
	showShards(con, "unreadable", in.Unreadable)
	con.Field("tensors", "%s", tensorsText(in))
	if in.ParameterCount == 0 {
		return
	}
	con.Field("parameters", "%s", parameterText(in.ParameterCount))
	x := in.Experts
	if x != nil && x.Parameters > 0 {
		con.Field("", "%s in routed experts", parameterText(x.Parameters))
		if in.ActiveCount != nil {
			con.Field("", "%s active for a token", parameterText(*in.ActiveCount))
		}
	}
	bits := fmt.Sprintf("%.2f bits a weight", in.BitsPerWeight.Value)
	if x != nil && x.BitsPerWeight != nil {
		bits += fmt.Sprintf(", %.2f in routed experts", x.BitsPerWeight.Value)
	}
	con.Field("precision", "%s", bits)
}

// showShards names the shards that an artifact lacks, if any.
func showShards(con *ui.Console, label string, shards []document.Text) {
	if len(shards) == 0 {
		return
	}
	names := make([]string, len(shards))
	for i, name := range shards {
		names[i] = string(name)
	}
	con.StyledField(ui.Red, label, text.Names(names, screenMissing))
}

func tensorsText(in *Inspection) string {
	n := text.Grouped(in.TensorCount)
	switch {
	case in.statedTensors > uint64(in.TensorCount):
		n += " of " + text.Grouped(in.statedTensors)
	case in.TensorCount == 0:
		return "none"
	}
	return n + ", " + text.Size(in.TensorBytes)
}

func shardText(in *Inspection) string {
	if len(in.Shards) < in.ShardCount {
		return fmt.Sprintf("%s of %s", text.Grouped(len(in.Shards)), text.Count(in.ShardCount, "shard"))
	}
	return text.Files(in.ShardCount)
}

// parameterText writes a count as it is, and as people say it: "1.45 T".
func parameterText(n uint64) string {
	for _, u := range []struct {
		name string
		of   uint64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}} {
		if n >= u.of {
			return fmt.Sprintf("%s (%.2f %s)", text.Grouped(n), float64(n)/float64(u.of), u.name)
		}
	}
	return text.Grouped(n)
}

func showLayers(con *ui.Console, in *Inspection) {
	switch {
	case in.Layers.Count == 0 || in.Kind == tokenizerKind:
	case in.Kind == draftKind:
		con.Field("layers", "%s draft, of the %s that the metadata counts", text.Grouped(in.Layers.Draft), text.Grouped(in.Layers.Count))
	default:
		con.Field("layers", "%s", layerText(in.Layers))
	}
	x := in.Experts
	if x == nil {
		return
	}
	con.Field("experts", "%s", strings.Join(expertParts(x), ", "))
	con.Field("pruning", "%s: %s", x.Standing, reap.Standing(x.Standing).Meaning())
	if x.SlabBytes != nil {
		con.Field("one expert", "%s in %s together", text.Size(*x.SlabBytes), text.Count(x.Layers, "layer"))
	}
}

// expertParts says how many experts there are and how they are used.
func expertParts(x *expertsInfo) []string {
	parts := []string{text.Grouped(x.Count) + " a layer"}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if x.stated > 0 {
		parts[0] += fmt.Sprintf(" in the tensors, %s by the key", text.Grouped(x.stated))
	}
	if x.Used != nil {
		add("%s used for a token", text.Grouped(*x.Used))
	} else {
		add("number used for a token not known")
	}
	if x.Shared != nil && *x.Shared > 0 {
		add("%s shared", text.Grouped(*x.Shared))
	}
	if x.Groups != nil && *x.Groups > 1 {
		add("%s of %s groups used", text.Grouped(*x.GroupsUsed), text.Grouped(*x.Groups))
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
			parts = append(parts, fmt.Sprintf("%s %s", text.Grouped(n), what))
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
	all := []string{text.Grouped(l.Count)}
	for _, part := range []string{ffn, strings.Join(parts, ", ")} {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Replace(strings.Join(all, "; "), ";", ":", 1)
}

// showText prints what the metadata says of use: context, tokenizer, license.
func showText(con *ui.Console, in *Inspection) {
	if in.ContextLength != nil {
		con.Field("context", "%s", text.Count(*in.ContextLength, "token"))
	}
	if t := in.Tokenizer; t != nil {
		con.Field("tokenizer", "%s", tokenizerText(t))
	}
	if in.License != nil {
		con.Field("license", "%s", text.Shorten(string(*in.License)))
	}
}

func tokenizerText(t *tokenizer) string {
	var names, parts []string
	for _, name := range []document.Text{t.Model, t.Pre} {
		if name != "" {
			names = append(names, text.Shorten(string(name)))
		}
	}
	if len(names) > 0 {
		parts = append(parts, strings.Join(names, " / "))
	}
	if t.Tokens > 0 {
		parts = append(parts, text.Count(t.Tokens, "token"))
	}
	return strings.Join(parts, ", ")
}

func showTypes(con *ui.Console, in *Inspection) {
	if len(in.Types) == 0 {
		return
	}
	con.Printf("\n")
	cols := []table.Column{table.Left("type"), table.Right("tensors"), table.Right("parameters"), table.Right("bytes"), table.Right("share")}
	con.Table("", cols, func(yield func([]string) bool) {
		for _, t := range in.Types[:min(len(in.Types), screenTypes)] {
			share := 100 * float64(t.Bytes) / float64(max(in.TensorBytes, 1))
			if !yield([]string{t.Type, text.Grouped(t.Tensors), text.Grouped(t.Parameters), text.Grouped(t.Bytes), fmt.Sprintf("%.1f %%", share)}) {
				return
			}
		}
	})
	con.More(len(in.Types)-screenTypes, "type")
}

func showKeep(con *ui.Console, in *Inspection) {
	if in.Experts == nil || len(in.Experts.Keep) == 0 {
		return
	}
	con.Printf("\n")
	cols := []table.Column{table.Right("keep"), table.Right("tensor bytes left"), table.Left(""), table.Right("saved"), table.Left("preset")}
	keep := in.Experts.Keep
	if !slices.ContainsFunc(keep, func(k keepInfo) bool { return k.Preset != "" }) {
		cols = cols[:len(cols)-1]
	}
	con.Table("", cols, func(yield func([]string) bool) {
		for _, k := range keep {
			saved := 100 * float64(k.SavedBytes) / float64(max(in.TensorBytes, 1))
			kept := fmt.Sprintf("%s of %s", text.Grouped(k.Keep), text.Grouped(in.Experts.Count))
			row := []string{kept, text.Grouped(k.TensorBytes), text.RoundedSize(k.TensorBytes), fmt.Sprintf("%.1f %%", saved), k.Preset}
			if !yield(row[:len(cols)]) {
				return
			}
		}
	})
}

func showProvenance(con *ui.Console, in *Inspection) {
	pairs := in.provenance()
	if len(pairs) == 0 {
		return
	}
	con.Printf("\n")
	shown := pairs[:min(len(pairs), screenProvenance)]
	con.Table("", []table.Column{table.Left("provenance"), table.Left("")}, pairRows(shown))
	if more := len(pairs) - len(shown); more > 0 {
		con.Printf("and %s more; --json lists them\n", text.Count(more, "key"))
	}
}

func pairRows(pairs []pair) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, p := range pairs {
			if !yield([]string{text.Shorten(p.key), metadata.Short(p.Value)}) {
				return
			}
		}
	}
}
