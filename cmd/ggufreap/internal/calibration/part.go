package calibration

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf/pattern"
	"ggufreap/reap/measure"
)

const sumsEnding = ".sums"

// PartName returns the file name of a part of scores that are called as output is.
func PartName(output string, part, parts int) string {
	return fmt.Sprintf("%s.part-%d-of-%d%s", output, part, parts, sumsEnding)
}

var partName = pattern.Lazy(`^(.+)\.part-([1-9][0-9]*)-of-([1-9][0-9]*)\.sums$`)

// ParsePartName reads a name that [PartName] makes.
func ParsePartName(path string) (output string, parts int, ok bool) {
	m := partName().FindStringSubmatch(path)
	if m == nil {
		return "", 0, false
	}
	parts, err := strconv.Atoi(m[3])
	return m[1], parts, err == nil
}

// divide leaves this part of the text to be measured. It reports whether an earlier run has
// done so, and then counts what that one has measured.
func (w *work) divide(r *Result) (there bool, err error) {
	w.facts = measure.Facts{
		Source: measure.Model{
			StructureDigest: w.Source.StructureDigest, WeightsDigest: w.Source.WeightsDigest,
			Architecture: w.Source.Architecture, Name: w.Source.Name,
		},
		NumExperts: w.Experts.Count, TopK: w.Experts.Used, BlockCount: w.blockCount(),
		Engine: w.build, Settings: w.settings(), Basis: map[string]string{"chunks": w.basis["chunks"]},
	}
	_, w.facts.AllChunks = w.run.Chunks()
	w.run.Only(w.Part, w.Parts)
	w.basis["part"] = fmt.Sprintf("%d of %d", w.Part, w.Parts)
	return w.isThere(r)
}

// isThere reports whether the part was written by an earlier run, as it would be by this one.
func (w *work) isThere(r *Result) (bool, error) {
	data, err := files.Read(w.Sums())
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && w.Force:
		return false, nil
	case err != nil:
		return false, err
	}
	if err := w.take(data); err != nil {
		return false, hint.With(fmt.Errorf("%s: %w", text.Safe(w.Sums()), err), "--force replaces it")
	}
	return true, w.count(r)
}

// take counts what a part of this calibration holds as measured.
func (w *work) take(data []byte) error {
	there, err := measure.ReadPart(data)
	if err != nil {
		return err
	}
	mine, err := w.part()
	if err != nil {
		return err
	}
	if what := there.Difference(mine); what != "" {
		return fmt.Errorf("is of another calibration: %s", what)
	}
	return w.run.Take(there, w.Part)
}

func (w *work) part() (*measure.Part, error) {
	return w.run.Part(w.Part, w.Parts, w.facts, w.basis["devices"])
}

func (w *work) writePart() error {
	part, err := w.part()
	if err != nil {
		return err
	}
	data, err := part.Encode()
	if err != nil {
		return err
	}
	_, err = files.Write(w.Sums(), w.Force, w.Model.Paths(), files.Bytes(data))
	return err
}

// Siblings returns the names of all parts of the scores that a part belongs to.
func Siblings(path string) (paths []string, output string, ok bool) {
	output, parts, ok := ParsePartName(path)
	for i := 1; ok && i <= parts; i++ {
		paths = append(paths, PartName(output, i, parts))
	}
	return paths, filepath.Base(output), ok
}
