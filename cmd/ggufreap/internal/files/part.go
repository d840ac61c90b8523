package files

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// partSuffix marks a file that does not have its own name yet.
const partSuffix = ".part"

// createPart makes the temporary file of a document, whose mode follows the umask, and
// removes those of runs that were killed. Its writer holds a lock on it.
func createPart(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	prefix := filepath.Join(dir, "."+name+".")
	removeParts(prefix)
	f, err := os.OpenFile(prefix+strings.ToLower(rand.Text()[:8])+partSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		lock(f) // where that is not possible, another run may remove it, and this one then fails
	}
	return f, err
}

// removeParts removes the temporary files of documents that nobody is writing any more. That
// one stays which cannot be removed is no reason not to write.
func removeParts(prefix string) {
	entries, _ := os.ReadDir(filepath.Dir(prefix))
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(prefix), e.Name())
		random, part := strings.CutSuffix(strings.TrimPrefix(path, filepath.Clean(prefix)), partSuffix)
		if !part || len(random) != 8 || !e.Type().IsRegular() {
			continue
		}
		if f, err := os.Open(path); err == nil {
			if lock(f) {
				os.Remove(path)
			}
			f.Close()
		}
	}
}
