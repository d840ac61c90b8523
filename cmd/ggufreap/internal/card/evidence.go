package card

import (
	"fmt"
	"strings"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

func (f *Facts) evidence() string {
	var b strings.Builder
	b.WriteString("## Evidence\n\n")
	tables := 0
	for _, d := range f.Evidence {
		fmt.Fprintf(&b, "From %s, sha256 %s.\n\n", code(d.Name), code(d.SHA256.String()))
		for _, t := range d.Tables() {
			tables++
			fmt.Fprintf(&b, "### %s\n\n", plain(t.Title))
			if t.About != "" {
				fmt.Fprintf(&b, "%s\n\n", plain(t.About))
			}
			out := newTable(each(t.Columns, plain)...)
			for _, row := range t.Rows {
				out.row(each(row, plain)...)
			}
			b.WriteString(out.String() + "\n")
		}
		if d.Blank() {
			b.WriteString("That file is not filled in.\n\n")
		}
		for _, n := range d.Notes {
			fmt.Fprintf(&b, "%s\n\n", plain(n.Text))
		}
	}
	if tables == 0 {
		b.WriteString("What this model can do: " + notSpecified + ". How fast it is: " + notSpecified + ". What memory it takes: " + notSpecified + ".\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func each(list []string, do func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = do(s)
	}
	return out
}

// quality says whether evidence holds the release against its source.
func (f *Facts) quality() string {
	for _, d := range f.Evidence {
		if d.Controlled() {
			return "compared under equal controls in the evidence"
		}
	}
	return notSpecified
}

func (f *Facts) tested(plain func(string) string) string {
	most, said := int64(0), notSpecified
	for _, d := range f.Evidence {
		if r, n := d.TestedContext(); n > most {
			most, said = n, fmt.Sprintf("%s tokens (row %s)", text.Grouped(n), plain(r.ID))
		}
	}
	return said
}

// run shows how the files are served, on one machine and on several.
func (f *Facts) run() string {
	first := f.Pin.Files[0].Name
	executed := "**Not executed** with these files, as far as the evidence above says."
	if row := f.ran(); row != "" {
		executed = "Executed with these files: row " + plain(row) + " of the evidence above has this release's pin digest."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## How to run it\n\n%s\n\nOn one machine that holds %s of tensor data, with a build of llama.cpp that knows %s:\n\n",
		executed, text.Size(f.Pin.Artifact.TensorBytes), code(f.Pin.Artifact.Architecture))
	b.WriteString(block("llama-server -m " + args.ShellQuote(first) + " -ngl 99 --jinja"))
	if f.Nodes > 1 {
		b.WriteString(f.spread(first))
	}
	return b.String()
}

// ran returns the row of evidence that ran this very release, "" for none.
func (f *Facts) ran() string {
	for _, d := range f.Evidence {
		if r := d.RowOf(f.Pin.PinDigest.String()); r != nil {
			return r.ID
		}
	}
	return ""
}

// spread shows a layer split over several machines, with the bytes on each.
func (f *Facts) spread(first string) string {
	nodes := Split(f.Pin, f.Nodes)
	var b strings.Builder
	fmt.Fprintf(&b, "\nOn %d machines by layer split; the last one runs `llama-server`, which gives the first layers to the others. Tensor data of each, without cache and buffers:\n\n", f.Nodes)
	t := newTable("machine", "layers", "tensor data")
	var parts, servers []string
	for i, n := range nodes {
		t.row(fmt.Sprint(i+1), n.Layers(), text.Size(n.Bytes))
		parts = append(parts, fmt.Sprint(n.To-n.From))
		if i < len(nodes)-1 {
			servers = append(servers, fmt.Sprintf("NODE%d:50052", i+1))
		}
	}
	b.WriteString(t.String() + "\n")
	b.WriteString(block("rpc-server -H 0.0.0.0 -p 50052    # on each of the others, in a network that you trust: it has no password",
		fmt.Sprintf("llama-server -m %s -ngl 99 --jinja --rpc %s --split-mode layer --tensor-split %s", args.ShellQuote(first), strings.Join(servers, ","), strings.Join(parts, ","))))
	return b.String()
}
