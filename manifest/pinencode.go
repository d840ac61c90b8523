package manifest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"ggufreap/manifest/internal/strict"
)

// EncodePin writes the document of p: UTF-8 JSON, indented by two spaces, keys in the
// order of the type's fields, a newline at the end. The same pin gives the same bytes.
// It is compressed with zstd when name, which is not used otherwise, ends in ".zst".
func EncodePin(w io.Writer, name string, p *Pin) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".zst") {
		return strict.Encode(w, p)
	}
	// One goroutine: the cut into blocks must not depend on how many there are. Most of
	// the text is digests in base64, in which nothing repeats; entropy coding of all
	// literals takes 6 % off such a document, and a larger window nothing.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(2<<20), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return err
	}
	return errors.Join(strict.Encode(z, p), z.Close())
}

// checkText refuses text that JSON cannot hold as it is.
func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("pin: %s %q is not UTF-8", what, s)
	}
	return nil
}
