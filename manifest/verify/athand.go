package verify

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// A claim is what somebody says of a file of the folder, or of one beside it.
type claim struct {
	name string
	sum  manifest.Sum
	by   string // who says so: a file, or what else
}

// sumsName tells by its name a list of sums that other programs write.
var sumsName = pattern.Lazy(`(?i)^(sha256sums?|sha256|checksums?)(\.txt|\.asc)?$|\.sha256(sums?)?$`)

// gatherClaims reads what lies at hand and says sums of the files: lists of other programs,
// names of files that are their digests, and what a hub's program took note of.
func (v *verifier) gatherClaims() error {
	entries, err := os.ReadDir(v.dir)
	if err != nil && gguf.MachineFault(err) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != manifest.SumsName && sumsName().MatchString(name) && !e.IsDir() {
			if err := v.readClaims(name); err != nil {
				return err
			}
		}
	}
	v.reportOthers()
	for _, m := range v.models {
		for _, path := range m.Paths() {
			if sum, ok := digestName(path); ok {
				v.claims = append(v.claims, claim{v.name(path), sum, "the name of its blob"})
			}
			if sum, by, ok := v.hubRecord(path); ok {
				v.claims = append(v.claims, claim{v.name(path), sum, by})
			}
		}
	}
	return nil
}

// readClaims reads a list of sums of another program. What it says of files that are not
// there, or are not looked at, is no matter here.
func (v *verifier) readClaims(name string) error {
	f, info, err := manifest.OpenRegular(v.path(name))
	if gguf.MachineFault(err) {
		return err
	}
	if err != nil {
		v.report.note(name, "could not be read as a list of sums: "+about(v.path(name), err))
		return nil
	}
	defer f.Close()
	c := &claims{v: v, by: name, exact: map[string]manifest.Sum{}, namesakes: map[string]namesake{}}
	take := func(s lists.FileSum) error {
		c.take(s)
		return nil
	}
	if bare, ok := bareSum(f, info.Size()); ok { // of the file that the list is named after
		err = take(lists.FileSum{Name: strings.TrimSuffix(name, filepath.Ext(name)), SHA256: bare})
	} else {
		err = lists.EachSum(f, take)
	}
	switch {
	case gguf.MachineFault(err):
		return err
	case err != nil:
		v.report.note(name, "could not be read as a list of sums: "+firstLine(err))
	default:
		c.settle()
	}
	return nil
}

// claims gathers what one list says of the files.
type claims struct {
	v         *verifier
	by        string
	exact     map[string]manifest.Sum // of files under their own paths
	namesakes map[string]namesake     // of files by entries whose last parts alone are theirs
	others    int                     // entries of no file
}

// A namesake is what entries with the name of a file say, those whose paths end most alike.
type namesake struct {
	tail, n int // parts of the path that are the same, and entries
	sum     manifest.Sum
}

// take takes an entry: there can be a million of one name in other folders.
func (c *claims) take(s lists.FileSum) {
	switch base := baseOf(s.Name); {
	case c.v.looked(s.Name):
		c.exact[s.Name] = s.SHA256
	case c.v.looked(base):
		path, err := filepath.Abs(c.v.path(base))
		if err != nil {
			path = c.v.path(base)
		}
		entry := namesake{sharedTail(strings.Split(filepath.ToSlash(path), "/"), strings.Split(s.Name, "/")), 1, s.SHA256}
		if known := c.namesakes[base]; known.tail > entry.tail {
			entry = known
		} else if known.tail == entry.tail {
			entry.n += known.n
		}
		c.namesakes[base] = entry
	default:
		c.others++
	}
}

// settle makes claims of what the list says of one file each.
func (c *claims) settle() {
	for _, file := range slices.Sorted(maps.Keys(c.namesakes)) {
		switch s := c.namesakes[file]; {
		case c.exact[file] != manifest.Sum{}:
		case s.n == 1:
			c.exact[file] = s.sum
		default:
			c.v.report.gap(fmt.Sprintf("%s has %s files of the name %q in other folders", c.by, words.Group(s.n), file), "whether one of them is it")
		}
	}
	for _, file := range slices.Sorted(maps.Keys(c.exact)) {
		c.v.claims = append(c.v.claims, claim{file, c.exact[file], c.by})
	}
	if c.others > 0 {
		c.v.otherLists = append(c.v.otherLists, c.by)
		c.v.otherFiles += c.others
	}
}

