package sign

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The names that PROVENANCE.md explains.
const (
	provenanceType = "https://slsa.dev/provenance/v1"
	// BuildType says what externalParameters and resolvedDependencies mean.
	BuildType = "urn:ggufreap:derive:v1"
	// LocalBuilder is the builder when nobody names one: a machine that nobody vouches for.
	LocalBuilder = "urn:ggufreap:builder:local"
)

// What an input was to a release.
const (
	RoleSource    = "source"
	RoleSourcePin = "pin of the source" // a file of the release
	RolePlan      = "plan"              // likewise
	RoleScores    = "scores"
)

// StatedByHub marks a digest that a hub told and nobody computed.
const StatedByHub = "stated by the hub, not computed"

// Provenance says what a release was made from, and how. Nothing in it depends on when or
// where a run took place, so that the same release has the same statement.
type Provenance struct {
	Files      []File // of the release: all that the list of sums names
	Parameters Parameters
	Inputs     []Input
	Builder    string // URI of who is trusted to have told the truth; "" is [LocalBuilder]
	Version    string // of this program
}

// Parameters are what the person who made the release chose.
type Parameters struct {
	Command    string `json:"command"`                  // "prune" or "reshard"
	Source     string `json:"source"`                   // address or name of the source
	SourcePin  string `json:"sourcePinDigest,omitzero"` // what the release states of it
	PlanDigest string `json:"planDigest,omitzero"`
	Experts    string `json:"experts,omitzero"` // "568 of 896"
	Criterion  string `json:"criterion,omitzero"`
	Evidence   string `json:"criterionEvidence,omitzero"`
	Shards     int    `json:"shards"`
}

// An Input is something that the release was made from.
type Input struct {
	Name   string `json:"name"`
	URI    string `json:"uri,omitzero"`
	SHA256 string `json:"-"` // 64 hexadecimal digits, or "" when it is not known
	// Notes are facts that no digest of the form has a place for: "pinDigest", "role", "sha256"
	// with [StatedByHub].
	Notes map[string]string `json:"annotations,omitzero"`
}

// The parts of the predicate.
type (
	provenanceText struct {
		Definition definitionText `json:"buildDefinition"`
		Run        runText        `json:"runDetails"`
	}
	definitionText struct {
		BuildType    string      `json:"buildType"`
		External     Parameters  `json:"externalParameters"`
		Dependencies []inputText `json:"resolvedDependencies"`
	}
	inputText struct {
		Input  `json:",inline"`
		Digest map[string]string `json:"digest,omitzero"`
	}
	runText struct {
		Builder builderText `json:"builder"`
	}
	builderText struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version,omitzero"`
	}
)

// Statement returns the bytes of the statement, an in-toto Statement v1 with the predicate of
// SLSA provenance v1.
func (p *Provenance) Statement() ([]byte, error) {
	if len(p.Files) == 0 {
		return nil, errors.New("the release has no files")
	}
	var about []subject
	for _, f := range slices.SortedFunc(slices.Values(p.Files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) }) {
		about = append(about, subject{f.Name, map[string]string{"sha256": hex.EncodeToString(f.SHA256[:])}})
	}
	doc := provenanceText{
		Definition: definitionText{BuildType: BuildType, External: p.Parameters, Dependencies: []inputText{}},
		Run:        runText{Builder: builderText{ID: cmp.Or(p.Builder, LocalBuilder)}},
	}
	if p.Version != "" {
		doc.Run.Builder.Version = map[string]string{"ggufreap": p.Version}
	}
	for _, in := range p.Inputs {
		t := inputText{Input: in}
		if in.SHA256 != "" {
			t.Digest = map[string]string{"sha256": in.SHA256}
		}
		doc.Definition.Dependencies = append(doc.Definition.Dependencies, t)
	}
	return writeStatement(about, provenanceType, doc)
}

