// Package inspect is the answer of "inspect": what the headers of an artifact tell. The model
// of the answer, which is the document too, stands in inspection.go, experts.go and layers.go;
// what of it a screen shows in screen.go; what is wrong with the artifact in problems.go; single
// values and lists of tensors in key.go and tensors.go. It reads no data of tensors and no flags.
package inspect

import (
	"cmp"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/gguf"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

// An Inspection is what the headers of an artifact tell: the document of
// "inspect --json", and what the screen is printed from.
type Inspection struct {
	Schema         string            `json:"schema"`
	Architecture   document.Text     `json:"architecture"`
	Name           document.Text     `json:"name"` // the file names' common stem
	Title          document.Text     `json:"title"`
	Kind           string            `json:"kind,omitzero"` // of what is no whole model
	Version        uint32            `json:"version"`
	ByteOrder      string            `json:"byte_order"`
	Alignment      int64             `json:"alignment"`
	FileBytes      int64             `json:"file_bytes"`
	TensorBytes    int64             `json:"tensor_bytes"`
	TensorCount    int               `json:"tensor_count"`
	ParameterCount uint64            `json:"parameter_count"`        // elements of all tensors
	ActiveCount    *uint64           `json:"active_parameter_count"` // null when it is not known how experts are used
	BitsPerWeight  *document.Number  `json:"bits_per_weight"`
	ShardCount     int               `json:"shard_count"`
	Missing        []document.Text   `json:"missing_shards"`
	Unreadable     []document.Text   `json:"unreadable_shards,omitzero"`
	Shards         []shardInfo       `json:"shards"`
	Aside          []asideInfo       `json:"set_aside,omitzero"`
	Types          []typeInfo        `json:"types"`
	Layers         layersInfo        `json:"layers"`
	Experts        *expertsInfo      `json:"experts"`
	ContextLength  *uint64           `json:"context_length"`
	Tokenizer      *tokenizer        `json:"tokenizer"`
	License        *document.Text    `json:"license"`
	Metadata       document.Members  `json:"metadata"`
	Tensors        document.Elements `json:"tensors,omitzero"`
	Problems       []problem         `json:"problems"`
	Engine         *Engine           `json:"engine,omitzero"` // where one was asked

	pairs         *gguf.Metadata
	noMetadata    bool          // the first shard is missing or cannot be read
	wrong         *gguf.Problem // the expert count, when tensors contradict the key
	loading       int           // of the errors, those for which llama.cpp does not load it
	notLoading    error         // the first of them
	statedTensors uint64        // of all shards, when some are not there and the others tell
}

// A shardInfo is a file of the artifact.
type shardInfo struct {
	File       document.Text `json:"file"`
	Size       int64         `json:"size"`
	Tensors    int           `json:"tensors"`
	DataOffset int64         `json:"data_offset"`
	Alignment  int64         `json:"alignment"`

	Pieces []document.Text `json:"pieces,omitzero"` // that it is read from
}

// An asideInfo is what lies beside the model in its folder and is no part of it.
type asideInfo struct {
	File document.Text `json:"file"`
	Kind string        `json:"kind"`
}

// A typeInfo sums the tensors of one type.
type typeInfo struct {
	Type       string `json:"type"`
	ID         uint32 `json:"id"`
	Known      bool   `json:"known"` // the block size; if not, bytes are spans with their padding
	Tensors    int    `json:"tensors"`
	Parameters uint64 `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// A tokenizer is what the metadata says of the vocabulary.
type tokenizer struct {
	Model  document.Text `json:"model"`
	Pre    document.Text `json:"pre"`
	Tokens int64         `json:"tokens"`
}

// A problem is one of the library's, or a fault that keeps the model from being pruned.
type problem struct {
	Severity string `json:"severity"`
	Where    string `json:"where"`
	What     string `json:"what"`
}

// An Engine is what llama.cpp says of the model, from its headers.
type Engine struct {
	Build       string        `json:"build"`
	Loads       bool          `json:"loads"`
	Reason      document.Text `json:"reason"`
	WeightBytes uint64        `json:"weight_bytes"`
	Devices     []string      `json:"devices"`
	Memory      []Memory      `json:"memory"`
}

// Memory is what a part of a context takes on a device.
type Memory struct {
	Part   string `json:"part"`
	Device string `json:"device"`
	Bytes  uint64 `json:"bytes"`
}

// New gathers what is known of a model. The counts of keep, or shares, are those that the user
// asks about; one that the model does not allow is an error.
func New(m *gguf.Model, keep []string) (*Inspection, error) {
	first := m.Files[0]
	md := m.Metadata()
	warnings := make(chan []gguf.Problem, 1) // found beside the rest: a model can have very many names
	go func() { warnings <- verify.Warnings(m) }()
	in := &Inspection{
		Schema:       "ggufreap/inspect/v1",
		Architecture: document.Text(md.Architecture()),
		Name:         document.Text(m.Name),
		Title:        document.Text(md.Text("general.name")),
		Version:      first.Version,
		ByteOrder:    first.ByteOrder(),
		Alignment:    first.Alignment,
		FileBytes:    m.FileBytes(),
		TensorCount:  len(m.Tensors()),
		ShardCount:   m.Shards,
		Types:        typeMix(m),
		Tokenizer:    readTokenizer(md),
	}
	in.addFiles(m)
	in.pairs, in.Metadata = md, document.Metadata(md)
	if n, ok := md.ArchUint("context_length"); ok {
		in.ContextLength = &n
	}
	if license := document.Text(md.Text("general.license")); license != "" {
		in.License = &license
	}
	in.sumTypes()
	in.noMetadata, in.statedTensors = !m.HasMetadata(), statedTensors(m)
	in.Kind = kindOf(m)
	var found *reap.Experts
	var faults reap.Faults
	if m.Companion() == "" { // what has an adapter for experts has none itself
		found, faults = reap.FindExperts(m)
	}
	in.addProblems(m, <-warnings)
	return in, in.addExperts(m, found, faults, keep)
}

// addFiles lists the files of the model, those that are not there or not its own too.
func (in *Inspection) addFiles(m *gguf.Model) {
	for _, name := range m.Missing {
		in.Missing = append(in.Missing, document.Text(name))
	}
	for _, path := range m.Unreadable {
		in.Unreadable = append(in.Unreadable, document.Text(filepath.Base(path)))
	}
	pieces := map[string][]document.Text{}
	for _, j := range m.Joined() {
		for _, path := range j.Pieces {
			pieces[j.File] = append(pieces[j.File], document.Text(filepath.Base(path)))
		}
	}
	for _, f := range m.Files {
		in.Shards = append(in.Shards, shardInfo{document.Text(filepath.Base(f.Name)), f.Size, len(f.Tensors), f.DataOffset, f.Alignment, pieces[f.Name]})
	}
	for _, a := range m.Aside {
		in.Aside = append(in.Aside, asideInfo{document.Text(a.File), a.Kind})
	}
}

// statedTensors is how many tensors an incomplete model has by the shards that are there, 0 when they do not tell.
func statedTensors(m *gguf.Model) uint64 {
	if m.Complete() {
		return 0
	}
	stated, _ := m.Files[0].Metadata.Uint(gguf.KeySplitTensors)
	for _, f := range m.Files {
		if n, _ := f.Metadata.Uint(gguf.KeySplitTensors); n != stated {
			return 0
		}
	}
	return stated
}

// sumTypes adds up the types.
func (in *Inspection) sumTypes() {
	for _, t := range in.Types {
		in.TensorBytes = gguf.AddSize(in.TensorBytes, t.Bytes)
		in.ParameterCount = addCount(in.ParameterCount, t.Parameters)
	}
	in.BitsPerWeight = bitsPerWeight(in.TensorBytes, in.ParameterCount)
}

// addCount adds without wrapping: a malformed file can declare more elements than a
// 64-bit count holds.
func addCount(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return 1<<64 - 1
	}
	return sum
}

// bitsPerWeight is nil when there is nothing to divide by.
func bitsPerWeight(bytes int64, parameters uint64) *document.Number {
	if parameters == 0 {
		return nil
	}
	return document.Float(float64(bytes) * 8 / float64(parameters))
}

// typeMix sums tensors by type, the type with most bytes first.
func typeMix(m *gguf.Model) []typeInfo {
	sums := map[gguf.Type]*typeInfo{}
	var s *typeInfo // that of the tensor before, which mostly has the same type
	for _, t := range m.Tensors() {
		if s == nil || s.ID != uint32(t.Type) {
			if s = sums[t.Type]; s == nil {
				s = &typeInfo{Type: t.Type.String(), ID: uint32(t.Type), Known: true}
				sums[t.Type] = s
			}
		}
		s.Tensors++
		s.Parameters = addCount(s.Parameters, t.Elements())
		s.Bytes = gguf.AddSize(s.Bytes, t.Size)
		_, known := t.Type.Info()
		s.Known = s.Known && (known || !t.Opaque)
	}
	var list []typeInfo
	for _, s := range sums {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b typeInfo) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func readTokenizer(md *gguf.Metadata) *tokenizer {
	const prefix = "tokenizer.ggml."
	tok := &tokenizer{Model: document.Text(md.Text(prefix + "model")), Pre: document.Text(md.Text(prefix + "pre"))}
	if v, ok := md.Get(prefix + "tokens"); ok && v.Type() == gguf.Array {
		tok.Tokens = v.Len()
	}
	if *tok == (tokenizer{}) {
		return nil
	}
	return tok
}

// provenancePrefixes begin the keys that say where a model comes from.
var provenancePrefixes = []string{"general.base_model.", "general.source.", "general.dataset.", "reap.", "quantize."}

var provenanceKeys = []string{
	"general.author", "general.organization", "general.version", "general.finetune", "general.quantized_by",
	"general.url", "general.doi", "general.uuid", "general.repo_url", "general.license.name", "general.license.link",
}

// provenance returns the pairs that say where the model comes from.
func (in *Inspection) provenance() []pair {
	var list []pair
	for key, v := range in.pairs.All() {
		begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		if slices.Contains(provenanceKeys, key) || slices.ContainsFunc(provenancePrefixes, begins) {
			list = append(list, pair{key, v})
		}
	}
	return list
}

// countProblems counts by severity.
func (in *Inspection) countProblems() (errors, warnings int) {
	for _, p := range in.Problems {
		if p.Severity == gguf.Error.String() {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// A pair is a metadata pair.
type pair struct {
	key string
	gguf.Value
}
