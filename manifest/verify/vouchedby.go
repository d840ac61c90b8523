package verify

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// VouchedBy returns what beside a model says which bytes it has, "" for nothing: a release's list
// of sums, pin or signature, what [Release] would hold its files against, or any other document
// that names one of its files and digests, such as a pin of another name or a list of MD5 sums.
func VouchedBy(m *gguf.Model) (string, error) {
	v := &verifier{dir: filepath.Dir(m.Paths()[0]), report: newReport(m.Name)}
	v.addModel(m)
	for _, name := range slices.Concat([]string{manifest.SumsName, manifest.PinName}, sign.Names) {
		switch _, err := os.Lstat(v.path(name)); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	if err := v.gatherClaims(); err != nil {
		return "", err
	}
	if len(v.claims) > 0 {
		return v.claims[0].by, nil
	}
	if name, err := v.documentOf(m); name != "" || err != nil {
		return name, err
	}
	return listAbove(m)
}

// maxVouching bounds the documents that are looked through for names of files.
const maxVouching = 64 << 20

// documentOf returns the document beside a model that names one of its files and a digest, "" for
// none.
func (v *verifier) documentOf(m *gguf.Model) (string, error) {
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxVouching || gguf.IsModelFile(e.Name()) {
			continue
		}
		if found, err := namesDigests(v.path(e.Name()), m); gguf.MachineFault(err) {
			return "", err
		} else if found {
			return e.Name(), nil
		}
	}
	return "", nil
}

// digits are a digest in hexadecimal, from MD5 on; a word of letters and digits around it is none.
var digits = pattern.Lazy(`(?:^|[^0-9A-Za-z])[0-9A-Fa-f]{32,128}(?:$|[^0-9A-Za-z])`)

// namesDigests reports whether a document names a file of the model together with a digest: in a
// line, or anywhere in JSON.
func namesDigests(path string, m *gguf.Model) (bool, error) {
	data, err := readBounded(path, maxVouching)
	if err != nil {
		return false, err
	}
	if bytes.HasPrefix(data, manifest.ZstdMagic) {
		pin, err := manifest.ReadPin(path)
		return err == nil && slices.ContainsFunc(pin.Files, func(f manifest.File) bool { return nameOf(m).MatchString(f.Name) }), err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return false, nil
	}
	name := nameOf(m)
	if start := bytes.TrimSpace(data); bytes.HasPrefix(start, []byte("{")) || bytes.HasPrefix(start, []byte("[")) {
		return name.Match(data) && digits().Match(data), nil
	}
	for line := range bytes.Lines(data) {
		if name.Match(line) && digits().Match(line) {
			return true, nil
		}
	}
	return false, nil
}

// nameOf matches the name of any file of the model, not as a part of a longer one.
func nameOf(m *gguf.Model) *regexp.Regexp {
	var names []string
	for _, path := range m.Paths() {
		names = append(names, regexp.QuoteMeta(filepath.Base(path)))
	}
	return regexp.MustCompile(`(?:^|[^0-9A-Za-z._-])(?:` + strings.Join(names, "|") + `)(?:$|[^0-9A-Za-z._-])`)
}

// listAbove returns the path of a list of sums in a folder above a model's that names a file of
// the model, "" for none.
func listAbove(m *gguf.Model) (string, error) {
	files := map[string]bool{}
	var above []string // folders
	for _, path := range m.Paths() {
		full, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		files[full] = true
		for dir := filepath.Dir(full); dir != filepath.Dir(dir) && !slices.Contains(above, filepath.Dir(dir)); dir = filepath.Dir(dir) {
			above = append(above, filepath.Dir(dir))
		}
	}
	for _, dir := range above {
		if list, err := listIn(dir, files); list != "" || err != nil {
			return list, err
		}
	}
	return "", nil
}

// listIn returns the list of sums of a folder that names one of the files. What cannot be read as
// a list names none.
func listIn(dir string, files map[string]bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if gguf.MachineFault(err) {
		return "", err
	}
	for _, e := range entries {
		if name := e.Name(); name != manifest.SumsName && !sumsName().MatchString(name) {
			continue
		}
		path, found := filepath.Join(dir, e.Name()), false
		f, _, err := manifest.OpenRegular(path)
		if err == nil {
			err = lists.EachSum(f, func(s lists.FileSum) error {
				found = found || files[filepath.Join(dir, filepath.FromSlash(s.Name))]
				return nil
			})
			f.Close()
		}
		if found {
			return path, nil
		}
		if gguf.MachineFault(err) {
			return "", err
		}
	}
	return "", nil
}