// readProvenance reads a statement whose signature was checked.
func readProvenance(payload []byte) (*Provenance, error) {
	s, err := readStatement(payload, provenanceType)
	if err != nil {
		return nil, err
	}
	var doc provenanceText
	if err := json.Unmarshal(s.Predicate, &doc); err != nil {
		return nil, fmt.Errorf("the provenance: %w", err)
	}
	if doc.Definition.BuildType != BuildType {
		return nil, fmt.Errorf("the provenance is of build type %q, want %q", doc.Definition.BuildType, BuildType)
	}
	if err := checkParameters(s.Predicate); err != nil {
		return nil, err
	}
	p := &Provenance{Parameters: doc.Definition.External, Builder: doc.Run.Builder.ID, Version: doc.Run.Builder.Version["ggufreap"]}
	seen := map[string]bool{}
	for _, about := range s.Subject {
		sum, err := hex.DecodeString(about.Digest["sha256"])
		switch {
		case err != nil || len(sum) != 32:
			return nil, fmt.Errorf("the provenance: %q: sha256 is %q, want 64 hexadecimal digits", about.Name, about.Digest["sha256"])
		case seen[about.Name]:
			return nil, fmt.Errorf("the provenance names %q twice", about.Name)
		}
		seen[about.Name] = true
		p.Files = append(p.Files, File{about.Name, [32]byte(sum)})
	}
	for _, t := range doc.Definition.Dependencies {
		t.Input.SHA256 = t.Digest["sha256"]
		p.Inputs = append(p.Inputs, t.Input)
	}
	return p, nil
}

// checkParameters refuses parameters that this program does not know: they could say what it
// would have to compare.
func checkParameters(predicate []byte) error {
	var doc struct {
		Definition struct {
			External jsontext.Value `json:"externalParameters"`
		} `json:"buildDefinition"`
	}
	if err := json.Unmarshal(predicate, &doc); err != nil {
		return fmt.Errorf("the provenance: %w", err)
	}
	var known Parameters
	if err := json.Unmarshal(doc.Definition.External, &known, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("the provenance's externalParameters: %w", err)
	}
	return nil
}

// Compare lists in what a release differs from its provenance: files are those of its list of
// sums, parameters what its plan and keys say.
func (p *Provenance) Compare(files []File, is Parameters) []Fault {
	var faults []Fault
	stated := map[string][32]byte{}
	for _, f := range p.Files {
		stated[f.Name] = f.SHA256
	}
	for _, f := range files {
		sum, ok := stated[f.Name]
		switch {
		case !ok:
			faults = append(faults, Fault{f.Name, "the provenance does not name it"})
		case sum != f.SHA256:
			faults = append(faults, Fault{f.Name, fmt.Sprintf("the provenance says sha256 %x, the list of sums %x", sum, f.SHA256)})
		}
		delete(stated, f.Name)
	}
	for name := range stated {
		faults = append(faults, Fault{name, "the provenance names it, the list of sums does not"})
	}
	for _, in := range p.Inputs {
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == in.Name })
		own := in.Notes["role"] == RolePlan || in.Notes["role"] == RoleSourcePin
		if own && i >= 0 && in.SHA256 != hex.EncodeToString(files[i].SHA256[:]) {
			faults = append(faults, Fault{in.Name, fmt.Sprintf("the provenance says that it was made from this file with sha256 %s, the list of sums %x", in.SHA256, files[i].SHA256)})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.File, b.File) })
	return append(faults, p.Parameters.compare(is)...)
}

// compare lists the facts of a release that are not those stated. What the release does not
// say is not compared.
func (stated Parameters) compare(is Parameters) []Fault {
	var faults []Fault
	for _, fact := range []struct{ name, stated, is string }{
		{"source pin digest", stated.SourcePin, is.SourcePin},
		{"plan digest", stated.PlanDigest, is.PlanDigest},
		{"experts", stated.Experts, is.Experts},
		{"criterion", stated.Criterion, is.Criterion},
		{"criterion evidence", stated.Evidence, is.Evidence},
		{"shards", fmt.Sprint(stated.Shards), fmt.Sprint(is.Shards)},
	} {
		if fact.stated != fact.is {
			faults = append(faults, Fault{What: fmt.Sprintf("the provenance says %s %q, the release has %q", fact.name, fact.stated, fact.is)})
		}
	}
	return faults
}
