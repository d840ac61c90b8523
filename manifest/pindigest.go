package manifest

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

// digest returns the pin digest, BLAKE3-256 over lines of five kinds, sorted as bytes:
//
//	ids TAB NAME TAB BASE64 LF
//	key TAB KEY TAB TYPE TAB HEX LF
//	order TAB big LF
//	slabs TAB NAME TAB COUNT TAB BASE64 LF
//	tensor TAB NAME TAB TYPE TAB DIM0,DIM1,... TAB HEX LF
//
// with everything as the document has it, but dims in canonical shape; of ids it is what
// tells which expert is nearest. The order of bytes has a line where it is not the usual one:
// the same bytes are other numbers then. It binds all that
// a proof rests on: two pins with one pin digest say the same of weights, experts and
// metadata.
func (p *Pin) digest() Digest {
	sorted := make([]*Tensor, len(p.Tensors))
	for i := range p.Tensors {
		sorted[i] = &p.Tensors[i]
	}
	slices.SortFunc(sorted, func(a, b *Tensor) int { return cmp.Compare(a.Name, b.Name) })
	h := blake3.New()
	for _, t := range sorted {
		if t.IDs != nil {
			writeBase64(h, "ids\t"+t.Name+"\t", t.IDs.Nearest)
		}
	}
	for _, pair := range p.Metadata { // sorted by key already
		writeFields(h, "key", pair.Key, pair.Type, pair.BLAKE3.String())
	}
	if p.Artifact.ByteOrder == bigEndian {
		writeFields(h, "order", bigEndian)
	}
	for _, t := range sorted {
		if t.Slabs != nil {
			writeBase64(h, "slabs\t"+t.Name+"\t"+strconv.Itoa(t.Slabs.Count)+"\t", t.Slabs.all())
		}
	}
	var line []byte
	for _, t := range sorted {
		line = append(append(append(append(append(line[:0], "tensor\t"...), t.Name...), '\t'), t.Type...), '\t')
		line = append(appendDims(line, gguf.CanonicalShape(t.Shape)), '\t')
		h.Write(append(hex.AppendEncode(line, t.BLAKE3[:]), '\n'))
	}
	return Digest{BLAKE3, Sum(h.Sum(nil))}
}

func writeBase64(w io.Writer, head string, data []byte) {
	io.WriteString(w, head)
	text := base64.NewEncoder(base64.StdEncoding, w)
	text.Write(data)
	text.Close()
	io.WriteString(w, "\n")
}

// CheckDigest refuses a pin with another pin digest than the wanted one, unless that is
// zero.
func (p *Pin) CheckDigest(want Digest) error {
	if want.IsZero() || p.PinDigest == want {
		return nil
	}
	return fmt.Errorf("pin digest is %s, want %s: it is another pin", p.PinDigest, want)
}

func writeFields(w io.Writer, fields ...string) {
	for i, f := range fields {
		end := "\t"
		if i == len(fields)-1 {
			end = "\n"
		}
		io.WriteString(w, f+end)
	}
}
