package verify

import (
	"fmt"
	"io"
	"path/filepath"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// A content is what a file of a folder is, by its first bytes and, where those cannot tell,
// by its name.
type content struct {
	model   bool   // GGUF, which is opened and looked at
	weights string // a model in another format, in words, or ""
	runs    string // what can run when it is loaded, in words, or ""
	packed  string // what hides its contents, in words, or ""
}

// headBytes is how much of a file its content is told by: the header of a tar archive. Zip
// archives of PyTorch name data.pkl in their first entry.
const headBytes = 512

// contentOf looks at the beginning of a regular file.
func contentOf(file string) (content, error) {
	f, _, err := manifest.OpenRegular(file)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return content{}, err
	}
	return sniff(filepath.Base(file), head[:n]), nil
}

// look takes note of what a file of the folder is.
func (v *verifier) look(name string) error {
	if _, ok := v.contents[name]; ok {
		return nil
	}
	c, err := contentOf(v.path(name))
	if gguf.MachineFault(err) {
		return err
	}
	if err != nil {
		c = content{model: gguf.IsModelFile(name)} // that it is unreadable is said where it is read
	}
	v.contents[name] = c
	if c.runs != "" {
		v.report.note(name, "can run code when it is loaded or opened: "+c.runs)
	}
	v.followLink(name)
	return nil
}

// A link leads from a file of the folder to one outside of it.
type link struct{ name, to string }

// followLink takes note of a link that leads out of the folder.
func (v *verifier) followLink(name string) {
	to, err := filepath.EvalSymlinks(v.path(name))
	dir, dirErr := filepath.EvalSymlinks(v.dir)
	if err != nil || dirErr != nil {
		return
	}
	if rel, err := filepath.Rel(dir, to); err != nil || !filepath.IsLocal(rel) {
		v.outside = append(v.outside, link{name, to})
	}
}

// reportLinks says which links lead out of the folder: in a hub's cache all do.
func (v *verifier) reportLinks() {
	if len(v.outside) == 0 {
		return
	}
	first := v.outside[0]
	what := fmt.Sprintf("is a link that leads out of the folder, to %q", first.to)
	if more := len(v.outside) - 1; more > 0 {
		what += fmt.Sprintf("; so %s %s", words.Verb(more, "does", "do"), words.Count(more, "more file"))
	}
	v.report.note(first.name, what)
}

// reportOnlyListed names the files for which nothing but the list vouches, and, where the
// source is known, models in formats that cannot be proven.
func (v *verifier) reportOnlyListed() {
	var only []string
	for _, s := range v.listed {
		c := v.contents[s.Name]
		if c.weights != "" && v.options.Source != nil {
			v.report.find(KindExtra, s.Name, "is "+c.weights+", which may hold a model, and is not proven to be made of the source")
		}
		if c.packed != "" && !v.report.held[s.Name] && s.Name != manifest.PinName {
			v.report.note(s.Name, "is "+c.packed+", and what is in it was not looked at")
		}
		if !v.elsewhere(s.Name) {
			only = append(only, s.Name)
		}
	}
	if len(only) > 0 && !v.signed {
		v.report.gap(fmt.Sprintf("%s %s checked against an unsigned list alone: %s", words.Count(len(only), "file"), words.Verb(len(only), "is", "are"), nameList(only)), "that they are what was published with the model")
	}
	if len(v.declared) > 0 && !v.signed {
		v.report.gap("what pins declare is in no digest: "+nameList(v.declared), "whether it is so, and who said it")
	}
}

// elsewhere reports whether a listed file was held against something beside lists: whoever
// changes a file can change or add a list.
func (v *verifier) elsewhere(name string) bool {
	return v.report.held[name] || v.shards[name] // what of a model is not proven is said there
}
