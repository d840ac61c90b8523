package reap

import (
	"maps"
	"path"
	"slices"
)

// A Plan says which experts each layer keeps. Its zero value keeps nothing and is
// valid for no model.
type Plan struct {
	Source     Source
	NumExperts int // routed experts in each layer of the source
	KeepCount  int // experts that each layer keeps
	// Shards is into how many files the plan was made to be cut, 0 when it does not say.
	Shards    int
	Criterion Criterion
	// ScoresDigest identifies the scores that the lists were chosen by; "" when the
	// lists were given.
	ScoresDigest string
	// Coverage is what measured scores say of the lists, nil where nothing was measured.
	Coverage *Coverage
	// Rules are the choices that scores do not make; see [Rules].
	Rules Rules
	// Layers maps a block number to the old expert ids in their new order.
	Layers map[int][]int

	// Notes are facts about a plan that was read, that the user should know and that stop
	// nothing. They are no part of the plan.
	Notes []string
}

// Source names the model that a plan was made for. The digests are defined and
// computed elsewhere; here they are text that is stored and compared.
type Source struct {
	StructureDigest string
	WeightsDigest   string // "" unless the model was pinned
	Architecture    string
	Name            string
	// StatedByHub is what the hub said of the files that the plan was made from, nil where it
	// was not asked. Nothing of it was computed, and it is no part of what names a plan.
	StatedByHub *Stated
}

// Stated is what a hub says of the files of a model.
type Stated struct {
	Repo   string // OWNER/NAME
	Commit string
	Files  []StatedFile
}

// A StatedFile is a file of a repository. Its SHA256 or, where the hub lists none, its ETag
// is set, or neither.
type StatedFile struct {
	Path   string // in the repository
	Size   int64
	SHA256 string // in hex
	ETag   string
}

// Differs returns the base names of files that both state something of, and not the same.
func (s *Stated) Differs(other *Stated) []string {
	was := map[string]StatedFile{}
	for _, f := range s.Files {
		was[path.Base(f.Path)] = f
	}
	var names []string
	for _, f := range other.Files {
		w, both := was[path.Base(f.Path)]
		if both && (w.Size != f.Size || w.SHA256 != f.SHA256 && w.SHA256 != "" && f.SHA256 != "") {
			names = append(names, path.Base(f.Path))
		}
	}
	return names
}

// A Criterion is the named formula behind scores, with all that its result depends on.
type Criterion struct {
	Name       string
	Version    int
	Evidence   Evidence // "" when nothing is known of how lists were made
	Parameters map[string]string
	Inputs     []Input
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
	// Incomplete is [IncompleteAllowed] where the source is no model that an engine loads, by
	// its headers, and was to be pruned nevertheless.
	Incomplete string
}

// IncompleteAllowed is the one value of [Rules.Incomplete].
const IncompleteAllowed = "allowed"

// Blocks returns the block numbers of the plan, ascending.
func (p *Plan) Blocks() []int { return slices.Sorted(maps.Keys(p.Layers)) }

// Given is the criterion name of a plan whose lists came from a file of another tool,
// which may not say how they were chosen.
const Given = "given"

// GivenPlan returns the plan that keep lists state which were found in a file of the given
// form. It names the model's architecture as its source; digests and the file are for the
// caller to add.
func GivenPlan(e *Experts, form string, layers map[int][]int) *Plan {
	p := &Plan{
		Source:     Source{Architecture: e.Architecture},
		NumExperts: e.Count,
		Criterion:  Criterion{Name: Given, Version: 1, Parameters: map[string]string{"form": form}},
		Rules:      Rules{DraftLayers: draftRule(e, DraftGiven)},
		Layers:     layers,
	}
	if blocks := p.Blocks(); len(blocks) > 0 {
		p.KeepCount = len(p.Layers[blocks[0]])
	}
	return p
}
