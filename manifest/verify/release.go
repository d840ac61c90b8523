package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/sign"
)

// Options say what to look at and what to expect.
type Options struct {
	// Fast skips reading data: sums and the weights digest are not checked.
	Fast bool
	// Only, unless nil, returns which files are read, of files of these sizes, by number: one
	// part of them. What rests on the data of all files is then not checked.
	Only func(sizes []int64) []int
	// Measured, unless nil, is told what was read of the main model, where its headers are
	// sound: a pin that lacks the digests of other files.
	Measured func(m *gguf.Model, pin *manifest.Pin, files []int)
	// Strict makes a finding of everything that is otherwise only noted.
	Strict bool
	// Complete makes a finding of everything that was not checked.
	Complete bool
	// Expect are facts that the artifact must have.
	Expect []Expectation
	// Inspect looks at the opened model for the caller, who knows what this package
	// does not, and adds to the report.
	Inspect func(m *gguf.Model, r *Report)
	// Source, unless nil, is the pin of what the release was made from. The release is
	// then proven to be made of its bytes, see [Prove]. Without one, a pin in the folder is
	// taken that has the pin digest which the metadata states.
	Source *manifest.Pin
	// SourceKey is the metadata key that states the source's pin digest, "" for none.
	SourceKey string
	// SourceDigest is the pin digest that the source is known to have, or zero.
	SourceDigest manifest.Digest
	// Measure says how the main model is pinned, but for the slabs that pins tell; nil for
	// data alone.
	Measure func(m *gguf.Model) manifest.BuildOptions
	// Prove says what is known of an opened release and its source; nil for nothing.
	Prove func(m *gguf.Model, source *manifest.Pin) ProveOptions
	// Listing, unless nil, is what the files must be.
	Listing *Listing
	// Trust says whose signatures count.
	Trust Trust
	// Workers is how many files are read at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes of the files are read.
	Progress manifest.Progress
}

// Release checks a release folder, or the artifact that the file at path belongs to. In
// a folder with a list of sums, every listed file must be there with the listed bytes,
// and every model file must be listed. The shard set must be complete and consistent,
// with offsets and sizes inside the files. A pin in the folder tells which tensor and
// which expert is not what it should be. Everything wrong is in the report at once; the
// error only means that the check could not be carried out.
func Release(ctx context.Context, path string, o Options) (*Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, e := range o.Expect {
		if _, err := factNamed(e.Key); err != nil {
			return nil, err
		}
	}
	v := &verifier{options: o, report: newReport(path), contents: map[string]content{}, taken: map[string]manifest.Sum{}}
	defer v.close()
	if info.IsDir() {
		if path, err = gguf.ModelFolder(path); err == nil {
			err = v.folder(ctx, path)
		}
	} else {
		err = v.artifact(path)
	}
	if err != nil {
		return nil, err
	}
	if err := v.lookAtData(ctx); err != nil {
		return nil, err
	}
	v.checkTokenizer()
	v.inspect()
	if err := v.expect(); err != nil {
		return nil, err
	}
	if o.Only == nil {
		v.reportDownloads()
		v.reportOnlyListed()
	}
	if o.Strict {
		v.report.findNotes()
	}
	if o.Complete {
		v.report.findGaps()
	}
	return v.report, nil
}

// lookAtData reads all data, or a part of it.
func (v *verifier) lookAtData(ctx context.Context) error {
	if v.options.Only != nil {
		return v.readPart(ctx)
	}
	if err := v.readData(ctx); err != nil {
		return err
	}
	if err := v.checkListing(ctx); err != nil {
		return err
	}
	return v.checkSignatures(ctx)
}

// folder looks at all that lies in a folder, and all that its list names.
func (v *verifier) folder(ctx context.Context, path string) error {
	v.dir = path
	if err := v.list(); err != nil {
		return err
	}
	if slices.Contains(v.files, manifest.JournalName) {
		v.report.find(KindList, manifest.JournalName, "marks a release that is unfinished")
	}
	if i := slices.IndexFunc(v.files, isRecord); i >= 0 && !slices.Contains(v.files, manifest.SumsName) {
		v.report.find(KindList, v.files[i], "is the record of a part: the parts of this release are not joined")
	}
	if err := v.readList(); err != nil {
		return err
	}
	if err := v.compareNames(ctx); err != nil {
		return err
	}
	if err := v.openModels(v.modelFiles()); err != nil {
		return err
	}
	if err := v.checkOne(); err != nil {
		return err
	}
	v.reportLinks()
	return cmp.Or(v.readPin(), v.gatherClaims(), v.findSource())
}

