package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Rules say how texts become chunks, which are what is measured: each from its beginning,
// with nothing before it.
type Rules struct {
	Context int  // tokens of a chunk, BOS among them
	BOS     int  // the token that begins each chunk, -1 for none
	Special bool // text that spells a special token becomes that token
	// DropTail leaves out what is left of a document when it is cut into whole chunks.
	DropTail bool
	Template string // chat template, "" for the model's own
}

// minChunk is the least that is measured: a token alone has seen nothing.
const minChunk = 2

// A Reader makes tokens of text.
type Reader interface {
	Tokenize(ctx context.Context, text []byte, special bool) ([]int, error)
	Apply(ctx context.Context, template string, messages []Message) ([]byte, error)
}

// A Kind is what a kind of text comes to.
type Kind struct {
	Label  string
	Weight float64
	Files  []File
	Chunks [][]int
	Left   int // tokens that are left out: tails, and documents of one token
}

// A File is one that texts were read from.
type File struct {
	Name   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// Cut makes chunks of texts, by kind, in order. Texts of one label are one kind. A text of
// which nothing is left is an error.
func Cut(ctx context.Context, r Reader, rules Rules, texts []*Text) ([]*Kind, error) {
	var kinds []*Kind
	for _, text := range texts {
		i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Label == text.Label })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, &Kind{Label: text.Label, Weight: text.Weight})
		}
		kind := kinds[i]
		if kind.Weight != text.Weight {
			return nil, fmt.Errorf("%s: weight %v for %q, which has %v already", text.File, text.Weight, text.Label, kind.Weight)
		}
		kind.Files = append(kind.Files, File{text.File, text.SHA256})
		before := len(kind.Chunks)
		for n, d := range text.Documents {
			tokens, err := rules.tokens(ctx, r, d)
			if err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", text.File, n+1, err)
			}
			kind.cut(rules, tokens)
		}
		if len(kind.Chunks) == before {
			return nil, fmt.Errorf("%s: nothing to measure on: %s, a chunk has %d at least", text.File, counted(kind.Left), minChunk)
		}
	}
	return kinds, nil
}

func counted(tokens int) string {
	if tokens == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", tokens)
}

func (rules Rules) tokens(ctx context.Context, r Reader, d Document) ([]int, error) {
	switch {
	case d.Tokens != nil:
		return d.Tokens, nil
	case d.Messages != nil:
		text, err := r.Apply(ctx, rules.Template, d.Messages)
		if err != nil {
			return nil, err
		}
		return r.Tokenize(ctx, text, true) // a template spells special tokens
	}
	return r.Tokenize(ctx, []byte(d.Text), rules.Special)
}

// cut adds the chunks of a document.
func (k *Kind) cut(rules Rules, tokens []int) {
	var first []int
	if rules.BOS >= 0 {
		first = []int{rules.BOS}
		if len(tokens) > 0 && tokens[0] == rules.BOS {
			tokens = tokens[1:] // a template or the text has spelt it
		}
	}
	size := rules.Context - len(first)
	for len(tokens) > 0 {
		piece := tokens[:min(size, len(tokens))]
		tokens = tokens[len(piece):]
		if rules.DropTail && len(piece) < size || len(first)+len(piece) < minChunk {
			k.Left += len(piece)
			continue
		}
		k.Chunks = append(k.Chunks, slices.Concat(first, piece))
	}
}

// A group is chunks that are measured side by side: of one kind, one half and one length.
type group struct {
	kind, half int
	chunks     [][]int
	place      float64 // share of the kind that comes before its middle
}

// groups divides the chunks of all kinds into groups of at most so many. Every other chunk of
// a kind is of the other half. The kinds advance evenly, so that a run that ends early has
// seen as much of each.
func groups(kinds []*Kind, most int) []group {
	var list []group
	for i, kind := range kinds {
		var mine []group
		for half := range 2 {
			var now group
			for c := half; c < len(kind.Chunks); c += 2 {
				chunk := kind.Chunks[c]
				if len(now.chunks) == most || len(now.chunks) > 0 && len(now.chunks[0]) != len(chunk) {
					mine = append(mine, now)
					now = group{}
				}
				if len(now.chunks) == 0 {
					now = group{kind: i, half: half, place: (float64(c) + 0.5) / float64(len(kind.Chunks))}
				}
				now.chunks = append(now.chunks, chunk)
			}
			if len(now.chunks) > 0 {
				mine = append(mine, now)
			}
		}
		list = append(list, mine...)
	}
	slices.SortStableFunc(list, func(a, b group) int { return cmp.Compare(a.place, b.place) })
	return list
}
