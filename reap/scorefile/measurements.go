package scorefile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"ggufreap/reap"
)

// Measurements are what a calibration run measured.
type Measurements struct {
	// Format names the kind of file.
	Format string
	// Source names the model that was measured, as far as the file says.
	Source reap.Source
	// Tokens is the number of calibration tokens, 0 when the file does not say.
	Tokens int
	// Layers maps a block number to its experts' sums.
	Layers map[int]*Layer
	// Sources are the same sums by kind of text, empty when they were not kept apart.
	Sources []Source
	// Engine, Settings and Inputs say what ran, how, and on which texts, where known.
	Engine   string
	Settings map[string]string
	Inputs   []Text
	// Notes are facts that the user should know.
	Notes []string
}

// A Layer holds sums over the tokens routed to each expert, by expert; nil for what was
// not measured. With g the router's weight for the expert, f its output and h what enters
// its down projection:
type Layer struct {
	Count    []float64 // tokens
	GateSum  []float64 // sum of g
	NormSum  []float64 // sum of |f|
	NormMax  []float64 // greatest |f|
	ReapSum  []float64 // sum of g*|f|
	ReapMean []float64 // ReapSum / Count, where the file has it and not the sum
	Energy   []float64 // sum of |h|^2
}

// A Source is the part of the measurements that comes from one kind of text.
type Source struct {
	Label  string
	Tokens int // 0 when the file does not say
	// Weight is what the sums were multiplied with before they were added to those of the
	// other sources; 0 where the file does not say, which is 1.
	Weight float64
	Layers map[int]*Layer
}

// A Text is a file that was measured on.
type Text struct {
	Label  string // kind of text, "" where it was not told
	File   string // base name
	SHA256 string // lower-case hex
}

// Blocks returns the block numbers of the measurements, ascending.
func (m *Measurements) Blocks() []int { return slices.Sorted(maps.Keys(m.Layers)) }

// Criteria returns the names of the criteria that the measurements can be ranked by, in
// the order of [reap.Criteria].
func (m *Measurements) Criteria() []string { return criteriaOf(m.Layers) }

func criteriaOf(layers map[int]*Layer) []string {
	var names []string
	for _, c := range reap.Criteria {
		all := len(layers) > 0
		for _, l := range layers {
			all = all && l.scores(c.Name) != nil
		}
		if all {
			names = append(names, c.Name)
		}
	}
	return names
}

// Scores returns the scores by a criterion, with counts where they are known.
func (m *Measurements) Scores(criterion string) (*reap.Scores, error) {
	s, err := scoresOf(m.Layers, criterion)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Format, err)
	}
	s.Criterion.Parameters = map[string]string{"format": m.Format}
	return s, nil
}

// sourceScores returns the scores of one source, or of all sources but one, by a criterion.
func (m *Measurements) sourceScores(criterion string, source int, others bool) (*reap.Scores, error) {
	layers := m.Sources[source].Layers
	if others {
		layers = map[int]*Layer{}
		for i, s := range m.Sources {
			if i != source {
				addLayers(layers, s.Layers)
			}
		}
	}
	return scoresOf(layers, criterion)
}

func scoresOf(layers map[int]*Layer, criterion string) (*reap.Scores, error) {
	if known := criteriaOf(layers); !slices.Contains(known, criterion) {
		return nil, fmt.Errorf("cannot be ranked by %s, only by %q", criterion, known)
	}
	s := &reap.Scores{
		Criterion: reap.NewCriterion(criterion),
		Layers:    map[int][]float64{},
		Counts:    map[int][]float64{},
	}
	for block, l := range layers {
		s.Layers[block] = l.scores(criterion)
		if l.Count != nil {
			s.Counts[block] = l.Count
		}
	}
	return s, nil
}

// scores returns the layer's scores by a criterion, nil when they cannot be had.
func (l *Layer) scores(criterion string) []float64 {
	switch criterion {
	case reap.ReapMean:
		if l.ReapMean != nil {
			return l.ReapMean
		}
		return perToken(l.ReapSum, l.Count)
	case reap.ReapSum:
		if l.ReapSum != nil {
			return l.ReapSum
		}
		return times(l.ReapMean, l.Count)
	case reap.GateSum:
		return l.GateSum
	case reap.Count:
		return l.Count
	case reap.ActivationEnergy:
		return l.Energy
	}
	return nil
}

