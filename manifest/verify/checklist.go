package verify

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
)

// sumsFile compares the files with a list that is read for the entries with their names.
func (c *checker) sumsFile(ctx context.Context, list string) error {
	f, _, err := manifest.OpenRegular(list)
	if err != nil {
		return err
	}
	defer f.Close()
	names := map[string]bool{}
	for _, file := range c.model.Paths() {
		names[filepath.Base(file)] = true
	}
	var mine lists.Sums
	all := 0
	err = lists.EachSum(f, func(s lists.FileSum) error {
		if all++; names[baseOf(s.Name)] && (c.options.Folder == "" || path.Dir(s.Name) == path.Clean(c.options.Folder)) {
			mine = append(mine, s)
		}
		if len(mine) > maxNamesakes {
			return fmt.Errorf("more than %d entries have names of the model's files; --folder says whose are meant", maxNamesakes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	for _, s := range mine {
		delete(names, baseOf(s.Name))
	}
	err = c.findRenamed(ctx, c.lacking(names), func(yield func(string, manifest.Sum)) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return lists.EachSum(f, func(s lists.FileSum) error { yield(s.Name, s.SHA256); return nil })
	})
	if err != nil {
		return err
	}
	return c.sums(ctx, mine, all)
}

// maxNamesakes bounds the entries of a list that have the names of the model's files: a split has
// at most 65,535.
const maxNamesakes = 1 << 17

// sums compares the sum of each of the model's files with that of its entry, of all that a
// list has.
func (c *checker) sums(ctx context.Context, s lists.Sums, all int) error {
	if c.options.Quick {
		return fmt.Errorf("a list of sums: %w", ErrNotQuick)
	}
	entries := make([]listedFile, len(s))
	for i, sum := range s {
		entries[i] = listedFile{sum.Name, -1, sum.SHA256, ""}
	}
	return c.listing(ctx, "the list of sums", entries, all)
}

// tree compares each of the model's files with its entry.
func (c *checker) tree(ctx context.Context, t lists.Tree) error {
	entries := make([]listedFile, len(t))
	for i, f := range t {
		entries[i] = listedFile{path: f.Path, size: f.Size}
		if f.SHA256 == nil {
			entries[i].no = "it is not in large-file storage, and a git object name is no hash of its bytes alone"
			continue
		}
		entries[i].sha256 = *f.SHA256
	}
	c.saySource()
	return c.listing(ctx, "the tree listing", entries, len(entries))
}

// saySource says whose listing this is, as far as anybody told.
func (c *checker) saySource() {
	repo, revision := c.options.Repo, c.options.Revision
	if repo == "" || revision == "" {
		c.report.gap("a tree listing does not name its repository and revision, and nobody said both",
			"whose files these are and of when; --repo and --revision put it on record")
	}
	if repo != "" || revision != "" {
		c.report.note("", fmt.Sprintf("the listing does not say what it is of; you said: repository %q at revision %q", repo, revision))
	}
	if revision != "" && !isCommit(revision) {
		c.report.note("", fmt.Sprintf("revision %q is no commit of 40 hexadecimal digits: a branch or tag can move", revision))
	}
}

func isCommit(revision string) bool {
	return len(revision) == 40 && strings.Trim(revision, "0123456789abcdef") == ""
}

// A listedFile is what a list says of one file.
type listedFile struct {
	path   string // with forward slashes
	size   int64  // -1 when the list does not say
	sha256 manifest.Sum
	no     string // why there is no sha256, or ""
}

// listing compares the model's files with a list.
func (c *checker) listing(ctx context.Context, what string, entries []listedFile, all int) error {
	var found []int // index in entries of each file's, or -1
	listed := 0
	entries = inFolder(entries, c.options.Folder)
	if err := c.renamedIn(ctx, entries); err != nil {
		return err
	}
	named := byName(entries)
	if err := ambiguous(what, c.model.Paths(), entries, named); err != nil {
		return err
	}
	for _, path := range c.model.Paths() {
		i := c.lookUp(what, path, entries, named)
		found = append(found, i)
		if i >= 0 || c.renamed[filepath.Base(path)] != "" {
			listed++
		}
	}
	if others := all - listed; others > 0 {
		c.report.gap(fmt.Sprintf("%s names other files too: %d", what, others), "whether those are there and right")
	}
	return c.compareFiles(ctx, what, entries, found)
}

// inFolder returns the entries of one folder of a list, all when none is named.
func inFolder(entries []listedFile, folder string) []listedFile {
	if folder == "" {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e listedFile) bool { return path.Dir(e.path) != path.Clean(folder) })
}

// ambiguous returns an error when a list has several files of each name, so that nothing of
// the model can be compared.
func ambiguous(what string, paths []string, entries []listedFile, named map[string][]int) error {
	var folders []string
	seen := map[string]bool{}
	for _, file := range paths {
		candidates := closestPaths(file, entries, named)
		if len(candidates) < 2 {
			return nil
		}
		for _, i := range candidates {
			if dir := path.Dir(entries[i].path); !seen[dir] {
				seen[dir] = true
				folders = append(folders, dir)
			}
		}
	}
	return &FolderError{what, folders}
}

// A FolderError says that the model's files have namesakes in several folders of a list, and
// that nothing says which of them the model is.
type FolderError struct {
	List    string
	Folders []string
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("nothing could be compared: %s has files of these names in several folders, %s", e.List, nameList(e.Folders))
}

// lookUp finds the entry of a file and compares what needs no reading. It returns -1
// when there is nothing to compare the bytes with.
func (c *checker) lookUp(what, path string, entries []listedFile, named map[string][]int) int {
	name := filepath.Base(path)
	candidates := closestPaths(path, entries, named)
	switch len(candidates) {
	case 0:
		if c.renamed[name] != "" {
			return -1
		}
		c.report.find(KindExtra, name, "is not in "+what)
		return -1
	case 1:
	default:
		c.report.find(KindList, name, fmt.Sprintf("%s has several files of that name: %q and %q", what, entries[candidates[0]].path, entries[candidates[1]].path))
		return -1
	}
	e := entries[candidates[0]]
	if e.no != "" {
		c.report.find(KindList, name, fmt.Sprintf("%s has no sha256 of it: %s", what, e.no))
		return -1
	}
	return candidates[0]
}

// byName returns the entries of each last part of a path.
func byName(entries []listedFile) map[string][]int {
	named := make(map[string][]int, len(entries))
	for i, e := range entries {
		name := path.Base(e.path)
		named[name] = append(named[name], i)
	}
	return named
}

// closestPaths returns the entries whose names end as the path does, for as many parts
// as any of them: a list can hold files of one name in several folders.
func closestPaths(path string, entries []listedFile, named map[string][]int) []int {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	most := 1
	var closest []int
	for _, i := range named[parts[len(parts)-1]] {
		n := sharedTail(parts, strings.Split(entries[i].path, "/"))
		if n > most {
			most, closest = n, nil
		}
		if n == most {
			closest = append(closest, i)
		}
	}
	return closest
}

// sharedTail counts the parts at the end that are the same.
func sharedTail(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// compareFiles compares sizes and then, unless quick, the bytes of the files that have
// an entry; found has the index of each file's, or -1.
func (c *checker) compareFiles(ctx context.Context, what string, entries []listedFile, found []int) error {
	files := c.model.Files
	todo := []int{}
	for i, at := range found {
		if at < 0 {
			continue
		}
		if size := entries[at].size; size >= 0 && size != files[i].Size {
			c.report.Add(otherSize(filepath.Base(files[i].Name), files[i].Size, size, what))
			continue
		}
		todo = append(todo, i)
	}
	if c.options.Quick {
		c.report.checked(fmt.Sprintf("sizes: %d of %d files have the bytes that %s says", len(todo), len(files), what))
		c.report.gap("no file was read", "whether any byte is the one listed")
		return nil
	}
	sums, err := c.sumFiles(ctx, todo)
	if err != nil {
		return err
	}
	same := len(c.renamed)
	for n, i := range todo {
		if want := entries[found[i]].sha256; sums[n] != want {
			c.report.find(KindDigest, filepath.Base(files[i].Name), fmt.Sprintf("sha256 is %s, %s says %s", sums[n], what, want))
			continue
		}
		same++
	}
	c.placeSums(nil)
	c.report.checked(fmt.Sprintf("sha256: %d of %d files have the one that %s says", same, len(files), what))
	return nil
}

// sumFiles returns the SHA-256 of the files with the given indexes.
func (c *checker) sumFiles(ctx context.Context, todo []int) ([]manifest.Sum, error) {
	var total int64
	for _, i := range todo {
		total += c.model.Files[i].Size
	}
	count := pass.NewMeter(total, c.options.Progress)
	sums := make([]manifest.Sum, len(todo))
	err := pass.ForEach(ctx, len(todo), c.options.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		f := c.model.Files[todo[n]]
		hasher := w.Hasher()
		if err := pass.Scan(ctx, f, f.Size, w.Buf, io.MultiWriter(hasher, count), nil, nil); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		sums[n] = hasher.Sum()
		return nil
	})
	return sums, err
}

// placeSums says which bytes of files with a wrong sum are; p is the pin that they were held
// against, if any.
func (c *checker) placeSums(p *manifest.Pin) {
	c.report.placeSums(func(name string) wrongSum {
		for _, f := range c.model.Files {
			switch {
			case filepath.Base(f.Name) != name:
			case p == nil:
				return wrongSum{size: f.Size}
			default:
				return pinnedSum(f, p)
			}
		}
		return wrongSum{}
	})
}
