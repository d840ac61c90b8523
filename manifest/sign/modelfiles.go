package sign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
	"golang.org/x/crypto/blake2b"
)

// A Fault is a file that is not as the signed list says.
type Fault struct {
	File string
	What string
}

// FilesOptions say how a folder is compared with a signed list.
type FilesOptions struct {
	// Signature is the path of the signature's own file, which no list holds.
	Signature string
	// Known returns the SHA-256 of a file that was read already; nil knows none.
	Known func(name string) (sum [32]byte, ok bool)
	// Unlisted allows files that are not listed.
	Unlisted bool
	// Progress is told how many bytes were read; nil is not.
	Progress func(n int64)
}

// CheckFiles compares a model, a folder or a single file, with the signed list. Faults are
// sorted by file. Unsigned are the files that the list leaves out on purpose: nothing
// vouches for them. The error only means that the check could not be carried out.
func (m *Model) CheckFiles(ctx context.Context, root string, o FilesOptions) (faults []Fault, unsigned []string, err error) {
	c := &filesCheck{model: m, options: o, found: map[string]int64{}}
	if err := c.enumerate(root); err != nil {
		return nil, nil, err
	}
	if err := c.compare(ctx); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(c.faults, func(a, b Fault) int { return strings.Compare(a.File+"\x00"+a.What, b.File+"\x00"+b.What) })
	return c.faults, c.unsigned, nil
}

type filesCheck struct {
	model    *Model
	options  FilesOptions
	dir      string
	found    map[string]int64 // sizes of the files that count
	faults   []Fault
	unsigned []string
}

func (c *filesCheck) fault(file, format string, args ...any) {
	c.faults = append(c.faults, Fault{file, fmt.Sprintf(format, args...)})
}

// faulty reports whether something was said of a file.
func (c *filesCheck) faulty(file string) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool { return f.File == file })
}

// enumerate finds the files that a list must name.
func (c *filesCheck) enumerate(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		c.dir = filepath.Dir(root)
		c.found[filepath.Base(root)] = info.Size()
		return nil
	}
	c.dir = root
	signature, _ := os.Stat(c.options.Signature)
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		return c.entry(filepath.ToSlash(name), path, e, signature)
	})
}

// entry looks at one entry of a folder.
func (c *filesCheck) entry(name, path string, e fs.DirEntry, signature fs.FileInfo) error {
	if c.ignored(name) {
		if !slices.Contains(neverSigned, name) {
			c.unsigned = append(c.unsigned, name)
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	link := e.Type()&fs.ModeSymlink != 0
	switch {
	case e.IsDir():
		return nil
	case link && !c.model.Settings.AllowSymlinks:
		c.fault(name, "is a symbolic link, which the signature does not allow")
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && link:
		c.fault(name, "is a symbolic link that leads nowhere")
	case err != nil:
		return err
	case signature != nil && os.SameFile(info, signature):
	case info.IsDir():
		c.fault(name, "is a symbolic link to a folder, which is not followed")
	case !info.Mode().IsRegular():
		c.fault(name, "is not a regular file")
	default:
		c.found[name] = info.Size()
	}
	return nil
}

func (c *filesCheck) ignored(name string) bool {
	return slices.Contains(neverSigned, name) || slices.Contains(c.model.Settings.IgnorePaths, name)
}

// compare holds every listed resource against its file, and looks for files that are not
// listed.
func (c *filesCheck) compare(ctx context.Context) error {
	covered := map[string]int64{} // bytes of each file that resources cover
	for _, r := range c.model.Resources {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.resource(r, covered); err != nil {
			return err
		}
	}
	for name, size := range c.found {
		listed, ok := covered[name]
		switch {
		case !ok && size == 0 && c.model.Settings.Method == "shards": // empty files have no ranges
		case !ok && !c.options.Unlisted:
			c.fault(name, "is not listed: nothing vouches for it")
		case ok && listed != size:
			c.fault(name, "has %d bytes, of which %d are listed", size, listed)
		}
	}
	return nil
}

// resource compares one file, or one range of a file.
func (c *filesCheck) resource(r Resource, covered map[string]int64) error {
	name, start, end := r.Name, int64(0), int64(-1)
	if c.model.Settings.Method == "shards" {
		name, start, end, _ = splitRange(r.Name)
	}
	size, ok := c.found[name]
	if !ok {
		if _, told := covered[name]; !told && !c.faulty(name) {
			c.fault(name, "is listed and not there")
		}
		covered[name] = 0
		return nil
	}
	if end < 0 {
		end = size
	} else if want := min(start+c.model.Settings.ShardSize, size); start%c.model.Settings.ShardSize != 0 || end != want {
		c.fault(name, "the range from %d to %d is not one of ranges of %d bytes of %d", start, end, c.model.Settings.ShardSize, size)
		covered[name] += end - start
		return nil
	}
	covered[name] += end - start
	got, err := c.digest(name, r.Algorithm, start, end-start)
	if err != nil {
		return err
	}
	if got != r.Digest {
		c.fault(r.Name, "%s is %s, the signed list says %s", r.Algorithm, got, r.Digest)
	}
	return nil
}

func (c *filesCheck) digest(name, algorithm string, start, length int64) (string, error) {
	if c.options.Known != nil && algorithm == "sha256" && c.model.Settings.Method == "files" {
		if sum, ok := c.options.Known(name); ok {
			return hex.EncodeToString(sum[:]), nil
		}
	}
	f, err := os.Open(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, err := newHash(algorithm)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(h, progressReader{io.NewSectionReader(f, start, length), c.options.Progress})
	if err != nil {
		return "", err
	}
	if n != length {
		return "", fmt.Errorf("%s: %w: %d of %d bytes from byte %d", f.Name(), io.ErrUnexpectedEOF, n, length, start)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func newHash(algorithm string) (hash.Hash, error) {
	switch algorithm {
	case "sha256":
		return sha256.New(), nil
	case "blake2b":
		return blake2b.New512(nil)
	case "blake3":
		return blake3.New(), nil
	}
	return nil, errors.New("algorithm " + algorithm + " is not known")
}

type progressReader struct {
	io.Reader
	progress func(n int64)
}

func (r progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.progress != nil {
		r.progress(int64(n))
	}
	return n, err
}

// Folder lists the files of a folder that a bundle over it covers, with their SHA-256: all but
// the signature's own and those of git. What known tells is not read. A symbolic link is an
// error: a signature does not follow them.
func Folder(ctx context.Context, dir string, o FilesOptions) ([]File, error) {
	c := &filesCheck{model: newModel("", nil), options: o, found: map[string]int64{}}
	if err := c.enumerate(dir); err != nil {
		return nil, err
	}
	if len(c.faults) > 0 {
		return nil, fmt.Errorf("%s: %s", filepath.Join(dir, filepath.FromSlash(c.faults[0].File)), c.faults[0].What)
	}
	var files []File
	for _, name := range slices.Sorted(maps.Keys(c.found)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := c.digest(name, "sha256", 0, c.found[name])
		if err != nil {
			return nil, err
		}
		sum, err := hex.DecodeString(text)
		if err != nil {
			return nil, err
		}
		files = append(files, File{name, [32]byte(sum)})
	}
	return files, nil
}
