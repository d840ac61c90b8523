package planfile

import (
	"bytes"
	"fmt"

	"ggufreap/gguf/jsondoc"
	"ggufreap/reap"
)

// Schema is the first field of a plan document.
const Schema = "ggufreap/plan/v1"

// mode is the only mode: the same number of experts in every layer. The key is written
// because the slicers of others look for it.
const mode = "uniform"

// Encode returns the plan as canonical JSON: two-space indent, keys in a fixed order,
// layers in numeric order, each keep list on one line, a newline at the end. Equal
// plans give equal bytes.
func Encode(p *reap.Plan) ([]byte, error) {
	var b bytes.Buffer
	if err := jsondoc.Write(&b, newDocument(p)); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return b.Bytes(), nil
}

// Identity returns the bytes whose hash names a plan that was read from a document: those of
// the document without what a hub only stated, so that a model pruned from a hub is that
// pruned from its files. A document with such statements in another form than [Encode]'s
// stands for itself.
func Identity(document []byte, p *reap.Plan) ([]byte, error) {
	if p.Source.StatedByHub == nil {
		return document, nil
	}
	if own, err := Encode(p); err != nil || !bytes.Equal(own, document) {
		return document, err
	}
	bare := *p
	bare.Source.StatedByHub = nil
	return Encode(&bare)
}

// A document is a plan as it is written.
type document struct {
	Schema string `json:"schema"`
	Source struct {
		StructureDigest string             `json:"structure_digest"`
		WeightsDigest   jsondoc.TextOrNull `json:"weights_digest"`
		Architecture    string             `json:"architecture"`
		Name            string             `json:"name"`
		StatedByHub     *stated            `json:"stated_by_hub,omitzero"`
	} `json:"source"`
	Mode         string                  `json:"mode"`
	NumExperts   int                     `json:"num_experts"`
	KeepCount    int                     `json:"keep_count"`
	Shards       int                     `json:"shards,omitzero"`
	Criterion    criterion               `json:"criterion"`
	ScoresDigest jsondoc.TextOrNull      `json:"scores_digest"`
	Coverage     *coverage               `json:"coverage,omitzero"`
	Rules        rules                   `json:"rules,omitzero"`
	Layers       jsondoc.Numbered[layer] `json:"layers"`
}

type stated struct {
	Repo   string       `json:"repo"`
	Commit string       `json:"commit"`
	Files  []statedFile `json:"files"`
}

type statedFile struct {
	Path   string             `json:"path"`
	Size   int64              `json:"size"`
	SHA256 jsondoc.TextOrNull `json:"sha256"`
	ETag   jsondoc.TextOrNull `json:"etag"`
}

type criterion struct {
	Name       string             `json:"name"`
	Version    int                `json:"version"`
	Evidence   jsondoc.TextOrNull `json:"evidence"`
	Parameters map[string]string  `json:"parameters"`
	Inputs     []input            `json:"inputs"`
}

type input struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

type coverage struct {
	Tokens          int           `json:"tokens"`
	Texts           []coveredText `json:"texts"`
	Kept            float64       `json:"score_kept"`
	Worst           float64       `json:"least_score_kept"`
	WorstLayer      int           `json:"least_score_layer"`
	NeverRouted     *int          `json:"experts_without_tokens"`
	NeverRoutedKept *int          `json:"kept_without_tokens"`
}

type coveredText struct {
	Label  string `json:"label"`
	Tokens int    `json:"tokens"`
}

type rules struct {
	AlwaysKeep  jsondoc.TextOrNull `json:"always_keep"`
	DraftLayers jsondoc.TextOrNull `json:"draft_layers"`
	DroppedIDs  jsondoc.TextOrNull `json:"dropped_ids"`
	Incomplete  string             `json:"incomplete,omitzero"`
}

type layer struct {
	Keep []int `json:"keep"`
}

func newDocument(p *reap.Plan) *document {
	d := &document{
		Schema: Schema, Mode: mode, NumExperts: p.NumExperts, KeepCount: p.KeepCount, Shards: p.Shards,
		Criterion:    newCriterion(p.Criterion),
		ScoresDigest: jsondoc.TextOrNull(p.ScoresDigest),
		Rules: rules{
			jsondoc.TextOrNull(p.Rules.AlwaysKeep),
			jsondoc.TextOrNull(p.Rules.DraftLayers),
			jsondoc.TextOrNull(p.Rules.DroppedIDs),
			p.Rules.Incomplete,
		},
		Layers: jsondoc.Numbered[layer]{},
	}
	d.Coverage = newCoverage(p.Coverage)
	d.Source.StructureDigest = p.Source.StructureDigest
	d.Source.WeightsDigest = jsondoc.TextOrNull(p.Source.WeightsDigest)
	d.Source.Architecture = p.Source.Architecture
	d.Source.Name = p.Source.Name
	d.Source.StatedByHub = newStated(p.Source.StatedByHub)
	for block, keep := range p.Layers {
		d.Layers[block] = layer{keep}
	}
	return d
}

func newCoverage(c *reap.Coverage) *coverage {
	if c == nil {
		return nil
	}
	d := &coverage{Tokens: c.Tokens, Kept: c.Kept, Worst: c.Worst, WorstLayer: c.WorstLayer}
	for _, t := range c.Texts {
		d.Texts = append(d.Texts, coveredText(t))
	}
	if c.NeverRouted >= 0 {
		d.NeverRouted, d.NeverRoutedKept = &c.NeverRouted, &c.NeverRoutedKept
	}
	return d
}

func newStated(s *reap.Stated) *stated {
	if s == nil {
		return nil
	}
	d := &stated{Repo: s.Repo, Commit: s.Commit}
	for _, f := range s.Files {
		d.Files = append(d.Files, statedFile{f.Path, f.Size, jsondoc.TextOrNull(f.SHA256), jsondoc.TextOrNull(f.ETag)})
	}
	return d
}

func newCriterion(c reap.Criterion) criterion {
	d := criterion{
		Name: c.Name, Version: c.Version, Evidence: jsondoc.TextOrNull(c.Evidence), Parameters: c.Parameters,
	}
	for _, in := range c.Inputs {
		d.Inputs = append(d.Inputs, input(in))
	}
	return d
}
