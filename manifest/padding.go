package manifest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// Padding is what of a file lies in no key and no tensor: behind the table of tensors,
// between tensors, and behind the last one.
type Padding struct {
	Bytes  int64
	Filled []Range // what of it is not zero, joined where less than 64 bytes lie between
	More   int     // ranges that are not in Filled
}

// A Range is bytes of a file.
type Range struct{ Offset, Length int64 }

// maxFilled bounds the ranges that are listed of a file.
const maxFilled = 100

// see takes the next bytes of padding.
func (p *Padding) see(part []byte, offset int64) {
	p.Bytes += int64(len(part))
	for i, b := range part {
		if b != 0 {
			p.fill(offset + int64(i))
		}
	}
}

func (p *Padding) fill(at int64) {
	const join = 64
	if n := len(p.Filled); n > 0 {
		if last := &p.Filled[n-1]; at-last.Offset-last.Length < join {
			last.Length = at + 1 - last.Offset
			return
		}
	}
	if len(p.Filled) == maxFilled {
		p.More++
		return
	}
	p.Filled = append(p.Filled, Range{at, 1})
}

// ReadPadding reads the padding of a file whose header is sound, and no other byte.
func ReadPadding(ctx context.Context, f *gguf.File) (Padding, error) {
	var p Padding
	buf := make([]byte, 64<<10)
	at := f.HeaderSize
	upTo := func(end int64) error {
		return pass.ReadRange(ctx, f, at, end, buf, func(part []byte, offset int64) error {
			p.see(part, offset)
			return nil
		})
	}
	byOffset := func(a, b *gguf.Tensor) int { return cmp.Compare(a.Offset, b.Offset) }
	for _, t := range slices.SortedFunc(slices.Values(f.Tensors), byOffset) {
		if err := upTo(t.DataOffset()); err != nil {
			return p, fmt.Errorf("%s: %w", f.Name, err)
		}
		at = max(at, t.DataOffset()+t.Size)
	}
	if err := upTo(f.Size); err != nil {
		return p, fmt.Errorf("%s: %w", f.Name, err)
	}
	return p, nil
}
