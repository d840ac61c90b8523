// Package release writes a release folder for any command that makes a model: the shards of a
// layout, documents, the pin and the list of sums, with progress, and with words for what an
// interrupted run leaves and how to go on. What is in the folder, and how it stays whole,
// package manifest/stage knows; what the model is, the command.
package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
	"ggufreap/manifest/stage"
)

// A Release is a folder to be written: the shards of a layout, documents, and the
// list of sums.
type Release struct {
	Task      string  // for the progress bar
	Standing  *string // what is known of pruning the architecture; nil where nothing is pruned
	Folder    string  // "" for a dry run
	Stem      string
	Layout    *gguf.Layout
	Source    *gguf.Model
	AsCut     bool     // into the shards that the source has
	Link      bool     // files that stay the same are other names of the source's
	Inputs    []string // other files that it is made from
	Slabs     manifest.SlabCount
	IDs       manifest.IDTables
	Documents []File
	Origin    []stage.Fact // what it is made from

	Engine string // build of llama.cpp that would load it, "" where none was asked

	Derivation *manifest.Derivation // from a pinned source, or nil
	SourcePin  *SourcePin           // wanted from the same pass, or nil

	// Whole says that every byte of the source's tensors passes into the release, so that
	// what is stated of its files can be checked.
	Whole bool

	Pin      *manifest.Pin // once it is written
	Signed   []string      // names of signatures over it, once they are made
	Verified int           // files of the source whose stated sum was found right

	stated *statedSums
}

// A File is a document of a release.
type File struct {
	Name string
	Data []byte
	// Make, where there are no data yet, makes them of the pin of what was written; the pin is
	// nil for a release that has none.
	Make func(pin *manifest.Pin) ([]byte, error)
}