// isRecord reports whether a file is what one of many tasks leaves of its part.
func isRecord(name string) bool {
	_, _, ok := parts.ParseName(name)
	return ok
}

// artifact looks at the artifact that a file belongs to, and at what lies beside it and is
// about it.
func (v *verifier) artifact(path string) error {
	v.dir, v.single = filepath.Dir(path), true
	v.report.gap("only the model that this file belongs to was looked at", "what else its folder holds, and a list of sums there")
	if err := v.openModels([]string{filepath.Base(path)}); err != nil {
		return err
	}
	return cmp.Or(v.gatherClaims(), v.findSource())
}

// A verifier gathers what is known of one folder. File names are relative to it, with
// forward slashes.
type verifier struct {
	options Options
	report  *Report
	dir     string
	single  bool            // one artifact was named, not a folder
	listSum manifest.Sum    // SHA-256 of the list as it was compared
	entries int             // of the list
	files   []string        // regular files in the folder, links followed
	listed  []lists.FileSum // the entries of the list of sums
	missing []lists.FileSum // of model files that are not there under their names
	hasList bool            // the list was read without fault
	claims  []claim         // of the list, and of what else says sums of files
	signed  bool            // by somebody who is trusted
	vouched map[string]bool // files whose bytes are those of a claim
	models  []*gguf.Model

	contents map[string]content      // by file
	outside  []link                  // that lead out of the folder
	parts    []string                // names of the folder like those of unfinished downloads
	pin      *manifest.Pin           // the folder's own, or nil
	got      *manifest.Pin           // of the main model, once its data was read, or nil
	read     int64                   // bytes of all models that were read
	taken    map[string]manifest.Sum // SHA-256 of the files that were read
}

func (v *verifier) path(name string) string { return filepath.Join(v.dir, filepath.FromSlash(name)) }

