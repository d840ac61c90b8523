package calibration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf/words"
	"ggufreap/reap"
	"ggufreap/reap/measure"
	"ggufreap/reap/scorefile"
)

// IsPart reports whether a file is a part of scores.
func IsPart(path string) (bool, error) {
	if files.IsStream(path) {
		return false, nil
	}
	in, err := files.OpenInput(nil, path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	return filekind.Of(in) == filekind.ScorePart, nil
}

// Join adds up parts of scores of a model: nil for the model that they name themselves.
func Join(ctx context.Context, paths []string, e *reap.Experts) (*measure.Join, *scorefile.Measurements, error) {
	j := &measure.Join{}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		part, err := readPart(path)
		if err == nil && e != nil {
			err = part.Describes(e)
		}
		if err == nil {
			err = j.Add(part)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", text.Safe(path), err)
		}
	}
	m, err := j.Measurements()
	return j, m, explainMissing(err, paths)
}

// explainMissing says what is to be given or submitted.
func explainMissing(err error, paths []string) error {
	missing, ok := errors.AsType[*measure.MissingError](err)
	if !ok {
		return err
	}
	if len(paths) == 1 && missing.Parts > 1 {
		return hint.With(err, "give --from for each part, or join them: %s", args.CommandLine([]string{"ggufreap", "assemble", paths[0]}))
	}
	return hint.With(err, "to be given, or submitted again: --array=%s", strings.ReplaceAll(words.Ranges(missing.Missing), " ", ""))
}

func readPart(path string) (*measure.Part, error) {
	in, err := files.OpenInput(nil, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if in.Size > measure.MaxPartBytes {
		return nil, fmt.Errorf("%d bytes, at most %d are read", in.Size, measure.MaxPartBytes)
	}
	data, err := io.ReadAll(io.LimitReader(in, in.Size))
	if err != nil {
		return nil, err
	}
	return measure.ReadPart(data)
}

// EncodeJoined returns the score files of parts that were added up.
func EncodeJoined(j *measure.Join, m *scorefile.Measurements) (npz, document []byte, err error) {
	e, blocks := j.Experts()
	if npz, err = m.EncodeNPZ(e, blocks); err != nil {
		return nil, nil, err
	}
	document, err = m.Encode(e)
	return npz, document, err
}

// JoinedInput names what parts were added up to in a plan: the document that one run writes,
// so that a plan does not tell how the work was divided.
func JoinedInput(m *scorefile.Measurements, e *reap.Experts, part string) (reap.Input, error) {
	document, err := m.Encode(e)
	if err != nil {
		return reap.Input{}, err
	}
	output, _, ok := ParsePartName(part)
	if !ok {
		output = "scores"
	}
	return reap.NewInput(filepath.Base(output)+".json", document), nil
}
