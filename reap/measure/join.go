package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf/words"
	"ggufreap/reap"
	"ggufreap/reap/scorefile"
	"ggufreap/reap/tally"
)

// A Join adds up parts. Sums are exact, so that neither the number of parts nor their order
// changes a bit of what comes of it.
type Join struct {
	first   *Part
	added   []bool // by number less one
	chunks  int
	sums    []*tally.Tally // by kind
	devices []string
}

// Add adds a part. It refuses one that comes twice, and one of another model, of other texts,
// settings or numbers of parts than those before it.
func (j *Join) Add(p *Part) error {
	if j.first == nil {
		j.first, j.added = p, make([]bool, p.Parts)
		for i := range p.sums {
			j.sums = append(j.sums, p.sums[i].Clone())
		}
	} else if err := j.add(p); err != nil {
		return err
	}
	j.added[p.Number-1] = true
	j.chunks += p.Chunks
	if !slices.Contains(j.devices, p.Devices) {
		j.devices = append(j.devices, p.Devices)
	}
	return nil
}

func (j *Join) add(p *Part) error {
	if what := j.first.Difference(p); what != "" {
		return fmt.Errorf("parts %d and %d are not of one calibration: %s", j.first.Number, p.Number, what)
	}
	if j.added[p.Number-1] {
		return fmt.Errorf("part %d comes twice", p.Number)
	}
	for i := range p.sums {
		if err := j.sums[i].Merge(p.sums[i]); err != nil {
			return err
		}
	}
	return nil
}

// A MissingError says which parts are not there.
type MissingError struct {
	Missing []int // from 1, ascending
	Parts   int
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s of %d %s missing: scores of some of the text are not those of all", words.Verb(len(e.Missing), "part", "parts"), words.Ranges(e.Missing), e.Parts, words.Verb(len(e.Missing), "is", "are"))
}

// Measurements returns what all parts measured together, which is what one run measures.
func (j *Join) Measurements() (*scorefile.Measurements, error) {
	if j.first == nil {
		return nil, errors.New("no parts")
	}
	missing := &MissingError{Parts: j.first.Parts}
	for i, added := range j.added {
		if !added {
			missing.Missing = append(missing.Missing, i+1)
		}
	}
	if len(missing.Missing) > 0 {
		return nil, missing
	}
	f := &j.first.Facts
	if j.chunks != f.AllChunks {
		return nil, fmt.Errorf("the parts have %d chunks together, want %d", j.chunks, f.AllChunks)
	}
	m, seen, experts, err := measurements(f.Kinds, j.sums)
	if err != nil {
		return nil, err
	}
	m.Source = reap.Source{StructureDigest: f.Source.StructureDigest, WeightsDigest: f.Source.WeightsDigest, Architecture: f.Source.Architecture, Name: f.Source.Name}
	m.Engine = f.Engine
	m.Settings = SettingsOf(f.Settings, j.chunks, f.AllChunks, seen, experts)
	if len(j.devices) > 1 {
		m.Notes = append(m.Notes, fmt.Sprintf("parts were measured on different devices, whose last bits can differ: %s", strings.Join(j.devices, "; ")))
	}
	return m, nil
}

// Experts returns what score files state of the model's experts, and the number of blocks.
func (j *Join) Experts() (e *reap.Experts, blocks int) {
	f := &j.first.Facts
	return &reap.Experts{Architecture: f.Source.Architecture, Count: f.NumExperts, Used: f.TopK}, f.BlockCount
}
