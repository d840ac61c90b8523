package manifest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

// StructureDigest returns the structure digest of a model, which needs its headers
// only. A model that lacks shards has none, nor has one with a name twice, nor one with a
// control character in a name: that is a [NameError].
func StructureDigest(m *gguf.Model) (Digest, error) {
	if !m.Complete() {
		return Digest{}, fmt.Errorf("shard %q is missing, so the model's structure is not known", slices.Concat(m.Missing, m.Unreadable)[0])
	}
	if err := checkNames(unnamableTensors(m)); err != nil {
		return Digest{}, err
	}
	tensors := m.Tensors()
	return digestTensors(len(tensors), func(i int) tensorLine {
		return tensorLine{tensors[i].Name, tensors[i].Type.String(), tensors[i].Shape}
	}, nil)
}

// splitPrefix begins the keys that say how an artifact is cut, not what it is.
const splitPrefix = "split."

func isSplitKey(key string) bool { return strings.HasPrefix(key, splitPrefix) }

// MetadataDigest returns the metadata digest of md: every key but split.*. It reads
// long values from their file. A key that comes twice is an error.
func MetadataDigest(md *gguf.Metadata) (Digest, error) {
	pairs, err := PinPairs(md)
	if err != nil {
		return Digest{}, err
	}
	return digestPairs(pairs)
}

// PinPairs returns what identifies each pair of md but split.*, sorted by key.
func PinPairs(md *gguf.Metadata) ([]Pair, error) {
	pairs := make([]Pair, 0, md.Len())
	h, buf := blake3.New(), make([]byte, 32<<10) // for all keys: there can be many
	for key, value := range md.All() {
		if isSplitKey(key) {
			continue
		}
		h.Reset()
		if _, err := io.CopyBuffer(h, value.Reader(), buf); err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		pair := Pair{Key: key, Type: value.Type().String()}
		h.Sum(pair.BLAKE3[:0])
		pairs = append(pairs, pair)
	}
	slices.SortStableFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Key, b.Key) })
	return pairs, nil
}

// digestPairs returns the metadata digest of pairs, which must be sorted by key.
func digestPairs(pairs []Pair) (Digest, error) {
	h := blake3.New()
	var line []byte
	for i, p := range pairs {
		if err := checkLineName("key", p.Key); err != nil {
			return Digest{}, err
		}
		if i > 0 {
			switch order := cmp.Compare(pairs[i-1].Key, p.Key); {
			case order == 0:
				return Digest{}, fmt.Errorf("key %q comes twice", p.Key)
			case order > 0:
				return Digest{}, fmt.Errorf("key %q comes behind key %q, want them sorted", p.Key, pairs[i-1].Key)
			}
		}
		line = append(append(line[:0], p.Key...), '\t')
		line = append(append(line, p.Type...), '\t')
		line = append(hex.AppendEncode(line, p.BLAKE3[:]), '\n')
		h.Write(line)
	}
	return Digest{BLAKE3, Sum(h.Sum(nil))}, nil
}

// tensorLine is what a digest of all tensors says about one of them.
type tensorLine struct {
	name  string
	typ   string   // as ggml spells it, upper case
	shape []uint64 // innermost first
}

// digestTensors returns the weights digest of n lines, sum telling the tensor digest of each,
// or their structure digest when sum is nil. Lines are asked for as they are needed: there
// can be very many.
func digestTensors(n int, line func(i int) tensorLine, sum func(i int) Sum) (Digest, error) {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(line(int(a)).name, line(int(b)).name) })
	h := blake3.New()
	var text []byte
	last := ""
	for i, at := range order {
		line := line(int(at))
		if err := checkLineName("tensor", line.name); err != nil {
			return Digest{}, err
		}
		if i > 0 && line.name == last {
			return Digest{}, fmt.Errorf("tensor name %q comes twice", line.name)
		}
		last = line.name
		text = append(append(append(append(text[:0], line.name...), '\t'), line.typ...), '\t')
		text = appendDims(text, gguf.CanonicalShape(line.shape))
		if sum != nil {
			sum := sum(int(at))
			text = hex.AppendEncode(append(text, '\t'), sum[:])
		}
		h.Write(append(text, '\n'))
	}
	return Digest{BLAKE3, Sum(h.Sum(nil))}, nil
}

// appendDims writes a shape as DIM0,DIM1,...
func appendDims(text []byte, shape []uint64) []byte {
	for i, d := range shape {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, d, 10)
	}
	return text
}
