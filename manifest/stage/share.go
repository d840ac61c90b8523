package stage

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

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
	pin := draft.Headers()
	facts := slices.Clone(r.Origin)
	return &parts.Record{
		Schema:   parts.RecordSchema,
		Task:     s.Task,
		Program:  s.Program,
		Part:     s.Part,
		Parts:    s.Parts,
		Artifact: pin.Artifact,
		Declared: pin.Declared,
		Facts:    append(facts, head.facts(r.Known)...),
		Metadata: pin.Metadata,
	}
}

// facts are what decides the bytes of a release beside its origin. That a source's file was
// modified at another time does not count: machines can have copies of their own.
func (h *journalHead) facts(known map[string]manifest.Sum) []Fact {
	sources, cut, documents := blake3.New(), blake3.New(), blake3.New()
	for _, f := range h.Sources {
		fmt.Fprintf(sources, "%q\t%d\t%q\n", f.Name, f.Size, f.Identity)
	}
	for _, s := range h.Shards {
		fmt.Fprintf(cut, "%q\t%d\t%s\t%s\n", s.Name, s.Size, s.Header, s.Ranges)
	}
	for _, name := range h.Documents {
		fmt.Fprintf(documents, "%q\t%s\n", name, known[name])
	}
	fact := func(name string, h *blake3.Hasher) Fact {
		return Fact{Name: name, Digest: manifest.Digest{Algorithm: manifest.BLAKE3, Sum: manifest.Sum(h.Sum(nil))}}
	}
	return []Fact{fact("list of source files", sources), fact("list of shards and what they are made of", cut), fact("list of documents", documents)}
}
