package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
	"ggufreap/reap/scorefile"
)

func isPlan(data []byte) bool { return bytes.Contains(data, []byte(`"ggufreap/plan/`)) }

// decodePlan reads a plan: of any form with a model, else one that says itself what it is of.
func (s *subject) decodePlan(data []byte) (*reap.Plan, error) {
	if s.source != nil {
		plan, err := planfile.Read(data, s.source.experts)
		if err != nil {
			return nil, err
		}
		return plan, plan.Check(s.source.experts).Err()
	}
	return planfile.Decode(data)
}

// shapeOfFile returns what a file of scores says of its model, nil where it says nothing.
func shapeOfFile(path string) *reap.Experts {
	f, info, err := manifest.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if e := scorefile.ShapeOfNPZ(f, info.Size()); e != nil {
		return e
	}
	data, err := files.Read(path)
	if err != nil {
		return nil
	}
	return shapeOf(data)
}

// shapeOf returns what a saliency document says of its model, nil for any other file.
func shapeOf(data []byte) *reap.Experts {
	var doc struct {
		Schema string `json:"schema"`
		Source struct {
			Architecture string `json:"architecture"`
		} `json:"source"`
		NumExperts int                       `json:"num_experts"`
		TopK       int                       `json:"top_k"`
		Layers     map[string]jsontext.Value `json:"layers"`
	}
	if json.Unmarshal(data, &doc) != nil || doc.Schema != scorefile.SaliencySchema || doc.NumExperts < 1 || doc.NumExperts > 1<<16 {
		return nil
	}
	e := &reap.Experts{Architecture: doc.Source.Architecture, Count: doc.NumExperts, Used: doc.TopK, Groups: 1, GroupsUsed: 1}
	for block := range 1 << 12 {
		if _, ok := doc.Layers[strconv.Itoa(block)]; ok {
			e.Layers = append(e.Layers, &reap.Layer{Block: block})
		}
	}
	return e
}

// widen takes what scores say of the model of a plan, which does not say how many experts are
// used for a token.
func (s *subject) widen(shape *reap.Experts) {
	if shape != nil && shape.Count == s.experts.Count {
		s.experts.Used = shape.Used
	}
}

// shapeOfPlan is what a plan says of its model.
func shapeOfPlan(p *reap.Plan) *reap.Experts {
	e := &reap.Experts{Architecture: p.Source.Architecture, Count: p.NumExperts, Used: 1, Groups: 1, GroupsUsed: 1}
	for _, block := range p.Blocks() {
		e.Layers = append(e.Layers, &reap.Layer{Block: block})
	}
	return e
}

func (s *subject) usePlan(p *reap.Plan, name string) {
	s.plan = p
	if s.experts == nil {
		s.experts = shapeOfPlan(p)
	}
	if s.title == "" {
		s.title = fmt.Sprintf("Plan %s", text.Safe(name))
		s.lead = fmt.Sprintf("Which %d of %d experts each of %s keeps.", p.KeepCount, p.NumExperts, text.Count(len(p.Layers), "layer"))
	}
	s.fact("keep", "%d of %d experts in each of %s", p.KeepCount, p.NumExperts, text.Count(len(p.Layers), "layer"))
	s.fact("criterion", "%s", criterionText(p.Criterion))
	for _, in := range p.Criterion.Inputs {
		s.fact("made from", "%s, sha256 %s", in.File, in.SHA256)
	}
	s.fact("source", "%s, %s", p.Source.Name, p.Source.Architecture)
	s.fact("its structure", "%s", p.Source.StructureDigest)
	s.fact("its weights", "%s", orNotSpecified(p.Source.WeightsDigest))
}

func orNotSpecified(s string) string {
	if s == "" {
		return "Not specified"
	}
	return s
}
