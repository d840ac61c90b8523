package parts

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"ggufreap/manifest"
)

// Validate returns the first thing in which a record contradicts itself. Sizes, shapes and
// digests of tensors are compared when all parts are joined to a pin.
func (r *Record) Validate() error {
	switch {
	case r.Schema != RecordSchema:
		return fmt.Errorf("record: schema is %q, want %q", r.Schema, RecordSchema)
	case r.Parts < 1 || r.Parts > MaxParts || r.Part < 1 || r.Part > r.Parts:
		return fmt.Errorf("record: part %d of %d", r.Part, r.Parts)
	case r.Artifact.Shards < 1 || r.Artifact.Shards > maxFiles:
		return fmt.Errorf("record: %d files, want 1 to %d", r.Artifact.Shards, maxFiles)
	}
	for _, d := range r.Documents {
		if err := checkName(d.Name, d.Size); err != nil {
			return err
		}
	}
	return r.checkFiles()
}

// maxFiles is as many shards as a split can have.
const maxFiles = 1<<16 - 1

func (r *Record) checkFiles() error {
	last, tensors := 0, 0
	for _, f := range r.Files {
		if err := checkName(f.Name, f.Size); err != nil {
			return err
		}
		if f.Number <= last || f.Number > r.Artifact.Shards {
			return fmt.Errorf("record: file %q is number %d of %d, behind number %d", f.Name, f.Number, r.Artifact.Shards, last)
		}
		if f.Tensors < 0 || f.Tensors > len(r.Tensors)-tensors {
			return fmt.Errorf("record: file %q has %d tensors, %d are left", f.Name, f.Tensors, len(r.Tensors)-tensors)
		}
		last, tensors = f.Number, tensors+f.Tensors
	}
	if tensors != len(r.Tensors) {
		return fmt.Errorf("record: files have %d tensors, there are %d", tensors, len(r.Tensors))
	}
	return nil
}

// checkName refuses a file that is not one right in the folder, or one that marks releases.
func checkName(name string, size int64) error {
	if err := manifest.CheckFileName(name); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	_, _, record := ParseName(name)
	switch {
	case strings.ContainsAny(name, `/\`):
		return fmt.Errorf("record: file name %q names a folder too", name)
	case record || name == manifest.SumsName || name == manifest.JournalName:
		return fmt.Errorf("record: file name %q is one that marks releases", name)
	case size < 0 || size > math.MaxInt64/2:
		return fmt.Errorf("record: file %q has %d bytes", name, size)
	}
	return nil
}

// Difference says in what another record is about other work than this one, or "".
func (r *Record) Difference(other *Record) string {
	switch {
	case r.Task != other.Task:
		return fmt.Sprintf("it is of %s, want %s", other.Task, r.Task)
	case r.Program != other.Program:
		return fmt.Sprintf("version %s of the program wrote it, want %s", other.Program, r.Program)
	case r.Parts != other.Parts:
		return fmt.Sprintf("it is one of %d parts, want %d", other.Parts, r.Parts)
	}
	if what := differentFacts(r.Facts, other.Facts); what != "" {
		return what
	}
	switch {
	case r.Artifact != other.Artifact:
		return fmt.Sprintf("it is of %s, want %s", artifactText(other.Artifact), artifactText(r.Artifact))
	case !reflect.DeepEqual(r.Declared, other.Declared): // pointers to text
		return "it declares other facts of the model"
	case !slices.Equal(r.Metadata, other.Metadata):
		return "it has other metadata"
	}
	return ""
}

func differentFacts(want, got []Fact) string {
	for i, f := range want {
		switch {
		case i >= len(got):
			return "it has no " + f.Name
		case got[i].Name != f.Name:
			return fmt.Sprintf("it has a %s, want a %s", got[i].Name, f.Name)
		case got[i].Digest != f.Digest:
			return fmt.Sprintf("the %s is %s, want %s", f.Name, got[i].Digest, f.Digest)
		}
	}
	if len(got) > len(want) {
		return "it has a " + got[len(want)].Name
	}
	return ""
}

func artifactText(a manifest.Artifact) string {
	return fmt.Sprintf("%q, %d bytes in %d files", a.Name, a.FileBytes, a.Shards)
}
