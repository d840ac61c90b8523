package verify

import (
	"fmt"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// ProveOptions say what the caller knows of a release and its source.
type ProveOptions struct {
	// Keep are the source's expert ids that the release is said to keep in each layer,
	// in their new order; nil when nobody says.
	Keep map[int][]int
	// ExpertIDs reports whether the values of a tensor are expert ids, which change with
	// the experts; nil for none.
	ExpertIDs func(tensor string) bool
	// NewIDs returns the table that pruning to keep makes of the source's, ids replaced by
	// its rule; nil where nobody can tell.
	NewIDs func(tensor string, source *manifest.IDs, keep []int) ([]byte, error)
	// OldIDs returns the tensor digest that a tensor of expert ids would have with each
	// id i replaced by keep[i]; nil where nobody can tell.
	OldIDs func(tensor string, keep []int) (manifest.Sum, error)
	// MayChange reports whether pruning may add a key, or change it to this one, beside the
	// expert count, and the value that it must then have, nil for any; nil allows none.
	MayChange func(pair manifest.Pair) (value *gguf.Value, ok bool)
	// Stated reports whether the release states that it changed a key, and one that may be
	// changed so; nil for none.
	Stated func(key string) bool
	// File names the file that holds a tensor of the release, for findings; nil for none.
	File func(tensor string) string
	// Offset returns where in that file its data begins; nil where nobody can tell.
	Offset func(tensor string) int64
}

// A Proof says which bytes of a release are its source's, as far as the digests of both
// show.
type Proof struct {
	Source        string          `json:"source"` // name of the artifact
	PinDigest     manifest.Digest `json:"source_pin_digest"`
	WeightsDigest manifest.Digest `json:"source_weights_digest"`
	Experts       int             `json:"source_experts"` // in each layer; 0 for a dense model
	Proven        int64           `json:"proven_bytes"`
	Unproven      int64           `json:"unproven_bytes"`
	Tensors       []TensorProof   `json:"tensors"` // of the release, in its order
	Layers        []LayerProof    `json:"layers"`  // in the order of the source's tensors
	Metadata      []MetadataProof `json:"metadata"`
}

// A TensorProof says how much of a tensor is shown to be the source's.
type TensorProof struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Proven int64  `json:"proven"`
	As     string `json:"as"` // one of the words below
}

// What a tensor of a release is to its source.
const (
	ProvenIdentical = "identical" // the source's tensor of that name
	ProvenExperts   = "experts"   // experts of the source's tensor of that name
	ProvenIDs       = "ids"       // the source's expert ids under their new numbers
	UnprovenOther   = "unproven"
)

// A LayerProof is the keep list of one layer, as the digests show it.
type LayerProof struct {
	Layer string `json:"layer"` // "blk.7", or the name of a tensor that is in none
	Keep  []int  `json:"keep"`  // the source's expert that each is; NoExpert where that is not known
}

// A MetadataProof is a key by which the release differs from its source.
type MetadataProof struct {
	Key     string          `json:"key"`
	Change  manifest.Change `json:"change"`
	Allowed bool            `json:"allowed"` // pruning may change it
}

// Prove compares the pin of a release, which must have been measured of its bytes with
// the slabs that the source's pin has, with the pin of its source. Every tensor must be
// the source's, or slabs of it: the same experts in the same order in all tensors of a
// block. No tensor may be missing or added, and only such keys may differ as pruning may
// change. The findings are what is not so, the first hundred of each kind.
func Prove(release, source *manifest.Pin, o ProveOptions) (*Proof, []Finding) {
	r := newReport("")
	return prove(release, source, o, r), r.Findings
}

// prove adds what is not so to a report.
func prove(release, source *manifest.Pin, o ProveOptions, r *Report) *Proof {
	p := &prover{
		options: o, release: release, source: source, report: r,
		proof: &Proof{Source: source.Artifact.Name, PinDigest: source.PinDigest, WeightsDigest: source.WeightsDigest, Tensors: []TensorProof{}, Layers: []LayerProof{}, Metadata: []MetadataProof{}},
		index: map[string]int{},
		known: map[factKey]int{},
		at:    placer{o.File, o.Offset},
	}
	r.compareOrder(release, source, "the source's")
	p.tensors()
	p.blocks()
	p.expertIDs()
	p.total()
	p.metadata()
	return p.proof
}

