package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
	"ggufreap/reap"
)

// A release is a folder to be written: the shards of a layout, documents, and the
// list of sums.
type release struct {
	task      string // for the progress bar
	folder    string // "" for a dry run
	stem      string
	layout    *gguf.Layout
	source    *gguf.Model
	slabs     manifest.SlabCount
	documents []smallFile
	origin    []stage.Fact // what it is made from

	derivation *manifest.Derivation // from a pinned source, or nil
	sourcePin  *sourcePin           // wanted from the same pass, or nil

	pin *manifest.Pin // once it is written
}

// A smallFile is a document of a release.
type smallFile struct {
	name string
	data []byte
}

// checkFolder wants a folder to write to, unless nothing will be written.
func checkFolder(c *cli.Context) error {
	switch folder := c.String("output"); {
	case folder == "" && !c.Bool("dry-run"):
		return hint.With(args.Usagef("no output folder given"), "-o DIR names it; --dry-run shows what would be written")
	case gguf.IsModelFile(folder):
		return hint.With(args.Usagef("-o names a folder, got %q", folder), "-o DIR --name %s", args.ShellQuote(gguf.Stem(folder)))
	}
	return nil
}

// stemFlag returns the stem that --name asks for, or the one that comes of the source's
// name.
func stemFlag(c *cli.Context, ofSource string) (string, error) {
	if !c.IsSet("name") {
		if fault := stemFault(ofSource); fault != "" {
			return "", hint.With(fmt.Errorf("the source's name gives the files the stem %q: %s", ofSource, fault), "--name STEM gives them another")
		}
		return ofSource, nil
	}
	stem := strings.TrimSuffix(c.String("name"), ".gguf")
	if fault := stemFault(stem); fault != "" {
		return "", args.Usagef("--name is %q: %s", stem, fault)
	}
	return stem, nil
}

