package reap

import "slices"

// The names of the criteria. A name never changes its meaning: a new formula is a new
// version or a new name.
const (
	ReapMean         = "reap-mean"
	ReapSum          = "reap-sum"
	GateSum          = "gate-sum"
	Count            = "count"
	ActivationEnergy = "activation-energy"
	RouterMass       = "router-mass"
	RouterNorm       = "router-norm"
	SeededRandom     = "seeded-random"
)

// Evidence is what kind of knowledge a criterion rests on.
type Evidence string

// The kinds of evidence.
const (
	Measured Evidence = "measured" // the model ran over text
	Proxy    Evidence = "proxy"    // from the weights alone
	Baseline Evidence = "baseline" // no knowledge at all, to compare with
)

// CriterionInfo is what there is to say of a criterion.
type CriterionInfo struct {
	Name     string
	Version  int
	Evidence Evidence
	// Formula is the score of one expert. Sums run over the tokens routed to the expert,
	// g is the router's weight for it, f its output and h what enters its down projection.
	Formula string
	// Meaning is one clause for people.
	Meaning string
}

// Criteria are all criteria. The measured ones stand in the order in which they are
// preferred where a file allows several.
var Criteria = []CriterionInfo{
	{ReapMean, 1, Measured, "sum(g*|f|) / tokens", "weighted output of the expert per routed token, as REAP was published"},
	{ReapSum, 1, Measured, "sum(g*|f|)", "weighted output of the expert over all tokens, as published Kimi-K3 plans rank"},
	{GateSum, 1, Measured, "sum(g)", "router weight that the expert received"},
	{Count, 1, Measured, "tokens", "tokens routed to the expert"},
	{ActivationEnergy, 1, Measured, "sum(|h|^2)", "energy that entered the expert's down projection"},
	{RouterMass, 2, Proxy, "E[gate; chosen]", "router weight to expect if the router's input had no preferred direction"},
	{RouterNorm, 1, Proxy, "sqrt(sum((W*gamma)^2))", "deviation of the expert's router logit for such an input"},
	{SeededRandom, 1, Baseline, "uniform in [0,1)", "chance, from a seed"},
}

// FindCriterion returns the criterion with the given name.
func FindCriterion(name string) (CriterionInfo, bool) {
	i := slices.IndexFunc(Criteria, func(c CriterionInfo) bool { return c.Name == name })
	if i < 0 {
		return CriterionInfo{}, false
	}
	return Criteria[i], true
}

// NewCriterion starts the record of a known criterion that made scores.
func NewCriterion(name string) Criterion {
	info, _ := FindCriterion(name)
	return Criterion{Name: name, Version: info.Version, Evidence: info.Evidence}
}

// Honesty says in a few words what a plan made by the criterion may claim, for every
// place where a plan is shown.
func (i CriterionInfo) Honesty() string {
	switch i.Evidence {
	case Measured:
		return "measured on text"
	case Proxy:
		return "a proxy from the weights alone: not measured, not lossless"
	}
	return "a baseline for comparisons: no evidence at all"
}
