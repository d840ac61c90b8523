package manifest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"

	"github.com/zeebo/blake3"
)

// Validate returns the first thing in which the pin contradicts itself: sums of sizes,
// shapes against types, slabs against shapes, digests against what they rest on.
func (p *Pin) Validate() error {
	if p.Schema != PinSchema {
		return fmt.Errorf("pin: schema is %q, want %q", p.Schema, PinSchema)
	}
	if err := p.checkFiles(); err != nil {
		return err
	}
	if err := p.checkMetadata(); err != nil {
		return err
	}
	if err := p.checkTensors(); err != nil {
		return err
	}
	weights, err := p.weights()
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	if weights != p.WeightsDigest {
		return fmt.Errorf("pin: weights digest is %q, the tensors give %q", p.WeightsDigest, weights)
	}
	if digest := p.digest(); digest != p.PinDigest {
		return fmt.Errorf("pin: pin digest is %q, weights, experts and metadata give %q", p.PinDigest, digest)
	}
	return p.Declared.check()
}

func (p *Pin) checkFiles() error {
	a := p.Artifact
	if a.Version != 2 && a.Version != 3 {
		return fmt.Errorf("pin: GGUF version %d is not known; versions 2 and 3 are", a.Version)
	}
	if err := cmp.Or(checkText("model name", a.Name), checkText("architecture", a.Architecture)); err != nil {
		return err
	}
	if a.Shards != len(p.Files) || a.Shards == 0 {
		return fmt.Errorf("pin: %s, but %s", words.Count(a.Shards, "shard"), words.Count(len(p.Files), "file"))
	}
	var names []string
	var total int64
	for _, f := range p.Files {
		if err := checkText("file name", f.Name); err != nil {
			return err
		}
		if err := CheckFileName(f.Name); err != nil {
			return fmt.Errorf("pin: %w", err)
		}
		if strings.ContainsRune(f.Name, '/') {
			return fmt.Errorf("pin: file name %q names a folder too", f.Name)
		}
		if f.Size < minFile || f.Size > math.MaxInt64-total {
			return fmt.Errorf("pin: file %q has %d bytes", f.Name, f.Size)
		}
		total += f.Size
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < len(p.Files) {
		return errors.New("pin: a file name comes twice")
	}
	if total != a.FileBytes {
		return fmt.Errorf("pin: files have %d bytes, the model says %d", total, a.FileBytes)
	}
	return nil
}

func (p *Pin) checkMetadata() error {
	if p.Metadata == nil {
		return errors.New("pin: metadata is missing")
	}
	for _, pair := range p.Metadata {
		if err := checkText("key", pair.Key); err != nil {
			return err
		}
		if _, err := gguf.ParseValueType(pair.Type); err != nil {
			return fmt.Errorf("pin: key %q: %w", pair.Key, err)
		}
		if isSplitKey(pair.Key) {
			return fmt.Errorf("pin: key %q says how the files are cut, which no pin has", pair.Key)
		}
	}
	digest, err := digestPairs(p.Metadata)
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	if digest != p.MetadataDigest {
		return fmt.Errorf("pin: metadata digest is %q, the keys give %q", p.MetadataDigest, digest)
	}
	return p.checkArchitecture()
}

// The byte orders of [Artifact.ByteOrder].
const (
	littleEndian = "little"
	bigEndian    = "big"
)

// checkArchitecture compares the architecture with the digest of its key, in the byte order
// that the pin states.
func (p *Pin) checkArchitecture() error {
	name := p.Artifact.Architecture
	var order binary.AppendByteOrder = binary.LittleEndian
	switch p.Artifact.ByteOrder {
	case littleEndian:
	case bigEndian:
		order = binary.BigEndian
	default:
		return fmt.Errorf("pin: byte order is %q, want %q or %q", p.Artifact.ByteOrder, littleEndian, bigEndian)
	}
	i := slices.IndexFunc(p.Metadata, func(pair Pair) bool { return pair.Key == gguf.KeyArchitecture && pair.Type == gguf.Text.String() })
	if i < 0 {
		if name != "" {
			return fmt.Errorf("pin: architecture is %q, and no key says so", name)
		}
		return nil
	}
	if Sum(blake3.Sum256(append(order.AppendUint64(nil, uint64(len(name))), name...))) == p.Metadata[i].BLAKE3 {
		return nil
	}
	return fmt.Errorf("pin: architecture is %q, key %q has the digest of another", name, gguf.KeyArchitecture)
}

func (p *Pin) checkTensors() error {
	var total int64
	digests := 0
	for i := range p.Tensors {
		t := &p.Tensors[i]
		if t.Slabs != nil {
			digests += len(t.Slabs.BLAKE3) / len(Sum{})
		}
		if digests > maxSlabDigests {
			return fmt.Errorf("pin: more than %d digests of experts", maxSlabDigests)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("pin: tensor %q: %w", t.Name, err)
		}
		if t.Size > math.MaxInt64-total {
			return fmt.Errorf("pin: tensor %q: %d bytes are too many", t.Name, t.Size)
		}
		total += t.Size
	}
	if err := p.checkEqualData(); err != nil {
		return err
	}
	if total != p.Artifact.TensorBytes || total > p.Artifact.FileBytes {
		return fmt.Errorf("pin: tensors have %d bytes, the model says %d in files of %d", total, p.Artifact.TensorBytes, p.Artifact.FileBytes)
	}
	return nil
}

// checkEqualData wants tensors that are equal by their digests to have as many bytes, and
// the same slabs when they are cut alike.
func (p *Pin) checkEqualData() error {
	order := make([]int32, len(p.Tensors))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &p.Tensors[a], &p.Tensors[b]
		return cmp.Or(bytes.Compare(x.BLAKE3[:], y.BLAKE3[:]), cmp.Compare(x.SlabCount(), y.SlabCount()), cmp.Compare(a, b))
	})
	for i := 1; i < len(order); i++ {
		a, b := &p.Tensors[order[i-1]], &p.Tensors[order[i]]
		switch {
		case a.BLAKE3 != b.BLAKE3:
		case a.Size != b.Size:
			return fmt.Errorf("pin: tensors %q and %q have one digest, and %d and %d bytes", a.Name, b.Name, a.Size, b.Size)
		case a.Slabs != nil && a.SlabCount() == b.SlabCount() && !bytes.Equal(a.Slabs.all(), b.Slabs.all()):
			return fmt.Errorf("pin: tensors %q and %q have one digest, and other experts", a.Name, b.Name)
		}
	}
	return nil
}

// minFile is how long a file is that holds nothing: magic, version and two counts.
const minFile = 24
