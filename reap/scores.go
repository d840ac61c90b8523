package reap

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Scores hold a number for each expert of each layer; greater is better.
type Scores struct {
	Criterion Criterion
	// Layers maps a block number to one score for each expert.
	Layers map[int][]float64
	// Counts, where known, are the tokens that were routed to each expert. An expert
	// with count 0 was never measured: it ranks behind all others.
	Counts map[int][]float64
	// Places, where known, give the order that scores cannot: the place of each expert, 0
	// the best, the same for experts that nothing tells apart.
	Places map[int][]int
}

// setPlaces adds the places of a block, if it has any.
func (s *Scores) setPlaces(block int, places []int) {
	if places == nil {
		delete(s.Places, block)
		return
	}
	if s.Places == nil {
		s.Places = map[int][]int{}
	}
	s.Places[block] = places
}

// compare orders two experts of a layer by score, the better one first.
func (s *Scores) compare(block, a, b int) int { return s.order(block)(a, b) }

// order returns what orders two experts of a layer so, for those who order many.
func (s *Scores) order(block int) func(a, b int) int {
	if places := s.Places[block]; places != nil {
		return func(a, b int) int { return cmp.Compare(places[a], places[b]) }
	}
	scores := s.Layers[block]
	return func(a, b int) int { return cmp.Compare(scores[b], scores[a]) }
}

// Blocks returns the block numbers of the scores, ascending.
func (s *Scores) Blocks() []int { return slices.Sorted(maps.Keys(s.Layers)) }

// WriteTo writes the scores in the form that a scores digest is taken of: one line
// for each expert, by block and expert,
//
//	BLOCK TAB EXPERT TAB SCORE LF
//
// with the score as the shortest exact hexadecimal float, such as 0x1.8p+01 for 3.
// Counts are written as a fourth field, in the same form, where they are known. Where places
// are, they are a fifth field, in decimal, behind a fourth that may be empty.
func (s *Scores) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	var n int64
	var line []byte
	for _, block := range s.Blocks() {
		counts, places := s.Counts[block], s.Places[block]
		for expert, score := range s.Layers[block] {
			line = fmt.Appendf(line[:0], "%d\t%d\t", block, expert)
			line = strconv.AppendFloat(line, score, 'x', -1, 64)
			if expert < len(counts) {
				line = append(line, '\t')
				line = strconv.AppendFloat(line, counts[expert], 'x', -1, 64)
			} else if places != nil {
				line = append(line, '\t')
			}
			if expert < len(places) {
				line = fmt.Appendf(line, "\t%d", places[expert])
			}
			line = append(line, '\n')
			m, err := out.Write(line)
			n += int64(m)
			if err != nil {
				return n, err
			}
		}
	}
	return n, out.Flush()
}

// Check compares the scores with a model and returns everything that keeps them from
// being ranked: layers missing or unknown, wrong lengths, numbers that are not finite,
// and, unless allowFlat, layers in which all experts score the same.
func (s *Scores) Check(e *Experts, allowFlat bool) Faults {
	var fs Faults
	for _, l := range e.Layers {
		if _, ok := s.Layers[l.Block]; !ok {
			fs.Add(fmt.Sprintf("layer %d", l.Block), "has experts but no scores%s", draftNote(l))
		}
	}
	for _, block := range s.Blocks() {
		where := fmt.Sprintf("layer %d", block)
		if e.Layer(block) == nil {
			fs.Add(where, "scored, but the model has no routed experts there")
			continue
		}
		scores := s.Layers[block]
		if len(scores) != e.Count {
			fs.Add(where, "%d scores for %d experts", len(scores), e.Count)
			continue
		}
		if places, ok := s.Places[block]; ok && len(places) != e.Count {
			fs.Add(where, "%d places for %d experts", len(places), e.Count)
			continue
		}
		if finite := checkNumbers(scores, where, "score", &fs); finite && !allowFlat && s.flat(block) {
			fs.Add(where, "all experts score %v, so nothing is known of them", scores[0])
		}
		if counts, ok := s.Counts[block]; ok {
			if len(counts) != e.Count {
				fs.Add(where, "%d counts for %d experts", len(counts), e.Count)
			}
			checkNumbers(counts, where, "count", &fs)
		}
	}
	return fs
}

func checkNumbers(list []float64, where, what string, fs *Faults) bool {
	before := len(*fs)
	for expert, x := range list {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			fs.Add(where, "%s of expert %d is %v", what, expert, x)
		}
	}
	return len(*fs) == before
}

// flat reports whether nothing tells the experts of a layer apart.
func (s *Scores) flat(block int) bool {
	for id := range s.Layers[block] {
		if s.compare(block, id, 0) != 0 {
			return false
		}
	}
	return true
}

func draftNote(l *Layer) string {
	if l.Draft {
		return " (a draft layer, which shares the model's expert count)"
	}
	return ""
}