// reportOthers says which lists name files that are not there, or are not looked at.
func (v *verifier) reportOthers() {
	if n := len(v.otherLists); n == 1 {
		v.report.gap(fmt.Sprintf("%s names other files too: %s", v.otherLists[0], words.Group(v.otherFiles)), "whether those are there and right")
	} else if n > 1 {
		v.report.gap(fmt.Sprintf("%s name other files too, %s: %s", words.Count(n, "list"), words.Group(v.otherFiles), nameList(v.otherLists)), "whether those are there and right")
	}
}

// looked reports whether a file is one that is looked at.
func (v *verifier) looked(name string) bool {
	if len(v.contents) > 0 {
		_, ok := v.contents[name]
		return ok
	}
	return v.shards[name]
}

// bareSum reads a list that holds a digest and nothing else.
func bareSum(r io.ReaderAt, size int64) (manifest.Sum, bool) {
	text := make([]byte, min(size, 100))
	if _, err := r.ReadAt(text, 0); err != nil && err != io.EOF {
		return manifest.Sum{}, false
	}
	sum, err := manifest.ParseSum(strings.ToLower(strings.TrimSpace(string(text))))
	return sum, err == nil && size < 100
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// blobName is how the hub's caches and Ollama name a file after the SHA-256 of its bytes.
var blobName = pattern.Lazy(`^(?:sha256[-:])?([0-9a-f]{64})$`)

// digestName returns the digest that a file, or the one that it is a link to, is named after.
func digestName(path string) (manifest.Sum, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return manifest.Sum{}, false
	}
	match := blobName().FindStringSubmatch(filepath.Base(real))
	if match == nil {
		return manifest.Sum{}, false
	}
	sum, err := manifest.ParseSum(match[1])
	return sum, err == nil
}

// findSource looks beside the model for the pin of its source, when none was given: the one
// with the digest that the source is known to have, or that the metadata states.
func (v *verifier) findSource() error {
	m, want := v.main(), v.options.SourceDigest
	switch {
	case m == nil:
		return nil
	case v.options.Source != nil:
		return v.holdSource()
	}
	known := !want.IsZero()
	if !known && v.options.SourceKey != "" {
		want, _ = manifest.ParseDigest(m.Metadata().Text(v.options.SourceKey))
	}
	if want.IsZero() {
		return nil
	}
	pins, err := v.pinsOf(want)
	switch {
	case err != nil:
		return err
	case len(pins) == 0 && known:
		return fmt.Errorf("%s: no pin with pin digest %s lies there, --source-pin names one", v.dir, want)
	case len(pins) == 0:
		return nil
	}
	first := pins[0]
	v.options.Source = first.pin
	v.report.note(first.name, "is the pin of the source, and was used")
	v.holdPin(first.name, first.pin)
	if !known {
		v.report.gap("the pin digest of the source is the one that the release itself states", "that the claimed source is the one you have in mind: hold it against a digest that came another way, with --source-digest")
	}
	return nil
}

// holdSource finds the pin of the source that was given among the files: the digest that it
// was given with vouches for it there.
func (v *verifier) holdSource() error {
	given := v.options.Source
	pins, err := v.pinsOf(given.PinDigest)
	for _, p := range pins {
		if reflect.DeepEqual(p.pin.Declared, given.Declared) {
			v.report.Hold(p.name)
		} else {
			v.holdPin(p.name, p.pin)
			v.report.note(p.name, "is the pin of the source, and declares other things of it than the one that was given")
		}
	}
	return err
}

// A namedPin is a pin that lies in the folder.
type namedPin struct {
	name string
	pin  *manifest.Pin
}

// pinsOf returns the pins of the folder that have a pin digest.
func (v *verifier) pinsOf(want manifest.Digest) ([]namedPin, error) {
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		return nil, nil // it may be read, but not listed
	}
	var pins []namedPin
	for _, e := range entries {
		pin, err := v.pinAt(e)
		if err != nil {
			return nil, err
		}
		if pin != nil && pin.PinDigest == want {
			pins = append(pins, namedPin{e.Name(), pin})
		}
	}
	return pins, nil
}

// holdPin takes note that a pin of the folder was held against a digest. What it declares is in
// none.
func (v *verifier) holdPin(name string, pin *manifest.Pin) {
	v.report.Hold(name)
	for _, said := range pin.Declared.Statements() {
		v.declared = append(v.declared, fmt.Sprintf("%s: %s", name, strings.ReplaceAll(said.Name, "_", " ")))
	}
}

// pinAt reads a file that may be a pin; nil when it is none.
func (v *verifier) pinAt(e fs.DirEntry) (*manifest.Pin, error) {
	name := e.Name()
	if name == manifest.PinName || e.IsDir() || !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".zst") {
		return nil, nil
	}
	pin, err := manifest.ReadPin(v.path(name))
	if gguf.MachineFault(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return pin, nil
}
