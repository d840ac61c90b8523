package loadable

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/reap"
)

// Check returns what keeps llama.cpp from loading the model, as errors, and as warnings what
// it would refuse unless it is newer than the rules here: tensors and names of tokenizers
// that they do not know. Where shards are missing or unsound only the metadata is looked at.
// Files that are no language model, such as adapters and projectors, have no findings.
func Check(m *gguf.Model) []gguf.Problem {
	c := &check{m: m, md: m.Metadata(), arch: m.Metadata().Architecture(), alike: map[string]*alike{}}
	if !m.HasMetadata() || c.otherKind() {
		return nil
	}
	c.checkPairs()
	c.readBlocks()
	c.checkTokenizer()
	if len(m.Tensors()) > 0 {
		c.checkKeys()
		c.checkLists()
	}
	if m.Complete() && m.Err() == nil && len(m.Tensors()) > 0 {
		c.checkEmbedding()
		c.checkBlocks()
		c.checkProjections()
		c.checkTable()
	}
	return c.all()
}

// A check is one look at a model.
type check struct {
	m    *gguf.Model
	md   *gguf.Metadata
	arch string

	blocks int            // as the metadata counts them, 0 when it does not or no model has so many
	drafts int            // of them, at the end, for next-token prediction
	traits map[int]traits // of the blocks that have any tensor

	found []gguf.Problem
	keys  map[string]bool // those that were looked at, true for sound ones
	wrong map[string]bool // tensors that a finding names
	alike map[string]*alike
	left  int // findings that are too many to be kept
}

// maxBlocks is how many blocks llama.cpp has room for.
const maxBlocks = 512

// maxFindings bounds what a hostile file can make of the list.
const maxFindings = 200

// known reports whether llama.cpp has the architecture.
func (c *check) known() bool { return slices.Contains(architectures, c.arch) }

// otherKind reports whether the file is no language model, or a model's part that llama.cpp
// loads beside another one.
func (c *check) otherKind() bool {
	kind := c.md.Text("general.type")
	return kind != "" && kind != "model" || c.m.Companion() != "" || c.arch == "" || slices.Contains(otherArchitectures, c.arch)
}

// otherArchitectures are those of projectors, of heads that draft for another model, and of
// models whose layout is one of its own.
var otherArchitectures = []string{"clip", "eagle3", "dflash", "gemma4-assistant", "wavtokenizer-dec", "imatrix"}

// draftAlone reports whether the file holds the draft blocks of a model without its trunk.
func (c *check) draftAlone() bool {
	if c.drafts == 0 || len(c.traits) == 0 {
		return false
	}
	for block := range c.traits {
		if block < c.blocks-c.drafts {
			return false
		}
	}
	return true
}

// refuse notes what llama.cpp does not load.
func (c *check) refuse(where, format string, args ...any) {
	c.add(gguf.Problem{Severity: gguf.Error, Where: where, What: fmt.Sprintf(format, args...)})
}

// refuseTensor notes a tensor that llama.cpp does not load, once.
func (c *check) refuseTensor(t *gguf.Tensor, format string, args ...any) {
	if c.wrong[t.Name] {
		return
	}
	if c.wrong == nil {
		c.wrong = map[string]bool{}
	}
	c.wrong[t.Name] = true
	p := gguf.Problem{Severity: gguf.Error, Where: tensorPlace(t), What: fmt.Sprintf(format, args...), Tensor: t.Name}
	block, name, inBlock := reap.SplitBlock(t.Name)
	key := name + ": " + p.What
	if a := c.alike[key]; inBlock && a != nil {
		a.blocks = append(a.blocks, block)
		return
	}
	before := len(c.found)
	if c.add(p); inBlock && len(c.found) > before {
		c.alike[key] = &alike{at: len(c.found) - 1, name: name, blocks: []int{block}}
	}
}

// alike is a finding that tensors of one name in several blocks share.
type alike struct {
	at     int // in the list of findings
	name   string
	blocks []int
}

// tell words what several blocks share as one finding.
func (a *alike) tell(c *check) {
	if len(a.blocks) > 1 {
		slices.Sort(a.blocks)
		p := &c.found[a.at]
		*p = gguf.Problem{Severity: p.Severity, Where: c.m.Name, What: fmt.Sprintf("%s, tensor %q of each: %s", blockList(a.blocks), a.name, p.What)}
	}
}

// tell notes what llama.cpp does not load unless it is newer than the rules.
func (c *check) tell(where, format string, args ...any) {
	c.add(gguf.Problem{Where: where, What: fmt.Sprintf(format, args...)})
}

func (c *check) add(p gguf.Problem) {
	if len(c.found) == maxFindings {
		c.left++
		return
	}
	c.found = append(c.found, p)
}

// all returns the findings, errors first.
func (c *check) all() []gguf.Problem {
	for _, a := range c.alike {
		a.tell(c)
	}
	slices.SortStableFunc(c.found, func(a, b gguf.Problem) int { return cmp.Compare(b.Severity, a.Severity) })
	if c.left > 0 {
		c.found = append(c.found, gguf.Problem{Severity: gguf.Error, Where: c.m.Name, What: words.Count(c.left, "more finding") + " of what llama.cpp asks for"})
	}
	return c.found
}

func (c *check) keyPlace(key string) string {
	return fmt.Sprintf("%s: key %q", c.m.Files[0].Name, key)
}

func tensorPlace(t *gguf.Tensor) string {
	return fmt.Sprintf("%s: tensor %q", t.File().Name, t.Name)
}

// misshapen notes a tensor of another shape than llama.cpp asks for.
func (c *check) misshapen(t *gguf.Tensor, want string) {
	c.refuseTensor(t, "has the shape %s, llama.cpp wants %s", shapeText(t.Shape), want)
}

// shapeText writes dims, innermost first: "64 x 288". A wanted one that is made of lengths
// which do not fit each other can be below zero, as it is for llama.cpp.
func shapeText(shape []uint64) string {
	if len(shape) == 0 {
		return "of one number"
	}
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.FormatInt(int64(d), 10)
	}
	return strings.Join(dims, " x ")
}

// dim returns a dim of a shape; those that are not stored are 1.
func dim(t *gguf.Tensor, i int) uint64 {
	if i < len(t.Shape) {
		return t.Shape[i]
	}
	return 1
}
