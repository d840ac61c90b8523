package llama

import "time"

// A pace finds the number of threads with which computing is fastest, while it computes. The
// results do not depend on it. It begins with the most threads, tries half or twice as many for
// a while, and keeps what was faster. How many that are depends on the model, whose smallest
// operations are over before many threads have met, and on what else the machine does.
type pace struct {
	threads int // now
	most    int

	usual   int     // threads outside of trials
	cost    float64 // seconds a token with the usual number, a running mean; 0 for unknown
	trial   bool
	fewer   bool // the next trial is of fewer threads
	time    time.Duration
	tokens  int
	calls   int
	between int // computations from one trial to the next
}

const (
	trialCalls  = 4                      // computations of a trial,
	trialTime   = 200 * time.Millisecond // or fewer where they take so long
	leastTime   = 10 * time.Millisecond
	leastApart  = 8    // computations between two trials
	mostApart   = 1024 // the same, after trials that changed nothing
	worthWhile  = 0.95
	hopeless    = 3   // times as slow: a trial ends
	newestShare = 0.5 // of the running mean
)

// newPace returns nil where the number of threads is fixed.
func (m *Model) newPace() *pace {
	if !m.tune || m.threads < 2 {
		return nil
	}
	p := newPace(int(m.threads))
	if m.fastest > 0 { // in the session before
		p.threads, p.usual = m.fastest, m.fastest
	}
	return p
}

func newPace(most int) *pace { return &pace{threads: most, most: most, usual: most, fewer: true} }

// computed takes how long so many tokens took, and reports whether the number of threads for
// the next ones is another.
func (p *pace) computed(tokens int, took time.Duration) bool {
	if p == nil {
		return false
	}
	p.calls, p.tokens, p.time = p.calls+1, p.tokens+tokens, p.time+took
	cost := p.time.Seconds() / float64(p.tokens)
	enough := p.calls >= trialCalls && p.time >= leastTime || p.time >= trialTime
	switch {
	case p.trial && cost > hopeless*p.cost:
	case !enough || !p.trial && p.calls < p.between:
		return false
	}
	p.calls, p.tokens, p.time = 0, 0, 0
	before := p.threads
	if p.trial {
		p.judge(cost)
	} else {
		p.begin(cost)
	}
	return p.threads != before
}

// begin begins a trial after computing as usual.
func (p *pace) begin(cost float64) {
	if p.cost > 0 {
		cost = newestShare*cost + (1-newestShare)*p.cost
	}
	p.cost = cost
	if p.usual == 1 || p.usual < p.most && !p.fewer {
		p.threads = min(2*p.usual, p.most)
	} else {
		p.threads = p.usual / 2
	}
	p.trial = true
}

// judge ends a trial.
func (p *pace) judge(cost float64) {
	p.trial = false
	if cost < worthWhile*p.cost {
		p.fewer = p.threads < p.usual
		p.usual, p.cost, p.between = p.threads, cost, leastApart
		return
	}
	p.fewer = !p.fewer
	p.between = max(leastApart, min(2*p.between, mostApart))
	p.threads = p.usual
}
