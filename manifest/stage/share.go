package stage

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"ggufreap/manifest"
	"ggufreap/manifest/parts"
)

// A Share is one part of a release that many tasks write, on any machines, each into the
// same folder. No task speaks with another, and none relies on a lock.
type Share struct {
	Part, Parts int    // Part counts from 1
	Task        string // the command
	Program     string // its version
	Runner      string // who writes, as a file name can have it; for people
	Declared    manifest.Declared
}

// noteMark ends the name of what a task that has not ended notes of its part.
const noteMark = ".unfinished"

// recordName is the name of the part's record.
func (s Share) recordName() string { return parts.Name(s.Part, s.Parts) }

// noteName is the name of what stands in its place until the part is done.
func (s Share) noteName() string { return noteName(s.Part, s.Parts) }

func noteName(i, n int) string {
	return strings.TrimSuffix(parts.Name(i, n), ".json") + noteMark + ".json"
}

// parseNote reads a name that noteName makes.
func parseNote(name string) (i, n int, ok bool) {
	before, found := strings.CutSuffix(name, noteMark+".json")
	if !found {
		return 0, 0, false
	}
	return parts.ParseName(before + ".json")
}

// partsOf returns of how many parts a file is that names one of them: a record or a note.
func partsOf(name string) (n int, ok bool) {
	if _, n, ok = parts.ParseName(name); !ok {
		_, n, ok = parseNote(name)
	}
	return n, ok
}

// runName returns what tells the temporary files of this run from those of any other.
func (s Share) runName() string {
	return fmt.Sprintf(".%s%s%s", s.Runner, strings.ToLower(rand.Text()[:runLength]), partSuffix)
}

const (
	runLength = 10
	// maxRunName is the longest that runName returns.
	maxRunName = 1 + maxRunner + runLength + len(partSuffix)
	maxRunner  = 48
)

// check refuses a share that cannot be.
func (s Share) check() error {
	if s.Part < 1 || s.Part > s.Parts || s.Parts > parts.MaxParts {
		return fmt.Errorf("part %d of %d", s.Part, s.Parts)
	}
	if len(s.Runner) > maxRunner || strings.ContainsAny(s.Runner, `/\`) {
		return fmt.Errorf("runner %q", s.Runner)
	}
	return nil
}

// costs are the bytes that each shard takes to read and to write.
func (r *Release) costs() []int64 {
	costs := make([]int64, len(r.Layout.Shards))
	for i, shard := range r.Layout.Shards {
		costs[i] = shard.Size + shard.TensorBytes()
	}
	return costs
}

// ShardsOf returns which shards a part has, by number from 0.
func (r *Release) ShardsOf(part, n int) []int { return parts.Divide(r.costs(), n)[part-1] }

// newRecord returns the record of a part of the release as far as headers tell.
func newRecord(r Release, s Share, head *journalHead, draft *manifest.Draft) *parts.Record {
	pin := *draft.Headers()
	pin.Declared = s.Declared
	record := parts.New(&pin, append(slices.Clone(r.Origin), head.facts(r.Known)...))
	record.Task, record.Program, record.Part, record.Parts = s.Task, s.Program, s.Part, s.Parts
	return record
}

// facts are what decides the bytes of a release beside its origin.
func (h *journalHead) facts(known map[string]manifest.Sum) []Fact {
	var sources, shards, documents []string
	for _, f := range h.Sources {
		sources = append(sources, parts.FileLine(f.Name, f.Size, f.Identity))
	}
	for _, s := range h.Shards {
		shards = append(shards, fmt.Sprintf("%q\t%d\t%s\t%s", s.Name, s.Size, s.Header, s.Ranges))
	}
	for _, name := range h.Documents {
		documents = append(documents, fmt.Sprintf("%q\t%s", name, known[name]))
	}
	return []Fact{
		parts.FactOf("list of source files", slices.Values(sources)),
		parts.FactOf("list of shards and what they are made of", slices.Values(shards)),
		parts.FactOf("list of documents", slices.Values(documents)),
	}
}