// name is the inverse of path.
func (v *verifier) name(path string) string {
	name, err := filepath.Rel(v.dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(name)
}

// list lists the files of the folder. What lies in folders below it is looked at only as
// far as the list of sums names it.
func (v *verifier) list() error {
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if isPart(name) {
			v.parts = append(v.parts, name)
		}
		info, err := os.Stat(v.path(name))
		switch {
		case gguf.MachineFault(err):
			return err
		case err != nil:
			v.report.note(name, "link that leads nowhere")
		case info.IsDir():
			v.report.note(name, "folder: only what "+manifest.SumsName+" lists is looked at in it")
		case !info.Mode().IsRegular():
			v.report.note(name, "not a regular file, not looked at")
		default:
			v.files = append(v.files, name)
			if err := v.look(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readList reads the list of sums, if there is one, as far as it is without fault. Of its
// entries none is held here: there can be a million.
func (v *verifier) readList() error {
	f, info, err := manifest.OpenRegular(v.path(manifest.SumsName))
	switch {
	case gguf.MachineFault(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		v.report.gap("there is no "+manifest.SumsName, "whether these are the bytes that were published")
		return nil
	case err == nil:
		defer f.Close()
		err = lists.EachSum(f, func(lists.FileSum) error { v.entries++; return nil })
	}
	if err == nil && info.Size() > lists.MaxSumsBytes {
		err = fmt.Errorf("more than %d bytes", lists.MaxSumsBytes)
	}
	var faults *lists.SumsError
	switch {
	case gguf.MachineFault(err):
		return err
	case errors.As(err, &faults):
		v.listFaults(faults.Faults)
		return nil
	case err != nil:
		v.report.find(KindUnreadable, manifest.SumsName, about(v.path(manifest.SumsName), err))
		return nil
	}
	odd, err := lists.OddForms(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return err
	}
	v.hasList = true
	v.listFaults(odd)
	return nil
}

// listText returns the list of sums whole, for who checks a signature over it. It must be
// what was compared.
func (v *verifier) listText() ([]byte, error) {
	text, err := readBounded(v.path(manifest.SumsName), lists.MaxSumsBytes)
	if err == nil && sha256.Sum256(text) != v.listSum {
		err = fmt.Errorf("%s was changed while it was looked at", manifest.SumsName)
	}
	return text, err
}

func (v *verifier) listFaults(faults []lists.SumsFault) {
	for _, fault := range faults {
		v.report.find(KindList, manifest.SumsName, fault.String())
	}
}

// readBounded reads a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, _, err := manifest.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// compareNames compares the list with the folder, and keeps the entries that are there.
func (v *verifier) compareNames(ctx context.Context) error {
	if !v.hasList {
		return nil
	}
	f, _, err := manifest.OpenRegular(v.path(manifest.SumsName))
	if err != nil {
		return err
	}
	defer f.Close()
	names := map[string]bool{manifest.SumsName: true} // of files of the folder
	for _, name := range v.files {
		names[name] = name == manifest.SumsName || slices.Contains(sign.Names, name)
	}
	sum := sha256.New()
	if err := lists.EachSum(io.TeeReader(f, sum), func(s lists.FileSum) error { return v.compareName(s, names) }); err != nil {
		return err
	}
	v.listSum = manifest.Sum(sum.Sum(nil))
	unlisted := slices.DeleteFunc(slices.Clone(v.files), func(name string) bool { return names[name] || !v.contents[name].model })
	if err := v.findRenamed(ctx, unlisted); err != nil {
		return err
	}
	for _, s := range v.listed {
		names[s.Name] = true
	}
	for _, name := range v.files {
		switch {
		case names[name]:
		case v.contents[name].model:
			v.report.find(KindExtra, name, "is a model file that "+manifest.SumsName+" does not list")
		case name == manifest.PinName:
			v.report.find(KindExtra, name, "is a pin that "+manifest.SumsName+" does not list")
		default:
			v.report.note(name, "not listed in "+manifest.SumsName)
		}
	}
	v.report.checked(fmt.Sprintf("names: %s listed, %s of them there, %s in the folder", words.Group(v.entries), words.Group(len(v.listed)), words.Count(len(v.files), "file")))
	for _, s := range v.listed {
		v.claims = append(v.claims, claim{s.Name, s.SHA256, manifest.SumsName})
	}
	return nil
}

// compareName looks for the file of one entry, and takes note that the list has it.
func (v *verifier) compareName(s lists.FileSum, names map[string]bool) error {
	if _, here := names[s.Name]; here {
		names[s.Name] = true
	}
	info, err := os.Stat(v.path(s.Name))
	switch {
	case s.Name == manifest.SumsName:
		v.report.find(KindList, manifest.SumsName, "lists itself, which no list can do rightly")
	case gguf.MachineFault(err):
		return err
	case errors.Is(err, fs.ErrNotExist) && gguf.IsModelFile(s.Name) && len(v.missing) < maxRenamed:
		v.missing = append(v.missing, s)
	case errors.Is(err, fs.ErrNotExist):
		v.report.find(KindMissing, s.Name, "is listed and not there")
	case err != nil:
		v.report.find(KindUnreadable, s.Name, about(v.path(s.Name), err))
	case !info.Mode().IsRegular():
		v.report.find(KindUnreadable, s.Name, "is listed and not a regular file")
	default:
		v.listed = append(v.listed, s)
		return v.look(s.Name)
	}
	return nil
}

// checkOne refuses a folder that holds several models, or only what goes beside those in
// folders below, and no list to say what belongs together.
func (v *verifier) checkOne() error {
	if len(v.models) == 0 || slices.Contains(v.files, manifest.SumsName) {
		return nil
	}
	var names []string
	for _, m := range v.models {
		if m.Companion() == "" || v.main().Companion() != "" {
			names = append(names, fmt.Sprintf("%q", v.name(m.Files[0].Name)))
		}
	}
	if folders := gguf.FoldersOfModels(v.dir); v.main().Companion() != "" && len(folders) > 0 {
		return fmt.Errorf("%s: holds no model, only what goes beside one: %s; there are models in %s", v.dir, strings.Join(names, ", "), strings.Join(folders[:min(len(folders), 5)], ", "))
	}
	if len(names) == 1 {
		return nil
	}
	return fmt.Errorf("%s: holds %d models and no %s that lists them, name one of them: %s", v.dir, len(names), manifest.SumsName, strings.Join(names, ", "))
}

// modelFiles returns the model files that belong to the release: those listed, or all
// when there is no list.
func (v *verifier) modelFiles() []string {
	var names []string
	if v.hasList {
		for _, s := range v.listed {
			names = append(names, s.Name)
		}
	} else {
		names = slices.Clone(v.files)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !v.contents[name].model })
	slices.Sort(names)
	return names
}

// openModels opens the artifacts that the named files belong to: models before what goes
// beside one, the largest first.
func (v *verifier) openModels(names []string) error {
	seen := map[string]bool{}     // paths that some opened model has, or could not read
	unusable := map[string]bool{} // messages: each shard of a set gives the same
	for _, name := range names {
		if seen[v.path(name)] {
			continue
		}
		m, err := gguf.Open(v.path(name))
		if gguf.MachineFault(err) {
			return err
		}
		if err != nil {
			if !unusable[err.Error()] {
				v.report.find(KindStructure, name, about(v.path(name), err))
			}
			unusable[err.Error()] = true
			continue
		}
		if seen[filepath.Clean(m.Paths()[0])] { // by a link that is no shard's name
			m.Close()
			continue
		}
		v.models = append(v.models, m)
		for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
			seen[filepath.Clean(path)] = true
		}
		v.reportModel(m)
	}
	if len(names) == 0 {
		v.report.find(KindStructure, "", strings.TrimSuffix("there is no model file to check; "+gguf.BrokenPieces(v.dir), "; "))
	}
	slices.SortStableFunc(v.models, func(a, b *gguf.Model) int {
		return cmp.Or(cmp.Compare(beside(a), beside(b)), cmp.Compare(b.TensorBytes(), a.TensorBytes()))
	})
	v.describeMain()
	v.reportUnsettled(slices.Clone(names))
	return nil
}

// beside is 1 for what goes beside a model, 0 for a model.
func beside(m *gguf.Model) int { return min(len(m.Companion()), 1) }

// reportModel reports what was found in the headers of a model.
func (v *verifier) reportModel(m *gguf.Model) {
	v.report.problems(m, v.name)
	v.report.checked(fmt.Sprintf("structure of %q: %s of %s, %s, %s, %s", m.Name, words.Group(len(m.Files)), words.Count(m.Shards, "shard"),
		words.Count(len(m.Tensors()), "tensor"), words.Count(m.FileBytes(), "file byte"), words.Count(m.TensorBytes(), "tensor byte")))
	v.noteShardKeys(m)
}

// main returns the largest artifact, which expectations are about, or nil.
func (v *verifier) main() *gguf.Model {
	if len(v.models) == 0 {
		return nil
	}
	return v.models[0]
}

func (v *verifier) describeMain() {
	m := v.main()
	if m == nil {
		return
	}
	v.report.Artifact = describeModel(m)
	for _, other := range v.models[1:] {
		if kind := other.Companion(); kind != "" && m.Companion() == "" {
			v.report.note(v.name(other.Files[0].Name), "set aside, of the kind "+kind+": goes beside a model and is no part of it")
			continue
		}
		v.report.note(v.name(other.Files[0].Name), fmt.Sprintf("begins another model, %q; expectations, pin and plan are about %q, the largest", other.Name, m.Name))
	}
}

// inspect lets the caller look at the main model.
func (v *verifier) inspect() {
	if m := v.main(); m != nil && v.options.Inspect != nil {
		v.options.Inspect(m, v.report)
	}
}

// expect compares the main model with what is expected of it.
func (v *verifier) expect() error {
	var held []string
	for _, e := range v.options.Expect {
		if v.main() == nil {
			v.report.find(KindExpectation, "", fmt.Sprintf("%s cannot be told: no model could be opened", e.Key))
			continue
		}
		if e.readsData() && (v.options.Fast || v.options.Only != nil) {
			v.report.gap(e.Key+" was expected and data not read", "whether the weights are those expected")
			continue
		}
		wrong, err := e.check(v.measured())
		if err != nil {
			return err
		}
		if wrong != "" {
			v.report.find(KindExpectation, "", wrong)
			continue
		}
		held = append(held, e.Key+"="+e.Want)
	}
	if len(held) > 0 {
		v.report.checked("as expected: " + strings.Join(held, ", "))
	}
	return nil
}

func (v *verifier) measured() measured {
	if v.got == nil {
		return measured{model: v.main()}
	}
	return measured{v.main(), v.report.PinDigest, v.got.WeightsDigest}
}

func (v *verifier) close() {
	for _, m := range v.models {
		m.Close()
	}
}
