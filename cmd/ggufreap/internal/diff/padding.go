package diff

import (
	"io"

	"ggufreap/manifest"
)

// differsInPadding reports whether the copies of a tensor differ in nothing but the zeros
// behind them. Where a type's block size is not known, a tensor ends with the padding
// before the next one, if any, so that another cut or alignment changes its length.
func (d *Difference) differsInPadding(c manifest.TensorChange) (bool, error) {
	if c.Change != manifest.Changed || c.A.Size == c.B.Size {
		return false, nil
	}
	short, long := c.A, c.B
	if short.Size > long.Size {
		short, long = long, short
	}
	data, alignment := d.anyCopy(c.Name)
	padding := long.Size - short.Size
	if padding >= alignment {
		return false, nil
	}
	sum, err := sumOf(io.NewSectionReader(data, 0, short.Size), short.Size)
	if err != nil || sum != short.BLAKE3 {
		return false, err
	}
	padded := io.MultiReader(io.NewSectionReader(data, 0, short.Size), io.LimitReader(zeros{}, padding))
	sum, err = sumOf(padded, long.Size)
	return sum == long.BLAKE3, err
}

// anyCopy returns the data of a tensor in one of the artifacts, and the greatest
// alignment that it has in them, which is 0 when both sides are pins.
func (d *Difference) anyCopy(tensor string) (data io.ReaderAt, alignment int64) {
	for _, s := range []*Side{d.a, d.b} {
		if s.Model != nil {
			t := s.Model.Tensor(tensor)
			data, alignment = t.Reader(), max(alignment, t.File().Alignment)
		}
	}
	return data, alignment
}

func sumOf(r io.Reader, size int64) (manifest.Sum, error) {
	h := manifest.NewTensorHasher()
	if err := h.Reset(size, 0); err != nil {
		return manifest.Sum{}, err
	}
	if _, err := io.Copy(h, r); err != nil {
		return manifest.Sum{}, err
	}
	sums, err := h.Sums()
	return sums.BLAKE3, err
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
