package inspect

import (
	"fmt"

	"ggufreap/gguf"
	"ggufreap/reap"
)

// Kinds of files that are no whole model, beside those of [gguf.Model.Companion].
const (
	draftKind     = "draft"
	tokenizerKind = "tokenizer"
)

// kindMeanings say what a file is, for people.
var kindMeanings = map[string]string{
	"projector":      "a projector, which goes beside a model",
	"imatrix":        "an imatrix, which goes beside a model",
	"adapter":        "an adapter (LoRA), which goes beside a model",
	"control vector": "a control vector, which goes beside a model",
	draftKind:        "draft layers alone: the model that they draft for is not in it",
	tokenizerKind:    "a tokenizer alone: there are no weights",
}

// kindOf names what an artifact is that is no whole model, "" for a model.
func kindOf(m *gguf.Model) string {
	switch {
	case m.Companion() != "":
		return m.Companion()
	case !m.Complete():
		return ""
	case len(m.Tensors()) == 0 && readTokenizer(m.Metadata()) != nil:
		return tokenizerKind
	case draftAlone(m):
		return draftKind
	}
	return ""
}

// draftAlone reports whether all blocks that have tensors are draft layers.
func draftAlone(m *gguf.Model) bool {
	blocks, _ := m.Metadata().ArchUint("block_count")
	draft, _ := m.Metadata().ArchUint("nextn_predict_layers")
	if draft == 0 || draft >= blocks || blocks > maxLayers {
		return false
	}
	found := false
	for _, t := range m.Tensors() {
		block, _, ok := reap.SplitBlock(t.Name)
		if ok && block < int(blocks-draft) {
			return false
		}
		found = found || ok
	}
	return found
}

// expertsThere is how many experts every tensor of them has, 0 when they differ.
func expertsThere(e *reap.Experts) uint64 {
	var count uint64
	for _, t := range e.Tensors() {
		dims := t.Dims()
		if !inExpert(t.Role) || len(dims) != 3 {
			continue
		}
		if count != 0 && count != dims[2] {
			return 0
		}
		count = dims[2]
	}
	return count
}

// compareCount holds the expert count that the key states against that of the tensors, by
// which the artifact is then described.
func (in *Inspection) compareCount(m *gguf.Model, e *reap.Experts) {
	md := m.Metadata()
	stated, ok := md.ArchUint("expert_count")
	there := expertsThere(e)
	if !ok || !m.HasMetadata() || there == 0 || there == stated || there > maxLayers {
		return
	}
	in.Experts.Count, in.Experts.stated = int(there), stated
	where := fmt.Sprintf("%s: key %q", m.Files[0].Name, md.ArchKey("expert_count"))
	in.wrong = &gguf.Problem{Severity: gguf.Error, Where: where, What: fmt.Sprintf("is %d, but the tensors have %d experts", stated, there)}
	in.Problems = append(in.Problems, problem{gguf.Error.String(), where, in.wrong.What})
}

// Wrong is the error of a key that the tensors contradict, nil when there is none.
func (in *Inspection) Wrong() error {
	if in.wrong == nil {
		return nil
	}
	return fmt.Errorf("%v", in.wrong)
}
