package lists

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ggufreap/manifest"
)

// FileSum is one line of a sums file: a file and the SHA-256 of its bytes. Name is
// relative to the folder that holds the list, with forward slashes.
type FileSum struct {
	Name   string
	SHA256 manifest.Sum
}

// Sums are the entries of a list of SHA-256 sums, as evidence.
type Sums []FileSum

// WriteSums writes lines as GNU sha256sum does: digits, two spaces, name, LF; sorted
// by name as bytes; a name with a backslash, LF or CR escaped and its line begun
// with a backslash. Names that are not clean relative paths, that come twice, and
// an empty list are errors: ReadSums would refuse them.
func WriteSums(w io.Writer, sums []FileSum) error {
	if len(sums) == 0 {
		return errors.New("no files to list")
	}
	sorted := slices.SortedFunc(slices.Values(sums), func(a, b FileSum) int {
		return cmp.Compare(a.Name, b.Name)
	})
	out := bufio.NewWriter(w)
	for i, s := range sorted {
		if err := manifest.CheckFileName(s.Name); err != nil {
			return err
		}
		if i > 0 && s.Name == sorted[i-1].Name {
			return fmt.Errorf("name %q is listed twice", s.Name)
		}
		name := nameEscaper.Replace(s.Name)
		if name != s.Name {
			out.WriteByte('\\')
		}
		fmt.Fprintf(out, "%s  %s\n", s.SHA256, name)
	}
	return out.Flush()
}

var nameEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
