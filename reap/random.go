package reap

import "strconv"

// RandomScores draws uniform scores in [0,1) for every expert: a baseline that real
// evidence should beat. A score depends only on the seed, the block and the expert.
func RandomScores(e *Experts, seed uint64) *Scores {
	s := &Scores{Criterion: NewCriterion(SeededRandom), Layers: map[int][]float64{}}
	s.Criterion.Parameters = map[string]string{"seed": strconv.FormatUint(seed, 10)}
	for _, block := range e.Blocks() {
		scores := make([]float64, e.Count)
		for expert := range scores {
			bits := mix64(mix64(mix64(seed)+uint64(block)) + uint64(expert))
			scores[expert] = float64(bits>>11) / (1 << 53)
		}
		s.Layers[block] = scores
	}
	return s
}

// mix64 is one step of SplitMix64 (Steele, Lea and Flood, 2014).
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
