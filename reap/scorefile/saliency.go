package scorefile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ggufreap/reap"
	"ggufreap/reap/internal/jsondoc"
)

// SaliencySchema is the first field of a saliency document.
const SaliencySchema = "ggufreap/saliency/v1"

// Encode returns the measurements as a saliency document: canonical JSON with two-space
// indent, keys in a fixed order, layers in numeric order, one line for each list, a newline
// at the end. Equal measurements give equal bytes. The lists of a layer are count and what
// else was measured of gate_sum, reap_sum and activation_energy, each by expert.
func (m *Measurements) Encode(e *reap.Experts) ([]byte, error) {
	w := &jsondoc.Writer{}
	w.Open("{")
	w.Text("schema", SaliencySchema)
	w.Key("source").Open("{")
	w.TextOrNull("structure_digest", m.Source.StructureDigest)
	w.TextOrNull("weights_digest", m.Source.WeightsDigest)
	w.Text("architecture", m.Source.Architecture)
	w.Text("name", m.Source.Name)
	w.Close("}")
	w.Int("num_experts", e.Count)
	w.Int("top_k", e.Used)
	w.TextOrNull("engine", m.Engine)
	w.Key("inputs").Open("[")
	for _, in := range m.Inputs {
		w.Item().Open("{")
		w.Text("file", in.File)
		w.Text("sha256", in.SHA256)
		w.Close("}")
	}
	w.Close("]")
	w.Int("tokens", m.Tokens)
	encodeLayers(w, m.Layers)
	w.Key("sources").Open("[")
	for _, s := range m.Sources {
		w.Item().Open("{")
		w.Text("label", s.Label)
		w.Int("tokens", s.Tokens)
		encodeLayers(w, s.Layers)
		w.Close("}")
	}
	w.Close("]")
	w.Close("}")
	document, err := w.Document()
	if err != nil {
		return nil, fmt.Errorf("saliency: %w", err)
	}
	return document, nil
}

// saliencyLists are the lists of a layer with their keys.
func (l *Layer) saliencyLists() []saliencyList {
	return []saliencyList{
		{"count", &l.Count}, {"gate_sum", &l.GateSum}, {"reap_sum", &l.ReapSum}, {"activation_energy", &l.Energy},
	}
}

type saliencyList struct {
	key    string
	values *[]float64
}

func encodeLayers(w *jsondoc.Writer, layers map[int]*Layer) {
	w.Key("layers").Open("{")
	for _, block := range slices.Sorted(maps.Keys(layers)) {
		w.Key(strconv.Itoa(block)).Open("{")
		for _, list := range layers[block].saliencyLists() {
			if *list.values != nil {
				w.Floats(list.key, *list.values)
			}
		}
		w.Close("}")
	}
	w.Close("}")
}

// readSaliency reads a document that [Measurements.Encode] wrote. Unknown fields and other
// versions are refused.
func (d *document) readSaliency(root *jsondoc.Node) *Measurements {
	if schema := d.text(root, "schema", ""); schema != SaliencySchema {
		if schema == reap.PlanSchema {
			d.fault("", "a plan, not scores: it says which experts to keep, not how good each one is")
		} else if len(d.faults) == 0 {
			d.fault("schema", "%q, want %q", schema, SaliencySchema)
		}
		return nil
	}
	d.known(root, "", "schema", "source", "num_experts", "top_k", "engine", "inputs", "tokens", "layers", "sources")
	d.same(root, "num_experts", "", d.experts.Count)
	d.same(root, "top_k", "", d.experts.Used)
	m := &Measurements{
		Format: "saliency JSON",
		Source: d.source(root),
		Engine: d.textOrNull(root, "engine", ""),
		Tokens: d.whole(root, "tokens", ""),
		Layers: d.layers(d.object(root, "layers", ""), "layers.", d.saliencyLayer),
	}
	for i, n := range d.list(root, "inputs", "").Items() {
		if i == maxInputs {
			d.fault("inputs", "more than %d", maxInputs)
			break
		}
		path := fmt.Sprintf("inputs[%d].", i)
		d.known(n, path, "file", "sha256")
		m.Inputs = append(m.Inputs, reap.Input{File: d.text(n, "file", path), SHA256: d.text(n, "sha256", path)})
	}
	for i, n := range d.list(root, "sources", "").Items() {
		if i == maxSources {
			d.fault("sources", "more than %d", maxSources)
			break
		}
		path := fmt.Sprintf("sources[%d].", i)
		d.known(n, path, "label", "tokens", "layers")
		m.Sources = append(m.Sources, Source{
			Label:  d.text(n, "label", path),
			Tokens: d.whole(n, "tokens", path),
			Layers: d.layers(d.object(n, "layers", path), path+"layers.", d.saliencyLayer),
		})
	}
	return m
}

func (d *document) source(root *jsondoc.Node) reap.Source {
	n := d.object(root, "source", "")
	d.known(n, "source.", "structure_digest", "weights_digest", "architecture", "name")
	d.sameArchitecture(n, "source.")
	return reap.Source{
		StructureDigest: d.textOrNull(n, "structure_digest", "source."),
		WeightsDigest:   d.textOrNull(n, "weights_digest", "source."),
		Architecture:    d.text(n, "architecture", "source."),
		Name:            d.text(n, "name", "source."),
	}
}

func (d *document) saliencyLayer(n *jsondoc.Node, path string) *Layer {
	l := &Layer{}
	keys := make([]string, 0, 4)
	for i, list := range l.saliencyLists() {
		keys = append(keys, list.key)
		*list.values = d.numbers(n, list.key, path, i > 0)
	}
	d.known(n, path, keys...)
	return l
}

// known reports the members that have none of the given names.
func (d *document) known(n *jsondoc.Node, path string, names ...string) {
	for m := range n.Members() {
		if !slices.Contains(names, m.Key) {
			d.fault(path+m.Key, "unknown field")
		}
	}
}