type prover struct {
	options         ProveOptions
	release, source *manifest.Pin
	proof           *Proof
	index           map[string]int // of the proof's tensors, by name
	groups          []*group
	tables          []idTable
	strays          []stray
	facts           []slabFact
	known           map[factKey]int // index of each fact
	at              placer
	report          *Report
}

func (p *prover) find(kind Kind, tensor string, expert int, format string, args ...any) {
	p.report.Add(Finding{Kind: kind, File: p.at.fileOf(tensor), Tensor: tensor, Expert: expert, What: fmt.Sprintf(format, args...)})
}

// tensors proves what is there as a whole, and sorts the rest into blocks.
func (p *prover) tensors() {
	for i, t := range p.release.Tensors {
		p.index[t.Name] = i
		p.proof.Tensors = append(p.proof.Tensors, TensorProof{Name: t.Name, Size: t.Size, As: UnprovenOther})
	}
	inSource := make([]bool, len(p.release.Tensors)) // of the release's
	for i := range p.source.Tensors {
		s := &p.source.Tensors[i]
		place, there := p.index[s.Name]
		if s.Slabs != nil {
			p.proof.Experts = max(p.proof.Experts, s.Slabs.Count)
		}
		if there {
			inSource[place] = true
			p.tensor(&p.release.Tensors[place], s)
		} else {
			p.find(KindMissing, s.Name, manifest.NoExpert, "is a tensor of the source, and not there")
		}
	}
	for i, r := range p.release.Tensors {
		if !inSource[i] {
			p.find(KindExtra, r.Name, manifest.NoExpert, "is no tensor of the source")
		}
	}
}

// tensor looks at one tensor of the release and the source's of that name.
func (p *prover) tensor(r, s *manifest.Tensor) {
	switch {
	case r.Type != s.Type:
		p.find(KindStructure, r.Name, manifest.NoExpert, "type is %s, the source has %s", r.Type, s.Type)
	case s.Slabs != nil && r.Slabs != nil && sameButExperts(r, s):
		p.group(s.Name).add(r, s)
	case !slices.Equal(gguf.CanonicalShape(r.Shape), gguf.CanonicalShape(s.Shape)):
		p.find(KindStructure, r.Name, manifest.NoExpert, "shape is %v, the source has %v%s", r.Shape, s.Shape, withoutSlabs(s))
	case p.options.ExpertIDs != nil && p.options.ExpertIDs(r.Name):
		p.tables = append(p.tables, idTable{r, s})
	case r.BLAKE3 == s.BLAKE3:
		p.prove(r.Name, r.Size, ProvenIdentical)
	default:
		p.report.Add(Finding{Kind: KindDigest, File: p.at.fileOf(r.Name), Tensor: r.Name, Expert: manifest.NoExpert, Parts: p.at.whole(r),
			What: fmt.Sprintf("blake3 is %s, the source has %s", r.BLAKE3, s.BLAKE3)})
	}
}

// sameButExperts compares shapes but for the expert dim, and the sizes of slabs.
func sameButExperts(r, s *manifest.Tensor) bool {
	axis := s.Slabs.Axis
	return r.Slabs.Axis == axis && slices.Equal(r.Shape[:axis], s.Shape[:axis]) &&
		r.Size/int64(r.Slabs.Count) == s.Size/int64(s.Slabs.Count)
}

func withoutSlabs(s *manifest.Tensor) string {
	if s.Slabs == nil {
		return ", and its pin has no digests of its experts"
	}
	return ""
}

// prove notes that bytes of a tensor are the source's.
func (p *prover) prove(tensor string, bytes int64, as string) {
	t := &p.proof.Tensors[p.index[tensor]]
	t.Proven += bytes
	t.As = as
}

func (p *prover) total() {
	for _, t := range p.proof.Tensors {
		p.proof.Proven += t.Proven
		p.proof.Unproven += t.Size - t.Proven
	}
}
