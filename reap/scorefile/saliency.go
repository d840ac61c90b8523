package scorefile

import (
	"bytes"
	"fmt"

	"ggufreap/gguf/jsondoc"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// SaliencySchema is the first field of a saliency document.
const SaliencySchema = "ggufreap/saliency/v1"

// Encode returns the measurements as a saliency document: canonical JSON with two-space
// indent, keys in a fixed order, layers in numeric order, one line for each list, a newline
// at the end. Equal measurements give equal bytes. The lists of a layer are count and what
// else was measured of gate_sum, norm_sum, norm_max, reap_sum and activation_energy, each by
// expert.
func (m *Measurements) Encode(e *reap.Experts) ([]byte, error) {
	var b bytes.Buffer
	if err := jsondoc.Write(&b, m.saliency(e)); err != nil {
		return nil, fmt.Errorf("saliency: %w", err)
	}
	return b.Bytes(), nil
}

// A saliency is what a saliency document holds, as it is written.
type saliency struct {
	Schema string `json:"schema"`
	Source struct {
		StructureDigest jsondoc.TextOrNull `json:"structure_digest"`
		WeightsDigest   jsondoc.TextOrNull `json:"weights_digest"`
		Architecture    string             `json:"architecture"`
		Name            string             `json:"name"`
	} `json:"source"`
	NumExperts int                `json:"num_experts"`
	TopK       int                `json:"top_k"`
	Engine     jsondoc.TextOrNull `json:"engine"`
	Settings   map[string]string  `json:"settings,omitzero"`
	Inputs     []saliencyInput    `json:"inputs"`
	Tokens     int                `json:"tokens"`
	Layers     saliencyLayers     `json:"layers"`
	Sources    []saliencySource   `json:"sources"`
}

type saliencyInput struct {
	Label  string `json:"label,omitzero"`
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

type saliencySource struct {
	Label  string         `json:"label"`
	Tokens int            `json:"tokens"`
	Weight float64        `json:"weight,omitzero"`
	Layers saliencyLayers `json:"layers"`
}

type saliencyLayers = jsondoc.Numbered[saliencyLayer]

// A saliencyLayer lacks what was not measured.
type saliencyLayer struct {
	Count   jsondoc.Floats `json:"count,omitzero"`
	GateSum jsondoc.Floats `json:"gate_sum,omitzero"`
	NormSum jsondoc.Floats `json:"norm_sum,omitzero"`
	NormMax jsondoc.Floats `json:"norm_max,omitzero"`
	ReapSum jsondoc.Floats `json:"reap_sum,omitzero"`
	Energy  jsondoc.Floats `json:"activation_energy,omitzero"`
}

func (m *Measurements) saliency(e *reap.Experts) *saliency {
	s := &saliency{
		Schema: SaliencySchema, NumExperts: e.Count, TopK: e.Used,
		Engine: jsondoc.TextOrNull(m.Engine), Tokens: m.Tokens, Layers: newSaliencyLayers(m.Layers),
	}
	s.Source.StructureDigest = jsondoc.TextOrNull(m.Source.StructureDigest)
	s.Source.WeightsDigest = jsondoc.TextOrNull(m.Source.WeightsDigest)
	s.Source.Architecture = m.Source.Architecture
	s.Source.Name = m.Source.Name
	s.Settings = m.Settings
	for _, in := range m.Inputs {
		s.Inputs = append(s.Inputs, saliencyInput(in))
	}
	for _, source := range m.Sources {
		s.Sources = append(s.Sources, saliencySource{source.Label, source.Tokens, source.Weight, newSaliencyLayers(source.Layers)})
	}
	return s
}

func newSaliencyLayers(layers map[int]*Layer) saliencyLayers {
	list := saliencyLayers{}
	for block, l := range layers {
		list[block] = saliencyLayer{l.Count, l.GateSum, l.NormSum, l.NormMax, l.ReapSum, l.Energy}
	}
	return list
}

// readSaliency reads a document that [Measurements.Encode] wrote. Unknown fields and other
// versions are refused.
func (d *document) readSaliency(root *jsondoc.Node) *Measurements {
	if schema := d.Text(root, "schema", ""); schema != SaliencySchema {
		if schema == planfile.Schema {
			d.Fault("", "a plan, not scores: it says which experts to keep, not how good each one is")
		} else if len(d.faults) == 0 {
			d.Fault("schema", "%q, want %q", schema, SaliencySchema)
		}
		return nil
	}
	d.Known(root, "", "schema", "source", "num_experts", "top_k", "engine", "settings", "inputs", "tokens", "layers", "sources")
	d.Same(root, "num_experts", "", d.experts.Count)
	d.Same(root, "top_k", "", d.experts.Used)
	return &Measurements{
		Format:   "saliency JSON",
		Source:   d.source(root),
		Engine:   d.TextOrNull(root, "engine", ""),
		Settings: d.settings(root),
		Tokens:   d.Whole(root, "tokens", ""),
		Layers:   d.layers(d.Object(root, "layers", ""), "layers.", d.saliencyLayer),
		Inputs:   d.inputs(root),
		Sources:  d.sources(root),
	}
}

// inputs reads which texts were measured on.
func (d *document) inputs(root *jsondoc.Node) []Text {
	var inputs []Text
	for i, n := range d.List(root, "inputs", "").Items() {
		if i == maxInputs {
			d.Fault("inputs", "more than %d", maxInputs)
			break
		}
		path := fmt.Sprintf("inputs[%d].", i)
		d.Known(n, path, "label", "file", "sha256")
		in := Text{File: d.Text(n, "file", path), SHA256: d.Text(n, "sha256", path)}
		if n.Get("label") != nil {
			in.Label = d.Text(n, "label", path)
		}
		inputs = append(inputs, in)
	}
	return inputs
}

// sources reads what was measured on each text.
func (d *document) sources(root *jsondoc.Node) []Source {
	var sources []Source
	for i, n := range d.List(root, "sources", "").Items() {
		if i == maxSources {
			d.Fault("sources", "more than %d", maxSources)
			break
		}
		path := fmt.Sprintf("sources[%d].", i)
		d.Known(n, path, "label", "tokens", "weight", "layers")
		source := Source{
			Label:  d.Text(n, "label", path),
			Tokens: d.Whole(n, "tokens", path),
			Layers: d.layers(d.Object(n, "layers", path), path+"layers.", d.saliencyLayer),
		}
		if weight := n.Get("weight"); weight != nil {
			if source.Weight, _ = weight.Float(); !(source.Weight > 0) {
				d.Want(weight, path+"weight", "a number above 0")
			}
		}
		sources = append(sources, source)
	}
	return sources
}

// settings reads how it was measured: any names, with texts. They are there for people.
func (d *document) settings(root *jsondoc.Node) map[string]string {
	if root.Get("settings") == nil {
		return nil
	}
	settings := map[string]string{}
	n := d.Object(root, "settings", "")
	for m := range n.Members() {
		if len(settings) == maxSettings {
			d.Fault("settings", "more than %d", maxSettings)
			break
		}
		settings[m.Key] = d.Text(n, m.Key, "settings.")
	}
	return settings
}

func (d *document) source(root *jsondoc.Node) reap.Source {
	n := d.Object(root, "source", "")
	d.Known(n, "source.", "structure_digest", "weights_digest", "architecture", "name")
	d.sameArchitecture(n, "source.")
	return reap.Source{
		StructureDigest: d.TextOrNull(n, "structure_digest", "source."),
		WeightsDigest:   d.TextOrNull(n, "weights_digest", "source."),
		Architecture:    d.Text(n, "architecture", "source."),
		Name:            d.Text(n, "name", "source."),
	}
}

func (d *document) saliencyLayer(n *jsondoc.Node, path string) *Layer {
	d.Known(n, path, "count", "gate_sum", "norm_sum", "norm_max", "reap_sum", "activation_energy")
	return &Layer{
		Count:   d.numbers(n, "count", path, false),
		GateSum: d.numbers(n, "gate_sum", path, true),
		NormSum: d.numbers(n, "norm_sum", path, true),
		NormMax: d.numbers(n, "norm_max", path, true),
		ReapSum: d.numbers(n, "reap_sum", path, true),
		Energy:  d.numbers(n, "activation_energy", path, true),
	}
}