// perToken divides sums by counts; an expert without tokens, which ranks last, has 0.
func perToken(sums, counts []float64) []float64 {
	if sums == nil || counts == nil {
		return nil
	}
	means := make([]float64, len(sums))
	for i, sum := range sums {
		if counts[i] != 0 {
			means[i] = sum / counts[i]
		}
	}
	return means
}

func times(a, b []float64) []float64 {
	if a == nil || b == nil {
		return nil
	}
	products := make([]float64, len(a))
	for i := range a {
		products[i] = float64(a[i] * b[i])
	}
	return products
}

// addLayers adds sums to sums, layer by layer.
func addLayers(to map[int]*Layer, from map[int]*Layer) {
	for _, block := range slices.Sorted(maps.Keys(from)) {
		l := to[block]
		if l == nil {
			l = &Layer{}
			to[block] = l
		}
		f := from[block]
		l.Count = plus(l.Count, f.Count)
		l.GateSum = plus(l.GateSum, f.GateSum)
		l.NormSum = plus(l.NormSum, f.NormSum)
		l.NormMax = greatest(l.NormMax, f.NormMax)
		l.ReapSum = plus(l.ReapSum, f.ReapSum)
		l.Energy = plus(l.Energy, f.Energy)
	}
}

// Weighted adds the sums of sources, each multiplied with its weight. The greatest norm is that
// of all.
func Weighted(sources []Source) map[int]*Layer {
	total := map[int]*Layer{}
	for _, source := range sources {
		layers := map[int]*Layer{}
		for block, l := range source.Layers {
			layers[block] = l.weighted(source.Weight)
		}
		addLayers(total, layers)
	}
	return total
}

func (l *Layer) weighted(by float64) *Layer {
	if by == 0 {
		by = 1
	}
	scale := func(list []float64) []float64 {
		list = slices.Clone(list)
		for i := range list {
			list[i] *= by
		}
		return list
	}
	return &Layer{
		Count: scale(l.Count), GateSum: scale(l.GateSum), NormSum: scale(l.NormSum), NormMax: slices.Clone(l.NormMax),
		ReapSum: scale(l.ReapSum), Energy: scale(l.Energy),
	}
}

func plus(a, b []float64) []float64 {
	if a == nil || b == nil {
		return slices.Clone(append(a, b...))
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// greatest returns the greater numbers of two lists.
func greatest(a, b []float64) []float64 {
	if a == nil || b == nil {
		return slices.Clone(append(a, b...))
	}
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// check reports sums that no run can have measured.
func (m *Measurements) check(e *reap.Experts, fs *reap.Faults) {
	for _, block := range m.Blocks() {
		m.Layers[block].check(fmt.Sprintf("layer %d", block), e, fs)
	}
	for _, s := range m.Sources {
		for _, block := range slices.Sorted(maps.Keys(s.Layers)) {
			s.Layers[block].check(fmt.Sprintf("source %q, layer %d", s.Label, block), e, fs)
		}
	}
}

func (l *Layer) check(where string, e *reap.Experts, fs *reap.Faults) {
	for _, list := range []struct {
		name   string
		values []float64
	}{{"counts", l.Count}, {"gate sums", l.GateSum}, {"norm sums", l.NormSum}, {"greatest norms", l.NormMax}, {"saliency sums", l.ReapSum}, {"saliency means", l.ReapMean}, {"energies", l.Energy}} {
		if list.values == nil {
			continue
		}
		if len(list.values) != e.Count {
			fs.Add(where, "%d %s for %d experts", len(list.values), list.name, e.Count)
			continue
		}
		for expert, x := range list.values {
			switch {
			case math.IsNaN(x) || math.IsInf(x, 0) || x < 0:
				fs.Add(where, "%s: expert %d has %v", list.name, expert, x)
			case len(l.Count) == e.Count && l.Count[expert] == 0 && x != 0:
				fs.Add(where, "%s: expert %d has %v, but no token was routed to it", list.name, expert, x)
			}
		}
	}
}
