package calibrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"ggufreap/reap/llama"
	"ggufreap/reap/tally"
)

// A Collector sums what experts do while a model computes. Its methods are for one
// computation at a time.
type Collector struct {
	experts int
	used    map[int]int // experts used for a token, by block
	calls   atomic.Uint64
	norms   *norms

	// Of the computation that is under way:
	tokens int
	layers map[int]*layer
	open   []int // blocks whose experts' output was not weighted yet
	err    error
}

// New returns a collector for a model with so many routed experts in the given blocks, each
// with the number of experts that a token uses there. Norms are computed by so many workers
// beside llama.cpp.
func New(experts int, used map[int]int, workers int) *Collector {
	return &Collector{experts: experts, used: used, norms: newNorms(workers)}
}

// Close ends the workers.
func (c *Collector) Close() { c.norms.close() }

// Calls moves while the model computes.
func (c *Collector) Calls() uint64 { return c.calls.Load() }

// Observer is what looks on. It is valid between [Collector.Begin] and [Collector.End].
func (c *Collector) Observer() *llama.Observer {
	return &llama.Observer{Wanted: c.wanted, Computed: c.computed, Calls: &c.calls}
}

// Begin starts a computation of so many tokens.
func (c *Collector) Begin(tokens int) {
	c.tokens, c.err = tokens, nil
	c.layers = make(map[int]*layer, len(c.used))
	c.open = c.open[:0]
}

// End adds what was seen of the computation to a tally. It is an error when a layer, or a
// pair of a token and an expert, was not seen: llama.cpp reports no error for work that it
// left out.
func (c *Collector) End(to *tally.Tally) error {
	c.norms.wait()
	if c.err != nil {
		return c.err
	}
	for _, block := range to.Blocks() {
		l := c.layers[block]
		if l == nil {
			return fmt.Errorf("layer %d: llama.cpp computed no experts of it", block)
		}
		if err := l.add(to.Layers[block], c.tokens*c.used[block]); err != nil {
			return fmt.Errorf("layer %d: %w", block, err)
		}
	}
	to.Tokens += uint64(c.tokens)
	return nil
}

// A layer is what is seen of one layer in one computation.
type layer struct {
	ids  []int32
	last llama.Node // the experts' output as far as it was followed
	name string     // its name, by which a copy on another device is known
	// norm and energy are computed in the background, one number for each pair.
	norm, energy []float64
	gates        []float32
}

var downName = regexp.MustCompile(`(?:^|#)blk\.([0-9]+)\.ffn_down_exps\.weight(?:$|#)`)

// downBlock returns the block whose down projection the node computes.
func (c *Collector) downBlock(n llama.Node) (int, bool) {
	if n.Op() != "MUL_MAT_ID" {
		return 0, false
	}
	weights, _ := n.Input(0)
	name := downName.FindStringSubmatch(weights.Name())
	if name == nil {
		return 0, false
	}
	block, err := strconv.Atoi(name[1])
	return block, err == nil && c.used[block] > 0
}

// A step is what a node does to a layer's output.
type step int

const (
	other step = iota
	project
	adjust // a bias or a scale of the down projection
	weigh
)

// step tells what a node does, and to which layer.
func (c *Collector) step(n llama.Node) (step, *layer, int) {
	if block, ok := c.downBlock(n); ok {
		return project, c.layers[block], block
	}
	op := n.Op()
	if op != "MUL" && op != "ADD_ID" || len(c.open) == 0 {
		return other, nil, 0
	}
	in, ok := n.Input(0)
	if !ok {
		return other, nil, 0
	}
	in = through(in, "RESHAPE", "VIEW")
	name := original(in.Name())
	for _, block := range c.open {
		l := c.layers[block]
		if !l.last.Is(in) && l.name != name {
			continue
		}
		factor, _ := n.Input(1)
		if op == "ADD_ID" || isScale(factor) {
			return adjust, l, block
		}
		return weigh, l, block
	}
	return other, nil, 0
}

// isScale reports whether a factor is a scale of the down projection: picked by the experts'
// numbers out of a tensor of the file.
func isScale(factor llama.Node) bool {
	leaf := through(factor, "RESHAPE", "VIEW", "REPEAT", "CONT", "GET_ROWS", "PERMUTE", "TRANSPOSE")
	return strings.Contains(leaf.Name(), "_exps.scale")
}

// through follows the first operands of operations that only move numbers.
func through(n llama.Node, ops ...string) llama.Node {
	for slices.Contains(ops, n.Op()) {
		in, ok := n.Input(0)
		if !ok {
			break
		}
		n = in
	}
	return n
}

