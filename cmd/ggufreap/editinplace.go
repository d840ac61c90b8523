package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
	"ggufreap/manifest/verify"
)

// editInPlace changes the header of a model's file where it lies.
func editInPlace(con *ui.Console, c *cli.Context) error {
	for _, name := range []string{"output", "name", "resume", "recheck", "link", "workers"} {
		if c.IsSet(name) {
			return args.Usagef("--in-place writes no folder, so that --%s has no meaning", name)
		}
	}
	took, err := takeBack(con, c.Args().First())
	if err != nil {
		return err
	}
	m, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer m.Close()
	md, changes, err := applyChanges(c, m.Metadata())
	switch {
	case err != nil:
		return err
	case len(changes) == 0 && took:
		return nil
	case len(changes) == 0:
		return errNoChange("nothing was interrupted here, and nothing says what to change")
	}
	h, err := newHeaderChange(c, m, md, changes)
	if err != nil {
		return err
	}
	if h == nil { // an edit that another one has made: to try again is no mistake
		con.Field("written", "nothing: the model says all of that already")
		return nil
	}
	if !c.Bool("dry-run") {
		if err := h.write(m); err != nil {
			return err
		}
	}
	describeChanges(con, m.Metadata(), md, changes)
	con.Field("written", "%s", h.describe(c.Bool("dry-run")))
	return nil
}

// errNoChange says that an edit would change nothing, and what would.
func errNoChange(what string) error {
	return hint.With(args.Usagef("%s", what), "--set KEY=VALUE, --unset KEY, --rename OLD=NEW")
}

// unsettled lists the files that a path leads to, of which an interrupted edit in place has left
// the old header: of a folder all in it.
func unsettled(path string) []string {
	pattern := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		pattern = filepath.Join(path, "*.gguf")
	}
	left, _ := filepath.Glob(pattern + manifest.OldHeaderSuffix) // a pattern that is none matches nothing
	for i, name := range left {
		left[i] = strings.TrimSuffix(name, manifest.OldHeaderSuffix)
	}
	return left
}

// takeBack takes back what an interrupted edit in place has left of the model that an argument
// names.
func takeBack(con *ui.Console, path string) (took bool, err error) {
	for _, file := range unsettled(path) {
		back, err := stage.TakeBack(file)
		if err != nil {
			return took, err
		}
		if took = took || back; back {
			con.Warnf("%s: an edit in place that was interrupted was taken back", text.Safe(file))
		}
	}
	return took, nil
}

// checkSettled refuses a model of which an interrupted edit in place has left the old header.
func checkSettled(paths ...string) error {
	for _, path := range paths {
		if len(unsettled(path)) > 0 {
			return hint.With(fmt.Errorf("%s: an edit in place was interrupted, so that the header may be half the old and half the new one", text.Safe(path)),
				"ggufreap edit --in-place %s takes it back", args.ShellQuote(path))
		}
	}
	return nil
}

// A headerChange is the header that one file of a model is to have in place of its own.
type headerChange struct {
	path    string
	was, is []byte
}

// newHeaderChange finds the file whose header changes, nil where none does, and refuses what
// cannot be changed in its place.
func newHeaderChange(c *cli.Context, m *gguf.Model, md *gguf.Metadata, changes []edit.Change) (*headerChange, error) {
	if err := m.CheckWritable(); err != nil {
		return nil, err
	}
	switch {
	case hub.Of(m) != nil || len(m.Joined()) > 0:
		return nil, args.Usagef("--in-place is for whole files of this machine")
	}
	if err := checkVouched(m); err != nil {
		return nil, err
	}
	layout, err := m.LayoutWith(md)
	if err != nil {
		return nil, err
	}
	var h *headerChange
	for i, f := range m.Files {
		shard := layout.Shards[i]
		switch {
		case shard.SameAs(f):
			continue
		case h != nil:
			return nil, hint.With(fmt.Errorf("%s: the headers of several files would change, and no two files change at once", text.Safe(m.Name)), "-o DIR writes the model anew")
		case !fits(shard, f):
			return nil, explainFit(c, m, i, shard, changes)
		}
		h = &headerChange{path: f.Name}
		if h.was, h.is, err = headers(f, shard); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// checkVouched refuses a model beside which something says what its bytes are.
func checkVouched(m *gguf.Model) error {
	by, err := verify.VouchedBy(m)
	if err != nil || by == "" {
		return err
	}
	return hint.With(fmt.Errorf("%s: %s says what bytes it has, and would no longer fit", text.Safe(m.Name), text.Safe(by)), "-o DIR writes the model anew, with a list of sums and a pin")
}

// fits reports whether a file's new header has the size of its own, and puts no tensor elsewhere.
func fits(shard *gguf.ShardLayout, f *gguf.File) bool {
	for i, t := range f.Tensors {
		if t.Offset != shard.Offsets[i] {
			return false
		}
	}
	return shard.DataOffset == f.DataOffset
}

// explainFit says by how much the new header of a file does not fit, and what of it may be left
// out.
func explainFit(c *cli.Context, m *gguf.Model, i int, shard *gguf.ShardLayout, changes []edit.Change) error {
	f := m.Files[i]
	err := fmt.Errorf("%s: the new header, padded, has %s, the old one %s: it does not fit in its place", text.Safe(f.Name), text.Count(shard.DataOffset, "byte"), text.Grouped(f.DataOffset))
	more := "-o DIR writes the model anew"
	if !c.Bool("no-provenance-keys") && fitsUnstated(m, i, changes) {
		more += "\n--no-provenance-keys leaves out the key that names what was changed: without it the header fits"
	}
	return hint.With(err, "%s", more)
}

// fitsUnstated reports whether the header of a file would fit without the key that names what
// was changed. The changes were applied before, so that none needs leave.
func fitsUnstated(m *gguf.Model, i int, changes []edit.Change) bool {
	md, err := edit.Apply(m.Metadata(), changes, true)
	if err != nil {
		return false
	}
	layout, err := m.LayoutWith(md)
	return err == nil && fits(layout.Shards[i], m.Files[i])
}

// headers returns the header that a file has, and the one that it is to have.
func headers(f *gguf.File, shard *gguf.ShardLayout) (was, is []byte, err error) {
	was = make([]byte, f.DataOffset)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, f.DataOffset), was); err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := shard.WriteHeader(&b); err != nil {
		return nil, nil, err
	}
	return was, b.Bytes(), nil
}

func (h *headerChange) write(m *gguf.Model) error {
	if err := m.Unchanged(); err != nil {
		return err
	}
	err := stage.ReplaceHeader(h.path, h.was, h.is)
	if errors.Is(err, stage.ErrShared) {
		return hint.With(err, "-o DIR writes the model anew")
	}
	return err
}

func (h *headerChange) describe(dry bool) string {
	if dry {
		return "nothing: this was a dry run; the new header fits in " + text.Safe(h.path)
	}
	return fmt.Sprintf("the header of %s, %s in their place", text.Safe(h.path), text.Count(len(h.is), "byte"))
}