// stemFault says why a shell, a terminal or another program would take a name for
// something else, or "".
func stemFault(stem string) string {
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
func (r *release) shardNames() []string {
	names := make([]string, len(r.layout.Shards))
	for i := range names {
		names[i] = gguf.ShardName(r.stem, i, len(names))
	}
	return names
}

// documentNames lists the files that are no shards.
func (r *release) documentNames() []string {
	var names []string
	for _, d := range r.documents {
		names = append(names, d.name)
	}
	if r.pinnable() == nil {
		names = append(names, manifest.PinName)
	}
	return names
}

// pinnable says why the release has no pin, nil when it has one.
func (r *release) pinnable() error { return manifest.CheckPinnable(r.stem, r.layout) }

// staged is the release as package stage writes it.
func (r *release) staged() stage.Release {
	return stage.Release{Stem: r.stem, Layout: r.layout, Slabs: r.slabs, Origin: r.origin, Documents: r.documentNames()}
}

// writeRelease writes and publishes the folder, and returns the pin of what was
// written. What a run that fails leaves, the error's hint says.
func writeRelease(con *ui.Console, c *cli.Context, r *release) (*manifest.Pin, error) {
	p := con.StartProgress(r.task, r.layout.Bytes())
	options := stage.Options{
		Sources:   r.source.Paths(),
		Unchanged: r.source.Unchanged,
		Resume:    c.Bool("resume"),
		Force:     c.Bool("force"),
		Workers:   c.Int("workers"),
		Progress:  p.Set,
	}
	if r.derivation != nil {
		options.Check = r.derivation.Check
	}
	if r.sourcePin != nil {
		if err := r.record(c, p); err != nil {
			return nil, err
		}
		options.Progress, options.Workers = nil, 1 // in the order in which the source is read
	}
	folder, err := stage.Open(r.folder, r.staged(), options)
	if err != nil {
		return nil, explainRefusal(c, err)
	}
	announce(con, c, r, folder)
	if err := r.pinnable(); err != nil {
		con.Warnf("the release gets no %s: %v", manifest.PinName, err)
	}
	pin, err := r.fill(c.Context, folder)
	closeErr := folder.Close()
	if err != nil {
		return nil, explainFailure(c, r, folder, err, closeErr)
	}
	read, written := folder.Traffic()
	if r.sourcePin != nil {
		read = r.source.FileBytes()
	}
	p.FinishWriting(read, written)
	warnRedone(con, folder)
	return pin, nil
}

// fill writes every file of the release and publishes them.
func (r *release) fill(ctx context.Context, folder *stage.Folder) (*manifest.Pin, error) {
	pin, err := folder.WriteShards(ctx)
	if err != nil {
		return nil, err
	}
	if r.sourcePin != nil {
		if err := r.sourcePin.save(ctx, pin, r.source.Paths()); err != nil {
			return nil, err
		}
	}
	for _, d := range r.documents {
		err := folder.WriteFile(d.name, func(w io.Writer) error {
			_, err := w.Write(d.data)
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

// describeRelease prints the files of a release.
func describeRelease(con *ui.Console, r *release) {
	con.Field("tensor data", "%s", text.Size(r.layout.TensorBytes()))
	con.Field("files", "%s, %s", text.Files(len(r.layout.Shards)), text.Size(r.layout.Bytes()))
	con.Field("was", "%s, %s", text.Files(r.source.Shards), text.Size(r.source.FileBytes()))
	con.Printf("\n")
	con.Table("", []table.Column{table.Left("file"), table.Right("tensors"), table.Right("bytes")}, func(yield func([]string) bool) {
		for i, name := range r.shardNames() {
			shard := r.layout.Shards[i]
			if !yield([]string{text.Safe(name), text.Grouped(len(shard.Views)), text.Grouped(shard.Size)}) {
				return
			}
		}
	})
	con.Printf("\n")
	if r.pin == nil {
		con.Field("written", "nothing: this was a dry run")
		return
	}
	if r.pin.WeightsDigest.IsZero() {
		con.Field("weights digest", "none: a name has a control character")
	} else {
		con.Field("weights digest", "%s", r.pin.WeightsDigest)
	}
	con.Field("documents", "%s", strings.Join(append(r.documentNames(), manifest.SumsName), ", "))
	con.Field("written", "%s", text.Safe(filepath.Clean(r.folder)))
}

// releaseDocument is the --json output of the commands that write a release.
type releaseDocument struct {
	Schema        string         `json:"schema"`
	Folder        *document.Text `json:"folder"` // null for a dry run
	FileBytes     int64          `json:"file_bytes"`
	TensorBytes   int64          `json:"tensor_bytes"`
	WeightsDigest *string        `json:"weights_digest"` // null for a dry run, and where none is defined
	Shards        []shardOutput  `json:"shards"`
	Documents     []string       `json:"documents"`
}

type shardOutput struct {
	File    document.Text `json:"file"`
	Size    int64         `json:"size"`
	Tensors int           `json:"tensors"`
	SHA256  *string       `json:"sha256"` // null for a dry run
}

func (r *release) document() releaseDocument {
	d := releaseDocument{
		Schema:      "ggufreap/release/v1",
		FileBytes:   r.layout.Bytes(),
		TensorBytes: r.layout.TensorBytes(),
		Documents:   r.documentNames(),
	}
	for i, name := range r.shardNames() {
		shard := r.layout.Shards[i]
		out := shardOutput{File: document.Text(name), Size: shard.Size, Tensors: len(shard.Views)}
		if r.pin != nil {
			sum := r.pin.Files[i].SHA256.String()
			out.SHA256 = &sum
		}
		d.Shards = append(d.Shards, out)
	}
	if r.pin != nil {
		folder := document.Text(r.folder)
		d.Folder = &folder
	}
	if r.pin != nil && !r.pin.WeightsDigest.IsZero() {
		digest := r.pin.WeightsDigest.String()
		d.WeightsDigest = &digest
	}
	return d
}

// routedSlabs says how many slabs the tensors of a model carry; experts is nil for a
// dense one.
func routedSlabs(experts *reap.Experts) manifest.SlabCount {
	if experts == nil {
		return nil
	}
	return slabCount(experts, experts.Count)
}

// slabCount says of every tensor with a slab for each routed expert that it carries n.
func slabCount(experts *reap.Experts, n int) manifest.SlabCount {
	routed := map[string]bool{}
	for _, t := range experts.Tensors() {
		if t.SlabBytes > 0 {
			routed[t.Name] = true
		}
	}
	return func(tensor string) int {
		if routed[tensor] {
			return n
		}
		return 0
	}
}
