package reap

import (
	"fmt"
	"strconv"

	"ggufreap/reap/internal/jsondoc"
)

// PlanSchema is the first field of a plan document.
const PlanSchema = "ggufreap/plan/v1"

// A Plan says which experts each layer keeps. Its zero value keeps nothing and is
// valid for no model.
type Plan struct {
	Source     Source
	NumExperts int // routed experts in each layer of the source
	KeepCount  int // experts that each layer keeps
	Criterion  Criterion
	// ScoresDigest identifies the scores that the lists were chosen by; "" when the
	// lists were given.
	ScoresDigest string
	// Rules are the choices that scores do not make; see [Rules].
	Rules Rules
	// Layers maps a block number to the old expert ids in their new order.
	Layers map[int][]int
}

// Source names the model that a plan was made for. The digests are defined and
// computed elsewhere; here they are text that is stored and compared.
type Source struct {
	StructureDigest string
	WeightsDigest   string // "" unless the model was pinned
	Architecture    string
	Name            string
}

// A Criterion is the named formula behind scores, with all that its result depends on.
type Criterion struct {
	Name       string
	Version    int
	Evidence   Evidence // "" when nothing is known of how lists were made
	Parameters map[string]string
	Inputs     []Input
}

// An Input is a file that scores or lists were read from.
type Input struct {
	File   string // base name
	SHA256 string // lower-case hex
}

// Rules name the policies that the user chose for what no score settles. All are "" where
// none was needed.
type Rules struct {
	// AlwaysKeep is the file that names experts to keep whatever their score; it is one of
	// the criterion's inputs.
	AlwaysKeep string
	// DraftLayers says where the lists of draft (next-token-prediction) layers come from.
	DraftLayers string
	// DroppedIDs says what becomes of id-table entries that point to a dropped expert.
	DroppedIDs string
}

// Blocks returns the block numbers of the plan, ascending.
func (p *Plan) Blocks() []int { return sortedKeys(p.Layers) }

// Encode returns the plan as canonical JSON: two-space indent, keys in a fixed order,
// layers in numeric order, each keep list on one line, a newline at the end. Equal
// plans give equal bytes.
func (p *Plan) Encode() ([]byte, error) {
	w := &jsondoc.Writer{}
	w.Open("{")
	w.Text("schema", PlanSchema)
	w.Key("source").Open("{")
	w.Text("structure_digest", p.Source.StructureDigest)
	w.TextOrNull("weights_digest", p.Source.WeightsDigest)
	w.Text("architecture", p.Source.Architecture)
	w.Text("name", p.Source.Name)
	w.Close("}")
	w.Text("mode", planMode)
	w.Int("num_experts", p.NumExperts)
	w.Int("keep_count", p.KeepCount)
	p.Criterion.encode(w)
	w.TextOrNull("scores_digest", p.ScoresDigest)
	if p.Rules != (Rules{}) {
		w.Key("rules").Open("{")
		w.TextOrNull("always_keep", p.Rules.AlwaysKeep)
		w.TextOrNull("draft_layers", p.Rules.DraftLayers)
		w.TextOrNull("dropped_ids", p.Rules.DroppedIDs)
		w.Close("}")
	}
	w.Key("layers").Open("{")
	for _, block := range p.Blocks() {
		w.Key(strconv.Itoa(block)).Open("{")
		w.Ints("keep", p.Layers[block])
		w.Close("}")
	}
	w.Close("}")
	w.Close("}")
	document, err := w.Document()
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return document, nil
}

// planMode is the only mode: the same number of experts in every layer. The key is
// written because the slicers of others look for it.
const planMode = "uniform"

func (c Criterion) encode(w *jsondoc.Writer) {
	w.Key("criterion").Open("{")
	w.Text("name", c.Name)
	w.Int("version", c.Version)
	w.TextOrNull("evidence", string(c.Evidence))
	w.Key("parameters").Open("{")
	for _, name := range sortedKeys(c.Parameters) {
		w.Text(name, c.Parameters[name])
	}
	w.Close("}")
	w.Key("inputs").Open("[")
	for _, in := range c.Inputs {
		w.Item().Open("{")
		w.Text("file", in.File)
		w.Text("sha256", in.SHA256)
		w.Close("}")
	}
	w.Close("]")
	w.Close("}")
}
