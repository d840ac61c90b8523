package verify

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
)

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
var codeNames = endings(map[string]string{
	"Python code":          ".py .pyc .pyw .pyx .pyz",
	"a notebook with code": ".ipynb",
	"a script":             ".sh .bash .zsh .fish .csh .ksh .bat .cmd .ps1 .psm1 .vbs .vbe .wsf .js .mjs .cjs .ts .lua .rb .pl .php .tcl .command .applescript",
	"a page with scripts":  ".html .htm .xhtml .svg .hta .mht",
	"a library":            ".so .dll .dylib .pyd",
	"a program":            ".exe .com .scr .msi .jar .apk .wasm .appimage .llamafile",
	"a shortcut":           ".lnk .desktop .url .webloc",
	"a Keras model":        ".keras",
})

// weightNames are endings of names of models in formats that nothing else tells.
var weightNames = endings(map[string]string{
	"a safetensors file":       ".safetensors",
	"a model of Keras":         ".keras",
	"an ONNX model":            ".onnx .ort",
	"a model of TensorFlow":    ".tflite .pb .litertlm .task",
	"a model of Flax":          ".msgpack",
	"a model for a device":     ".pte .mlmodel .engine .rknn .rkllm .dlc .ncnn",
	"a model of older formats": ".ggml .ggjt",
})

// endings turns lists of endings around.
func endings(lists map[string]string) map[string]string {
	what := map[string]string{}
	for words, list := range lists {
		for ext := range strings.FieldsSeq(list) {
			what[ext] = words
		}
	}
	return what
}

// packings are beginnings of files whose contents are not seen from outside.
var packings = []struct{ prefix, what string }{
	{"PK\x03\x04", "a zip archive"}, {"PK\x05\x06", "a zip archive"}, {"\x28\xb5\x2f\xfd", "compressed (zstd)"}, {"\x1f\x8b", "compressed (gzip)"},
	{"\xfd7zXZ\x00", "compressed (xz)"}, {"BZh", "compressed (bzip2)"}, {"7z\xbc\xaf\x27\x1c", "a 7z archive"}, {"Rar!\x1a\x07", "a RAR archive"},
	{"\x04\x22\x4d\x18", "compressed (lz4)"}, {"LZIP", "compressed (lzip)"},
}

// pickleNames are endings of names under which Python pickles are loaded.
var pickleNames = []string{".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".dill", ".pdparams", ".nemo", ".ptl", ".pt2"}

// oldModels are the magics of llama.cpp's formats before GGUF, as they stand in files.
var oldModels = []string{"lmgg", "tjgg", "fmgg", "algg"}

func sniff(name string, head []byte) content {
	if gguf.IsModelFile(name) || begins(head, "GGUF") || begins(head, "FUGG") {
		return content{model: true}
	}
	ext := strings.ToLower(path.Ext(name))
	c := content{weights: weightsOf(ext, head), runs: runsOf(ext, head)}
	if c.weights == "" {
		c.packed = packingOf(head)
	}
	return c
}

func begins(head []byte, prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }

func weightsOf(ext string, head []byte) string {
	switch {
	case slices.ContainsFunc(oldModels, func(magic string) bool { return begins(head, magic) }):
		return "a model in a format older than GGUF"
	case isPickle(ext, head):
		return pickle
	case len(head) > 9 && head[8] == '{' && bytes.Count(head[2:8], []byte{0}) >= 4:
		return "a safetensors file"
	case begins(head, "PK\x03\x04") && (bytes.Contains(head, []byte(".npy")) || ext == ".npz"):
		return "NumPy arrays"
	case begins(head, "\x93NUMPY"):
		return "a NumPy array"
	case begins(head, "\x89HDF\r\n\x1a\n"):
		return "an HDF5 file"
	}
	return weightNames[ext]
}

func runsOf(ext string, head []byte) string {
	if isPickle(ext, head) {
		return pickle
	}
	for _, m := range magics {
		if begins(head, m.prefix) {
			return m.what
		}
	}
	return codeNames[ext]
}

func packingOf(head []byte) string {
	for _, p := range packings {
		if begins(head, p.prefix) {
			return p.what
		}
	}
	if isTar(head) {
		return "a tar archive"
	}
	return ""
}

const pickle = "a Python pickle" // holds weights, and runs

// pickleText begins a pickle of protocol 0 or 1 that loads something by its name, or an empty
// list or table.
var pickleText = pattern.Lazy(`^(?:[(]*[ci][A-Za-z_][\w.]*\r?\n[A-Za-z_][\w.]*\r?\n(?:[^\sA-Za-z]|[pS][0-9'"])|[(][dl]p[0-9]+\r?\n|[(]?[\]}]q[\x00-\x08])`)

// isPickle reports whether a file begins as a pickle, or as a zip archive of PyTorch around one,
// or has the name of one.
func isPickle(ext string, head []byte) bool {
	const newest = 5 // protocol
	switch {
	case slices.Contains(pickleNames, ext):
		return true
	case begins(head, "PK\x03\x04"):
		return bytes.Contains(head, []byte("data.pkl"))
	}
	return len(head) > 2 && head[0] == 0x80 && head[1] <= newest || pickleText().Match(head)
}

// isTar reports whether a file begins as a tar archive, by the name of the format in its header.
func isTar(head []byte) bool {
	const at = 257
	return len(head) > at+5 && string(head[at:at+5]) == "ustar"
}