// original returns the name of what a copy on another device, DEVICE#NAME#N, is a copy of.
func original(name string) string {
	if part := strings.Split(name, "#"); len(part) == 3 {
		return part[1]
	}
	return name
}

func (c *Collector) wanted(n llama.Node) bool {
	if c.err != nil {
		return false
	}
	s, _, _ := c.step(n)
	return s != other
}

func (c *Collector) computed(n llama.Node) {
	s, l, block := c.step(n)
	if err := c.take(n, s, l, block); err != nil {
		c.err = fmt.Errorf("layer %d: %w", block, err)
	}
}

func (c *Collector) take(n llama.Node, s step, l *layer, block int) error {
	pairs := c.tokens * c.used[block]
	switch s {
	case project:
		if l != nil {
			return fmt.Errorf("%s: the experts are computed a second time", n.Name())
		}
		return c.begin(n, block, pairs)
	case adjust:
		return c.follow(n, l, pairs)
	case weigh:
		c.open = slices.DeleteFunc(c.open, func(b int) bool { return b == block })
		return l.weigh(n, pairs)
	}
	return nil
}

// begin takes the experts' numbers and inputs from the down projection.
func (c *Collector) begin(n llama.Node, block, pairs int) error {
	l := &layer{}
	c.layers[block] = l
	c.open = append(c.open, block)
	input, _ := n.Input(1)
	chosen, ok := n.Input(2)
	if !ok {
		return fmt.Errorf("%s: no experts' numbers", n.Name())
	}
	var err error
	if l.ids, err = chosen.Int32Rows(); err != nil {
		return err
	}
	if len(l.ids) != pairs {
		return fmt.Errorf("%d pairs of token and expert, want %d: llama.cpp computed part of the tokens", len(l.ids), pairs)
	}
	for _, id := range l.ids {
		if id < 0 || int(id) >= c.experts {
			return fmt.Errorf("%s: expert %d of %d", n.Name(), id, c.experts)
		}
	}
	l.energy = make([]float64, pairs)
	if err := c.norms.squares(input, l.energy, false); err != nil {
		return err
	}
	return c.follow(n, l, pairs)
}

// follow takes the norms of the experts' output. An output that a later step adjusts is
// measured again.
func (c *Collector) follow(n llama.Node, l *layer, pairs int) error {
	l.last, l.name = n, n.Name()
	l.norm = make([]float64, pairs)
	return c.norms.squares(n, l.norm, true)
}

// weigh takes the weights that the experts' output is multiplied with.
func (l *layer) weigh(n llama.Node, pairs int) error {
	weights, _ := n.Input(1)
	if shape := weights.Shape(); shape[0] != 1 || shape[1]*shape[2]*shape[3] != int64(pairs) {
		return fmt.Errorf("%s: weights of shape %v for %d pairs of token and expert", weights.Name(), shape, pairs)
	}
	l.gates = make([]float32, pairs)
	return weights.Rows(l.gates, 0)
}

// add adds the layer's pairs to its experts.
func (l *layer) add(experts []tally.Expert, pairs int) error {
	switch {
	case l.gates == nil:
		return fmt.Errorf("nothing multiplies the experts' output: this architecture weights their input, and g*|f| has no meaning in it")
	case len(l.ids) != pairs || len(l.norm) != pairs || len(l.energy) != pairs || len(l.gates) != pairs:
		return fmt.Errorf("%d experts' numbers, %d norms, %d inputs and %d weights for %d pairs", len(l.ids), len(l.norm), len(l.energy), len(l.gates), pairs)
	}
	for i, id := range l.ids {
		if !experts[id].Add(l.gates[i], l.norm[i], l.energy[i]) {
			return fmt.Errorf("expert %d: weight %v, norm %v and energy %v cannot be added up", id, l.gates[i], l.norm[i], l.energy[i])
		}
	}
	return nil
}

// Measure computes sequences of one length from their beginning, side by side, and adds what
// their experts did to a tally.
func (c *Collector) Measure(s *llama.Session, sequences [][]int, to *tally.Tally) error {
	if err := s.Clear(); err != nil {
		return err
	}
	pieces := s.Pieces(len(sequences), len(sequences[0]))
	next := func() {
		if len(pieces) > 0 {
			c.Begin(pieces[0] * len(sequences))
			pieces = pieces[1:]
		}
	}
	next()
	err := s.Append(sequences, c.Observer(), func(int) error {
		defer next()
		return c.End(to)
	})
	c.norms.wait() // nothing is left behind after an error
	return err
}
