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

// DefaultCriterion ranks where nothing was measured and nobody names another one. It is not
// [RouterMass], which on the one trained model with a selection bias that it was tried on was
// no better than chance: balancing makes that bias high where an expert's gate is low.
const DefaultCriterion = RouterNorm

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
	// Worth is what was found of it on a small trained model, a sentence; see SELECTION.md.
	Worth string
}

// Criteria are all criteria. The measured ones stand in the order in which they are
// preferred where a file allows several.
var Criteria = []CriterionInfo{
	{ReapMean, 1, Measured, "sum(g*|f|) / tokens", "weighted output of the expert per routed token, as REAP was published", worthMeasured},
	{ReapSum, 1, Measured, "sum(g*|f|)", "weighted output of the expert over all tokens, as published Kimi-K3 plans rank", worthMeasured},
	{GateSum, 1, Measured, "sum(g)", "router weight that the expert received", worthGate},
	{Count, 1, Measured, "tokens", "tokens routed to the expert", worthCount},
	{ActivationEnergy, 1, Measured, "sum(|h|^2)", "energy that entered the expert's down projection", worthMeasured},
	{RouterNorm, 1, Proxy, "sqrt(sum((W*gamma)^2))", "deviation of the expert's router logit if the router's input had no preferred direction", worthNorm},
	{RouterMass, 2, Proxy, "E[gate; chosen]", "router weight to expect for such an input", worthMass},
	{SeededRandom, 1, Baseline, "uniform in [0,1)", "chance, from a seed", ""},
}

// What was found; "make compare-criteria" prints the figures.
const (
	worthMeasured = "on a small trained model the divergence of its plans was 52 to 71 % of that of random ones"
	worthGate     = "on a small trained model the divergence of its plans was 77 to 98 % of that of random ones"
	worthCount    = "on a small trained model, measured on all kinds of text that its router was balanced on, its plans were worse than random ones; on one kind of text, for that kind, they were good"
	worthNorm     = "on a small trained model the divergence of its plans from the full model was 73 to 86 % of that of random ones, where measured plans had 52 to 66 %"
	worthMass     = "on a small trained model with a selection bias its plans were no better than random ones, and worse when fewer were kept: balancing makes that bias high where the gate is low"
)

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
