package files

import (
	"fmt"
	"os"

	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// maxDocument bounds the documents that are read whole.
const maxDocument = 64 << 20

// Read reads a file that is held in memory.
func Read(path string) ([]byte, error) { return ReadAtMost(path, maxDocument) }

// ReadAtMost reads a file of at most so many bytes.
func ReadAtMost(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", text.Safe(path))
	case info.Size() > most:
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", text.Safe(path), info.Size(), most)
	}
	return os.ReadFile(path)
}
