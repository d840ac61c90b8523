package document

import (
	"bufio"
	"fmt"
	"io"
	"testing"

	"ggufreap/gguf"
)

// BenchmarkWrite writes a document like those of inspect: tensors of Kimi-K3, a vocabulary,
// numbers.
func BenchmarkWrite(b *testing.B) {
	type tensor struct {
		Name  Text     `json:"name"`
		Type  string   `json:"type"`
		Shape []uint64 `json:"shape"`
		Size  int64    `json:"size"`
		Role  *string  `json:"role"`
	}
	tensors := Elements(func(yield func(any) error) error {
		for i := range 2573 {
			if err := yield(tensor{Text(fmt.Sprintf("blk.%d.ffn_gate_exps.weight", i)), "IQ1_S", []uint64{3584, 3072, 896}, 1 << 30, nil}); err != nil {
				return err
			}
		}
		return nil
	})
	var words []string
	var numbers []int32
	for i := range 160_000 {
		words = append(words, fmt.Sprintf("\u0120模word%d", i))
		numbers = append(numbers, int32(i))
	}
	for name, list := range map[string]Elements{
		"tensors": tensors, "texts": Items(gguf.TextsValue(words...)), "numbers": Items(gguf.Int32sValue(numbers...)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				size := &counter{}
				w := bufio.NewWriter(size)
				if err := Write(w, struct {
					List Elements `json:"list"`
				}{list}); err != nil {
					b.Fatal(err)
				}
				w.Flush()
				b.SetBytes(size.n)
			}
		})
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return io.Discard.Write(p)
}
