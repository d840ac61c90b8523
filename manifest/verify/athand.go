package verify

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"ggufreap/gguf"
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
var sumsName = regexp.MustCompile(`(?i)^(sha256sums?|sha256|checksums?)(\.txt|\.asc)?$|\.sha256(sums?)?$`)

// gatherClaims reads what lies at hand and says sums of the files: lists of other programs,
// and names of files that are their digests.
func (v *verifier) gatherClaims() error {
	entries, err := os.ReadDir(v.dir)
	if err != nil && gguf.MachineFault(err) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != manifest.SumsName && sumsName.MatchString(name) && !e.IsDir() {
			if err := v.readClaims(name); err != nil {
				return err
			}
		}
	}
	for _, m := range v.models {
		for _, path := range m.Paths() {
			if sum, ok := digestName(path); ok {
				v.claims = append(v.claims, claim{v.name(path), sum, "the name of its blob"})
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
	others, before := 0, len(v.claims)
	take := func(s lists.FileSum) error {
		if file, ok := v.present(s.Name); ok {
			v.claims = append(v.claims, claim{file, s.SHA256, name})
		} else {
			others++
		}
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
		v.claims = v.claims[:before]
		v.report.note(name, "could not be read as a list of sums: "+firstLine(err))
	case others > 0:
		v.report.gap(fmt.Sprintf("%s names other files too: %s", name, words.Group(others)), "whether those are there and right")
	}
	return nil
}

// present returns the file that an entry of a list means: the one of its path, or of its
// last part.
func (v *verifier) present(entry string) (string, bool) {
	looked := func(name string) bool {
		if len(v.contents) > 0 {
			_, ok := v.contents[name]
			return ok
		}
		return slices.ContainsFunc(v.models, func(m *gguf.Model) bool {
			return slices.ContainsFunc(m.Paths(), func(path string) bool { return v.name(path) == name })
		})
	}
	for _, name := range []string{entry, baseOf(entry)} {
		if looked(name) {
			return name, true
		}
	}
	return "", false
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
var blobName = regexp.MustCompile(`^(?:sha256[-:])?([0-9a-f]{64})$`)

// digestName returns the digest that a file, or the one that it is a link to, is named after.
func digestName(path string) (manifest.Sum, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return manifest.Sum{}, false
	}
	match := blobName.FindStringSubmatch(filepath.Base(real))
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

// partName tells a file that a program which downloads writes, and what it is a part of.
var partName = regexp.MustCompile(`(?i)^(.+?)((?:\.[0-9a-f]{6,64})?\.(?:aria2|part|partial|incomplete|crdownload|download|opdownload|filepart|!qb|!ut|!bt|bc!|td|tmp|temp|st))$`)

func isPart(name string) bool { return partName.MatchString(name) }

// reportDownloads reports files that are not whole, by what programs leave that download.
func (v *verifier) reportDownloads() {
	for _, name := range v.downloads() {
		of := partName.FindStringSubmatch(name)[1]
		_, beside := v.present(of)
		switch {
		case beside && v.vouched[of]:
			v.report.note(name, fmt.Sprintf("is what a download of %q left", of))
		case beside:
			v.report.find(KindStructure, of, fmt.Sprintf("may not be whole: %q beside it marks a download that is not finished", name))
		case gguf.IsModelFile(of):
			v.report.find(KindStructure, name, fmt.Sprintf("is part of a download of %q that is not finished", of))
		}
	}
}

// reportUnsettled reports files beside which stands what an interrupted edit in place leaves.
func (v *verifier) reportUnsettled(names []string) {
	for _, m := range v.models {
		for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
			names = append(names, v.name(path))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, err := os.Lstat(v.path(name) + manifest.OldHeaderSuffix); err == nil {
			v.report.find(KindStructure, name, fmt.Sprintf("an edit in place was interrupted, so that its header may be half the old and half the new one: \"ggufreap edit --in-place\" takes it back, with %q beside it", path.Base(name)+manifest.OldHeaderSuffix))
		}
	}
}

// downloads lists the files beside the models that are named like parts of downloads.
func (v *verifier) downloads() []string {
	if len(v.contents) > 0 {
		return v.parts
	}
	entries, _ := os.ReadDir(v.dir)
	var parts []string
	for _, e := range entries {
		if match := partName.FindStringSubmatch(e.Name()); match != nil && v.mine(match[1]) {
			parts = append(parts, e.Name())
		}
	}
	return parts
}

// mine reports whether a file is, or would be, one of the artifact's.
func (v *verifier) mine(name string) bool {
	return slices.ContainsFunc(v.models, func(m *gguf.Model) bool {
		return slices.ContainsFunc(slices.Concat(m.Paths(), m.Unreadable), func(path string) bool { return filepath.Base(path) == name }) || slices.Contains(m.Missing, name)
	})
}

// longZeros is how many zero bytes at the end of a file make one ask whether it is whole.
const longZeros = 64 << 10

// reportZeroTails reports shards that end in a long run of zeros, as preallocated downloads
// do, where nothing vouches for their bytes.
func (v *verifier) reportZeroTails() {
	for _, m := range v.models {
		for _, f := range m.Files {
			if v.vouched[v.name(f.Name)] || m == v.main() && v.pin != nil {
				continue
			}
			if n := zeroTail(f, f.Size); n >= longZeros {
				v.report.Add(Finding{Kind: KindStructure, File: v.name(f.Name), Expert: manifest.NoExpert, Parts: []Part{{File: v.name(f.Name), Offset: f.Size - n, Length: n}},
					What: fmt.Sprintf("ends in %s of zero: downloads that were not finished look so", words.Count(n, "byte"))})
			}
		}
	}
}

// zeroTail counts the zero bytes at the end.
func zeroTail(r io.ReaderAt, size int64) int64 {
	buf := make([]byte, 1<<20)
	for end := size; end > 0; {
		part := buf[:min(int64(len(buf)), end)]
		if n, _ := r.ReadAt(part, end-int64(len(part))); n < len(part) {
			return 0
		}
		if filled := len(bytes.TrimRight(part, "\x00")); filled > 0 {
			return size - end + int64(len(part)-filled)
		}
		end -= int64(len(part))
	}
	return size
}
