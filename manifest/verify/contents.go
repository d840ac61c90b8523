package verify

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
}

// headBytes is how much of a file its content is told by: zip archives of PyTorch name
// data.pkl in their first entry.
const headBytes = 128

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

// magics are beginnings of files that can run when they are loaded.
var magics = []struct{ prefix, what string }{
	{"\x7fELF", "a program or library (ELF)"},
	{"MZ", "a program or library for Windows"},
	{"\xfe\xed\xfa\xce", "a program or library (Mach-O)"}, {"\xfe\xed\xfa\xcf", "a program or library (Mach-O)"},
	{"\xce\xfa\xed\xfe", "a program or library (Mach-O)"}, {"\xcf\xfa\xed\xfe", "a program or library (Mach-O)"},
	{"\xca\xfe\xba\xbe", "a program or library (Mach-O or Java)"},
	{"#!", "a script"},
	{"\x00asm", "a WebAssembly program"},
}

// codeNames are endings of names of files that can run, whatever they begin with.
var codeNames = map[string]string{
	".py": "Python code", ".pyc": "Python code", ".pyw": "Python code", ".ipynb": "a notebook with code", ".sh": "a script", ".bash": "a script",
	".bat": "a script", ".cmd": "a script", ".ps1": "a script", ".js": "a script", ".mjs": "a script", ".lua": "a script", ".rb": "a script", ".pl": "a script", ".php": "a script",
	".so": "a library", ".dll": "a library", ".dylib": "a library", ".pyd": "a library", ".exe": "a program", ".com": "a program", ".jar": "a program", ".wasm": "a program",
}

// pickleNames are endings of names under which Python pickles are loaded.
var pickleNames = []string{".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".dill"}

// oldModels are the magics of llama.cpp's formats before GGUF, as they stand in files.
var oldModels = []string{"lmgg", "tjgg", "fmgg", "algg"}

func sniff(name string, head []byte) content {
	ext := strings.ToLower(path.Ext(name))
	has := func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }
	c := content{model: has("GGUF") || has("FUGG") || gguf.IsModelFile(name)}
	switch {
	case c.model:
		return c
	case isPickle(head) || slices.Contains(pickleNames, ext):
		c.weights, c.runs = "a Python pickle", "a Python pickle"
	case len(head) > 9 && head[8] == '{' && bytes.Count(head[2:8], []byte{0}) >= 4:
		c.weights = "a safetensors file"
	case has("PK\x03\x04") && (bytes.Contains(head, []byte(".npy")) || ext == ".npz"):
		c.weights = "NumPy arrays"
	case has("\x93NUMPY"):
		c.weights = "a NumPy array"
	case has("\x89HDF\r\n\x1a\n"):
		c.weights = "an HDF5 file"
	case ext == ".onnx" || ext == ".tflite" || ext == ".safetensors":
		c.weights = "a " + ext[1:] + " file"
	case ext == ".keras":
		c.weights, c.runs = "a Keras model", "a Keras model"
	}
	for _, old := range oldModels {
		if has(old) {
			c.weights = "a model in a format older than GGUF"
		}
	}
	for _, m := range magics {
		if c.runs == "" && has(m.prefix) {
			c.runs = m.what
		}
	}
	if c.runs == "" {
		c.runs = codeNames[ext]
	}
	return c
}

// isPickle reports whether a file begins as a pickle of protocol 2 or later, or as a zip
// archive of PyTorch around one, or as an object of protocol 0 or 1.
func isPickle(head []byte) bool {
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return bytes.Contains(head, []byte("data.pkl")) || bytes.Contains(head, []byte("/data.pkl"))
	}
	return len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && bytes.IndexByte([]byte("}]c)(X\x8c\x95\x8a\x8e\xff"), head[2]) >= 0 ||
		bytes.HasPrefix(head, []byte("c__builtin__")) || bytes.HasPrefix(head, []byte("cos\n")) || bytes.HasPrefix(head, []byte("cposix\n"))
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
		if !v.elsewhere(s.Name) {
			only = append(only, s.Name)
		}
	}
	if len(only) > 0 && !v.signed {
		v.report.gap(fmt.Sprintf("%s %s checked against %s alone: %s", words.Count(len(only), "file"), words.Verb(len(only), "is", "are"), manifest.SumsName, nameList(only)), "that they are what was published with the model")
	}
}

// elsewhere reports whether a listed file was held against something beside the list.
func (v *verifier) elsewhere(name string) bool {
	if name == manifest.PinName && v.pin != nil && v.got != nil || v.report.held[name] {
		return true
	}
	for _, m := range v.models {
		if slices.ContainsFunc(m.Paths(), func(path string) bool { return filepath.Clean(path) == v.path(name) }) {
			return true // it is looked at as a model, and what of it is not proven is said there
		}
	}
	return slices.ContainsFunc(v.claims, func(c claim) bool { return c.name == name && c.by != manifest.SumsName && v.vouched[name] })
}
