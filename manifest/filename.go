package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// PinName is the name of the pin in a release folder.
const PinName = "pin.json.zst"

// SumsName is the name of a release's list of sums, which sha256sum -c reads.
const SumsName = "MANIFEST.sha256"

// JournalName is the file that stands in a folder from before a release's first byte
// until after its last. A folder that holds it is not finished.
const JournalName = "UNFINISHED.jsonl"

// OldHeaderSuffix ends the name of the file that stands beside a model's file while its header
// is replaced where it lies. A file beside which it stands may be half changed.
const OldHeaderSuffix = ".old-header"

// MaxFileName bounds a file name: the longest path that common systems open.
const MaxFileName = 4096

// CheckFileName refuses a name that is not a clean path inside the list's folder.
func CheckFileName(name string) error {
	switch {
	case name == "":
		return errors.New("file name is empty")
	case len(name) > MaxFileName:
		return fmt.Errorf("file name has %d bytes, want at most %d", len(name), MaxFileName)
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
