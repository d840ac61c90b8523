package calibration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"ggufreap/reap/engine"
	"ggufreap/reap/measure"
)

// SelfLabel is the label of text that the model has written itself.
const SelfLabel = "self"

// documentsAtOnce are written side by side.
const documentsAtOnce = 8

// writeText lets the model write at least so many tokens, as lines of JSON that are kept
// beside the result: {"tokens": [...], "text": "..."}.
func writeText(ctx context.Context, e *engine.Engine, tokens, length int, seed uint64, report func(done int)) ([]byte, error) {
	var lines bytes.Buffer
	for done, first := 0, 0; done < tokens; first += documentsAtOnce {
		documents, err := e.Write(ctx, engine.Write{Seed: seed, First: first, Count: documentsAtOnce, Length: length})
		if err != nil {
			return nil, err
		}
		before := done
		for _, document := range documents {
			if len(document) < 2 || done >= tokens {
				continue
			}
			done += len(document)
			said, err := e.Text(ctx, document)
			if err != nil {
				return nil, err
			}
			line, err := json.Marshal(struct {
				Tokens []int  `json:"tokens"`
				Text   string `json:"text"`
			}{document, string(bytes.ToValidUTF8(said, []byte("\uFFFD")))})
			if err != nil {
				return nil, err
			}
			lines.Write(append(line, '\n'))
		}
		if done == before {
			return nil, fmt.Errorf("the model ends each text that it begins: %d documents without a second token", first+documentsAtOnce)
		}
		report(done)
	}
	return lines.Bytes(), nil
}

// selfText makes a text of what was written.
func selfText(name string, lines []byte, weight float64) (*measure.Text, error) {
	return measure.ReadText(SelfLabel, name, weight, lines)
}
