package scorefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"ggufreap/gguf/jsondoc"
	"ggufreap/reap"
)

// maxText is far more than a score file of text needs; such files are held in memory.
const maxText = 64 << 20

// Read reads a score file of size bytes for the model. The error names what the file is
// when it cannot be used, or is [reap.Faults]: everything in it that is wrong. Whether the
// scores cover the model is for [reap.Scores.Check] to say.
func Read(r io.ReaderAt, size int64, e *reap.Experts) (*Measurements, error) {
	head := make([]byte, min(size, 512))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("GGUF")) || bytes.HasPrefix(head, []byte("FUGG")):
		return readGGUF(r, size, e)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return readZip(r, size, e)
	case isPickle(head):
		return nil, errPickle
	case isLegacyImatrix(head):
		return nil, errLegacyImatrix
	}
	if size > maxText {
		return nil, fmt.Errorf("%d bytes, at most %d of text are read", size, maxText)
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return readJSON(data, e)
	}
	if isHotness(data) {
		return readHotness(data, e)
	}
	return nil, errors.New("not a score file: neither npz, GGUF, JSON nor a table \"layer,expert,count\"")
}

var (
	errPickle = errors.New("a PyTorch pickle (such as observations.pt): opening one can run code that it contains, so it is not read; " +
		"save its numbers with numpy.savez as saliency and counts, one row for each layer, with moe_layers")
	errLegacyImatrix = errors.New("a legacy imatrix (.dat): it stores neither how many tokens an expert got nor how many experts there are, " +
		"and its sums are rescaled, so neither count nor activation-energy can be had; collect one in the GGUF form of llama-imatrix")
)

// isPickle reports whether the file begins as a Python pickle of protocol 2 to 5.
func isPickle(head []byte) bool {
	return len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
}

// isLegacyImatrix recognises the form without a magic number: the number of entries, then
// the first one's name with its length, all in little-endian words of 32 bits.
func isLegacyImatrix(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	entries, length := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if entries == 0 || entries > 1<<20 || length == 0 || length > 256 || len(head) < 8+int(length) {
		return false
	}
	name := string(head[8 : 8+length])
	return strings.HasSuffix(name, ".weight") && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// maxValues is more numbers than any score file needs.
const maxValues = 4 << 20

// readJSON reads one of the JSON forms.
func readJSON(data []byte, e *reap.Experts) (*Measurements, error) {
	root, err := jsondoc.Parse(data, maxValues)
	if err != nil {
		return nil, err
	}
	d := &document{experts: e}
	d.Fault = d.faults.Add
	m := d.read(root)
	if len(d.faults) == 0 {
		m.check(e, &d.faults)
	}
	return m, d.faults.Err()
}

// A document is a JSON score file while it is being read.
type document struct {
	jsondoc.Fields
	experts *reap.Experts
	faults  reap.Faults
}

func (d *document) read(root *jsondoc.Node) *Measurements {
	format := root.Get("format")
	switch {
	case root.Get("schema") != nil:
		return d.readSaliency(root)
	case format != nil && format.Text() == cacheFormat:
		return d.readCache(root)
	case format != nil && format.Text() == "aikar-moe-prune",
		root.Get("layers") != nil, root.Get("keep") != nil, root.Get("pruned_experts") != nil:
		d.Fault("", "a plan, not scores: it says which experts to keep, not how good each one is")
	case isStats(root):
		return d.readStats(root)
	default:
		d.Fault("", "none of the known score files: no %q, no %q and no %q by layer", "schema", "format", "activation_counts")
	}
	return nil
}
