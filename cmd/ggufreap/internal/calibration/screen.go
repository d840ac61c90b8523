package calibration

import (
	"fmt"
	"path/filepath"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
)

// Describe prints what a campaign came to.
func Describe(con *ui.Console, c *Campaign, r *Result) {
	con.Field("source", "%s, %s, %s", text.Safe(c.Model.Name), text.Safe(c.Experts.Architecture), text.Files(c.Model.Shards))
	con.Field("engine", "%s", text.Safe(r.Build))
	for i, kind := range r.Kinds {
		con.Field(map[bool]string{true: "text"}[i == 0], "%s", kindText(c, r, i, kind.Weight))
	}
	con.Field("measured", "%s in %s of at most %s", text.Count(r.Tokens, "token"), text.Count(r.Chunks, "chunk"), text.Count(r.Context, "token"))
	if r.Early {
		con.Field("", "stopped as %s of %s chunks were measured: the keep lists of the two halves agree", text.Grouped(r.Chunks), text.Grouped(r.AllChunks))
	}
	con.Field("experts", "%s of %s got a token, in %s", text.Grouped(r.Seen), text.Grouped(r.Experts), text.Count(len(r.Scores.Layers), "layer"))
	if draft := len(c.Experts.Layers) - len(r.Scores.Layers); draft > 0 {
		con.Field("", "%s not measured: llama.cpp does not compute draft layers here", text.Count(draft, "draft layer"))
	}
	if c.Parts > 0 {
		describePart(con, c, r)
		return
	}
	describeStability(con, r)
	con.Field("written", "%s", text.Safe(c.NPZ()))
	con.Field("", "%s", text.Safe(c.JSON()))
	if c.Self > 0 {
		con.Field("", "%s, what the model wrote", text.Safe(c.SelfText()))
	}
	con.Field("next", "%s", args.CommandLine([]string{"ggufreap", "plan", "--from", c.NPZ(), "--keep", fmt.Sprint(r.Stability.Keep), "-o", "plan.json", c.Model.Paths()[0]}))
}

// describePart prints what there is of one part.
func describePart(con *ui.Console, c *Campaign, r *Result) {
	con.Field("part", "%s of %s", text.Grouped(c.Part), text.Grouped(c.Parts))
	if r.There {
		con.Field("written", "by an earlier run: %s", text.Safe(c.Sums()))
	} else {
		con.Field("written", "%s", text.Safe(c.Sums()))
	}
	con.Field("next", "when all parts are there: %s", args.CommandLine([]string{"ggufreap", "assemble", c.Sums()}))
}

func kindText(c *Campaign, r *Result, i int, weight float64) string {
	kind := r.Kinds[i]
	said := fmt.Sprintf("%s, %s", text.Safe(kind.Label), text.Count(r.Scores.Sources[i].Tokens, "token"))
	if kind.Label == SelfLabel && c.Self > 0 {
		said += " that the model wrote"
	}
	if weight != 1 {
		said += fmt.Sprintf(", weight %v", weight)
	}
	if kind.Left > 0 {
		said += fmt.Sprintf("; %s left out", text.Count(kind.Left, "token"))
	}
	return said
}

// describeStability prints how far two halves of the text agree.
func describeStability(con *ui.Console, r *Result) {
	if !r.Stable {
		con.Field("agreement", "not known: there is one chunk only")
		return
	}
	s := r.Stability
	con.Field("agreement", "two halves of the text keep %.1f %% of the same experts, for %d of each layer by %s; chance gives %.1f %%", 100*s.Overlap, s.Keep, reap.ReapMean, 100*s.Chance)
	con.Field("", "each half's choice keeps %.2f %% of the score that the other half's has", 100*s.Retention)
}

// A Document is what --json prints of a campaign.
type Document struct {
	Schema    string         `json:"schema"`
	Engine    string         `json:"engine"`
	Tokens    int            `json:"tokens"`
	Chunks    int            `json:"chunks"`
	AllChunks int            `json:"all_chunks"`
	Context   int            `json:"context"`
	Seen      int            `json:"experts_seen"`
	Experts   int            `json:"experts"`
	Keep      int            `json:"keep"`
	Overlap   *float64       `json:"overlap"`
	Chance    *float64       `json:"chance"`
	Retention *float64       `json:"retention"`
	Early     bool           `json:"stopped_early"`
	Texts     []DocumentText `json:"texts"`
	Part      *int           `json:"part"`
	Parts     *int           `json:"parts"`
	Files     []string       `json:"files"`
}

// A DocumentText is a kind of text in a [Document].
type DocumentText struct {
	Label  string  `json:"label"`
	Tokens int     `json:"tokens"`
	Weight float64 `json:"weight"`
	Left   int     `json:"tokens_left_out"`
}

// NewDocument makes it.
func NewDocument(c *Campaign, r *Result) *Document {
	d := &Document{
		Schema: "ggufreap/calibration/v1", Engine: r.Build, Tokens: r.Tokens, Chunks: r.Chunks, AllChunks: r.AllChunks,
		Context: r.Context, Seen: r.Seen, Experts: r.Experts, Keep: c.Keep, Early: r.Early,
		Files: []string{filepath.ToSlash(c.NPZ()), filepath.ToSlash(c.JSON())},
	}
	if r.Stable {
		d.Overlap, d.Chance, d.Retention = &r.Stability.Overlap, &r.Stability.Chance, &r.Stability.Retention
	}
	for i, kind := range r.Kinds {
		d.Texts = append(d.Texts, DocumentText{kind.Label, r.Scores.Sources[i].Tokens, kind.Weight, kind.Left})
	}
	if c.Parts > 0 {
		d.Part, d.Parts, d.Files = &c.Part, &c.Parts, []string{filepath.ToSlash(c.Sums())}
	}
	if c.Self > 0 {
		d.Files = append(d.Files, filepath.ToSlash(c.SelfText()))
	}
	return d
}
