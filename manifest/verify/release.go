package verify

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
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
	if err != nil && piecesOf(path) == nil {
		return nil, err
	}
	for _, e := range o.Expect {
		if _, err := factNamed(e.Key); err != nil {
			return nil, err
		}
	}
	v := &verifier{options: o, report: newReport(path), contents: map[string]content{}, taken: map[string]manifest.Sum{}}
	defer v.close()
	if err == nil && info.IsDir() {
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
	options    Options
	report     *Report
	dir        string
	single     bool                // one artifact was named, not a folder
	listSum    manifest.Sum        // SHA-256 of the list as it was compared
	entries    int                 // of the list
	files      []string            // regular files in the folder, links followed
	listed     []lists.FileSum     // the entries of the list of sums
	missing    []lists.FileSum     // of model files that are not there under their names
	joined     map[string][]string // paths of the pieces of listed files that lie in pieces
	hasList    bool                // the list was read without fault
	claims     []claim             // of the list, and of what else says sums of files
	otherLists []string            // that name files which are not there
	otherFiles int                 // that they name
	signed     bool                // by somebody who is trusted
	vouched    map[string]bool     // files whose bytes are those of a claim
	models     []*gguf.Model
	shards     map[string]bool // files of the models
	announced  map[string]bool // base names of these, and of shards that are missing or unreadable

	contents map[string]content      // by file
	outside  []link                  // that lead out of the folder
	parts    []string                // names of the folder like those of unfinished downloads
	declared []string                // by pins of the folder, which no digest counts
	pin      *manifest.Pin           // the folder's own, or nil
	got      *manifest.Pin           // of the main model, once its data was read, or nil
	read     int64                   // bytes of all models that were read
	taken    map[string]manifest.Sum // SHA-256 of the files that were read
}

// addModel takes a model that is looked at.
func (v *verifier) addModel(m *gguf.Model) {
	if v.shards == nil {
		v.shards, v.announced = map[string]bool{}, map[string]bool{}
	}
	v.models = append(v.models, m)
	for _, path := range m.Paths() {
		v.shards[v.name(path)] = true
	}
	for _, path := range slices.Concat(m.Paths(), m.Unreadable, m.Missing) {
		v.announced[filepath.Base(path)] = true
	}
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
		if partOf(name) != "" {
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

func (v *verifier) close() {
	for _, m := range v.models {
		m.Close()
	}
}
