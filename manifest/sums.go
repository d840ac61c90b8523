package manifest

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// SumsName is the name of a release's list of sums, which sha256sum -c reads.
const SumsName = "MANIFEST.sha256"

// JournalName is the file that stands in a folder from before a release's first byte
// until after its last. A folder that holds it is not finished.
const JournalName = "UNFINISHED.jsonl"

// FileSum is one line of a sums file: a file and the SHA-256 of its bytes. Name is
// relative to the folder that holds the list, with forward slashes.
type FileSum struct {
	Name   string
	SHA256 Sum
}

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
		if err := CheckSumsName(s.Name); err != nil {
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

// maxSumsName bounds a file name: the longest path that common systems open.
const maxSumsName = 4096

// CheckSumsName refuses a name that is not a clean path inside the list's folder.
func CheckSumsName(name string) error {
	switch {
	case name == "":
		return errors.New("file name is empty")
	case len(name) > maxSumsName:
		return fmt.Errorf("file name has %d bytes, want at most %d", len(name), maxSumsName)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("file name %q has a zero byte", name)
	case name[0] == '/' || hasDrive(name):
		return fmt.Errorf("file name %q is absolute, want one inside the folder", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "..":
			return fmt.Errorf("file name %q leaves the folder", name)
		case "", ".":
			return fmt.Errorf("file name %q has an empty part", name)
		}
	}
	return nil
}

// hasDrive reports whether name begins with a Windows drive and a separator.
func hasDrive(name string) bool {
	if len(name) < 3 || name[1] != ':' || name[2] != '/' && name[2] != '\\' {
		return false
	}
	c := name[0] | 0x20
	return 'a' <= c && c <= 'z'
}