func (f File) data(pin *manifest.Pin) ([]byte, error) {
	if f.Make == nil {
		return f.Data, nil
	}
	data, err := f.Make(pin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return data, nil
}

// StemFault says why a shell, a terminal or another program would take a name for
// something else, or "".
func StemFault(stem string) string {
	switch {
	case stem == "":
		return "nothing is left without .gguf"
	case text.UnsafeAt(stem, "") >= 0:
		return "it has characters that a terminal hides or acts on"
	case strings.ContainsAny(stem, `/\`):
		return "it is a path; -o DIR names the folder"
	case stem[0] == '-':
		return "it would be taken for a flag"
	case stem[0] == '.':
		return "it would be a hidden file"
	case strings.TrimSpace(stem) != stem:
		return "it begins or ends with a blank"
	case gguf.Stem(gguf.ShardName(stem, 0, 1)) != stem:
		return "it would be taken for a shard"
	}
	return ""
}

// shardNames lists the files that hold the model.
func (r *Release) shardNames() []string {
	names := make([]string, len(r.Layout.Shards))
	for i := range names {
		names[i] = gguf.ShardName(r.Stem, i, len(names))
	}
	return names
}

// documentNames lists the files that are no shards.
func (r *Release) documentNames() []string {
	var names []string
	for _, d := range r.Documents {
		names = append(names, d.Name)
	}
	if r.pinnable() == nil {
		names = append(names, manifest.PinName)
	}
	return names
}

// Upload lists what the folder holds for those who download it.
func (r *Release) Upload() string {
	return strings.Join(slices.Concat([]string{text.Files(len(r.Layout.Shards))}, r.documentNames(), []string{manifest.SumsName}, r.Signed), ", ")
}

// pinnable says why the release has no pin, nil when it has one.
func (r *Release) pinnable() error { return manifest.CheckPinnable(r.Stem, r.Layout) }

// staged is the release as package stage writes it.
func (r *Release) staged() stage.Release {
	known := map[string]manifest.Sum{}
	for _, d := range r.Documents {
		if d.Data != nil { // the pin of the source is taken on the way
			known[d.Name] = sha256.Sum256(d.Data)
		}
	}
	return stage.Release{Stem: r.Stem, Layout: r.Layout, Slabs: r.Slabs, IDs: r.IDs, Origin: r.Origin, Documents: r.documentNames(), Known: known, Same: r.same(), Link: r.Link,
		Vouchers: sign.Names}
}

// same returns the paths of the source's files that shards are to be byte for byte.
func (r *Release) same() map[int]string {
	if !r.AsCut || hub.Of(r.Source) != nil {
		return nil
	}
	same := map[int]string{}
	paths := r.Source.Paths()
	for i, f := range r.Source.Files {
		if r.Layout.Shards[i].SameAs(f) && len(r.Source.Joined()) == 0 {
			same[i] = paths[i]
		}
	}
	return same
}

// Options are how a release is written.
type Options struct {
	Resume  bool
	Force   bool
	Recheck bool     // read all of a release that is found finished
	Workers int      // 0 for as many as the processors want
	Typed   []string // the command line, to tell how to go on
}

// Write writes and publishes the folder, and takes the pin of what was written. What a
// run that fails leaves, the error's hint says.
func Write(ctx context.Context, con *ui.Console, r *Release, o Options) error {
	p := con.StartProgress(r.Task, r.Layout.Bytes())
	travel := r.travels(p, r.Layout.Shards)
	staging, err := r.wholeStaging(ctx, p, travel, o)
	if err != nil {
		return err
	}
	folder, err := stage.Open(r.Folder, r.staged(), staging)
	if errors.Is(err, stage.ErrFinished) {
		return r.findFinished(ctx, con, o)
	}
	if err != nil {
		return explainRefusal(err, r.Folder, o)
	}
	if kept, _ := folder.Resumed(); travel != nil {
		travel.goOn(con, r, kept)
	}
	if r.SourcePin != nil {
		folder.HashWith(r.SourcePin.recorder.Sums())
	}
	if err := r.watchSums(ctx, folder); err != nil {
		return errors.Join(err, folder.Close())
	}
	announce(con, r, folder, o)
	if err := r.pinnable(); err != nil {
		con.Warnf("the release gets no %s: %v", manifest.PinName, err)
	}
	pin, err := r.fill(ctx, folder)
	closeErr := folder.Close()
	if err != nil {
		return r.explainFailure(folder, o, err, closeErr)
	}
	r.tellTraffic(p, travel, folder)
	warnChanged(con, folder)
	r.Pin = pin
	return nil
}

// staging says how package stage writes the release or a part of it.
func (r *Release) staging(p *progress.Task, t *travel, o Options) (stage.Options, error) {
	staging := stage.Options{Inputs: r.Inputs, Unchanged: r.Source.Unchanged, Workers: o.Workers, Progress: p.Set}
	if t != nil {
		staging.Progress = t.Set
	}
	if r.Derivation != nil {
		staging.Check = r.Derivation.Check
	}
	err := r.nameSources(&staging)
	return staging, err
}

// wholeStaging says how it writes all of it, which one run may begin and another end.
func (r *Release) wholeStaging(ctx context.Context, p *progress.Task, t *travel, o Options) (stage.Options, error) {
	staging, err := r.staging(p, t, o)
	if err != nil {
		return staging, err
	}
	staging.Resume, staging.Force = o.Resume, o.Force
	if r.SourcePin != nil {
		if err := r.record(ctx, p, o, &staging); err != nil {
			return staging, err
		}
	}
	if r.Whole && hub.Of(r.Source) != nil {
		staging.Workers = 1 // likewise; ranges are fetched side by side all the same
	}
	return staging, nil
}

// tellTraffic ends the progress with what was read and written.
func (r *Release) tellTraffic(p *progress.Task, t *travel, folder *stage.Folder) {
	read, written := folder.Traffic()
	if r.SourcePin != nil {
		read = r.SourcePin.recorder.Bytes()
	}
	t.finish(p, read, written)
}

// CheckRoom says whether the folder of a dry run, if it names one, has room for the release.
func (r *Release) CheckRoom(o Options) error {
	if r.Folder == "" {
		return nil
	}
	if err := stage.CheckRoom(r.Folder, r.staged()); err != nil {
		return explainRefusal(err, r.Folder, o)
	}
	return nil
}

// nameSources says which files the release is made from.
func (r *Release) nameSources(o *stage.Options) error {
	var err error
	if far := hub.Of(r.Source); far != nil {
		o.Far, err = far.Sources(r.Source)
	} else {
		o.Sources = r.Source.OnDisk()
	}
	return err
}

// fill writes every file of the release and publishes them.
func (r *Release) fill(ctx context.Context, folder *stage.Folder) (*manifest.Pin, error) {
	pin, err := folder.WriteShards(ctx)
	if err != nil {
		return nil, err
	}
	if far := hub.Of(r.Source); far != nil {
		far.DeclareBase(&pin.Declared)
	}
	if err := r.checkSums(ctx, folder); err != nil {
		return nil, err
	}
	if r.SourcePin != nil {
		if err := r.SourcePin.save(ctx, pin, r.Source.OnDisk()); err != nil {
			return nil, err
		}
	}
	for _, d := range r.Documents {
		data, err := d.data(pin)
		if err != nil {
			return nil, err
		}
		err = folder.WriteFile(d.Name, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if r.pinnable() == nil {
		err := folder.WriteFile(manifest.PinName, func(w io.Writer) error { return manifest.EncodePin(w, manifest.PinName, pin) })
		if err != nil {
			return nil, err
		}
	}
	return pin, folder.Publish(ctx)
}
