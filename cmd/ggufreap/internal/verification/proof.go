package verification

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// Prove says what is known of a release that is to be proven.
func (v *Job) Prove(m *gguf.Model, source *manifest.Pin) verify.ProveOptions {
	v.Source = source
	experts, _ := reap.FindExperts(m)
	tables := map[string]bool{}
	if experts != nil {
		for _, t := range experts.Tensors() {
			if t.Role == reap.IDTable {
				tables[t.Name] = true
			}
		}
	}
	v.readPlan(experts)
	edited := edit.Edited(m.Metadata())
	return verify.ProveOptions{
		Keep:      v.layers,
		ExpertIDs: func(tensor string) bool { return tables[tensor] },
		NewIDs: func(tensor string, source *manifest.IDs, keep []int) ([]byte, error) {
			return v.newIDs(m.Tensor(tensor), source, keep)
		},
		OldIDs:    func(tensor string, keep []int) (manifest.Sum, error) { return oldIDs(m.Tensor(tensor), keep) },
		MayChange: v.mayChange,
		Stated: func(key string) bool {
			_, named := slices.BinarySearch(edited, key)
			return named && edit.Harmless(source.Artifact.Architecture, key)
		},
	}
}

// newIDs returns what pruning makes of the source's table.
func (v *Job) newIDs(t *gguf.Tensor, source *manifest.IDs, keep []int) ([]byte, error) {
	n := v.sourceExperts()
	table := bytes.Clone(source.Table)
	if len(t.Shape) == 0 {
		return nil, fmt.Errorf("a table has rows")
	}
	err := reap.RemapIDs(table, t.File().Order, int(t.Shape[0]), n, keep, func(expert int) []int { return source.Others(expert, n) })
	return table, err
}

// oldIDs returns the digest that a table of expert ids would have with the source's
// numbers.
func oldIDs(t *gguf.Tensor, keep []int) (manifest.Sum, error) {
	digest, err := manifest.DigestOf(oldTable{t, keep})
	return digest.Sum, err
}

// An oldTable writes a table of expert ids with each id i replaced by keep[i].
type oldTable struct {
	*gguf.Tensor
	keep []int
}

func (t oldTable) WriteTo(w io.Writer) (int64, error) {
	in, out := bufio.NewReader(t.Reader()), bufio.NewWriter(w)
	id := make([]byte, 4)
	for n := int64(0); ; n += 4 {
		if _, err := io.ReadFull(in, id); err == io.EOF {
			return n, out.Flush()
		} else if err != nil {
			return n, fmt.Errorf("entry %d: %w", n/4, err)
		}
		i := t.File().Order.Uint32(id)
		if int64(i) >= int64(len(t.keep)) {
			return n, fmt.Errorf("entry %d is expert %d, want 0 to %d", n/4, int32(i), len(t.keep)-1)
		}
		t.File().Order.PutUint32(id, uint32(t.keep[i]))
		out.Write(id)
	}
}

// readPlan reads the plan that was given, or else the folder's own.
func (v *Job) readPlan(experts *reap.Experts) {
	path := v.PlanPath
	if path == "" {
		path = filepath.Join(v.Path, release.PlanName)
	}
	read := func() ([]byte, error) { return files.ReadInput(v.Stdin, path) }
	if v.PlanPath == "" {
		read = func() ([]byte, error) { return files.ReadAtMost(path, planfile.MaxBytes) }
	}
	data, err := read()
	if err != nil {
		if v.PlanPath != "" {
			v.Err = filekind.ExplainFile(err, path, filekind.Plan)
		}
		return
	}
	var source reap.Experts
	if experts != nil {
		source = *experts
	}
	source.Count = v.sourceExperts()
	plan, err := planfile.Read(data, &source)
	switch {
	case err == nil:
		v.layers = plan.Layers
	case v.PlanPath != "":
		v.Err = filekind.Explain(fmt.Errorf("%s: %w", text.Safe(path), err), path, bytes.NewReader(data), filekind.Plan)
	}
}

// sourceExperts returns how many experts a block of the source has, as its pin tells.
func (v *Job) sourceExperts() int {
	n := 0
	for _, t := range v.Source.Tensors {
		if t.Slabs != nil {
			n = max(n, t.Slabs.Count)
		}
	}
	return n
}

// mayChange allows the keys by which prune states the derivation, with what they must say
// of the source, and those by which the model is said to have a base. What else they say is
// held against the plan.
func (v *Job) mayChange(pair manifest.Pair) (*gguf.Value, bool) {
	switch pair.Key {
	case reap.KeySourceStructure:
		structure, err := v.Source.StructureDigest()
		value := gguf.TextValue(structure.String())
		return &value, err == nil
	case reap.KeySourcePin:
		value := gguf.TextValue(v.Source.PinDigest.String())
		return &value, true
	case reap.KeySourceWeights:
		value := gguf.TextValue(v.Source.WeightsDigest.String())
		return &value, true
	case reap.KeySourceExperts:
		value := gguf.Uint32Value(uint32(v.sourceExperts()))
		return &value, true
	case reap.KeyPlan, reap.KeyCriterion, reap.KeyEvidence, edit.KeyEdited:
		return nil, true
	}
	return nil, edit.IsBaseKey(pair.Key, pair.Type)
}

// maxUnproven bounds the tensors that are printed; the JSON document has all.
const maxUnproven = 20

// printProof prints how much of a release is shown to be its source's, and what is not.
func printProof(con *ui.Console, p *verify.Proof) {
	con.Printf("\n")
	con.DigestField("source", text.Safe(p.Source)+", pin digest", p.PinDigest.String())
	con.Field("proven", "%s", text.Size(p.Proven))
	con.Field("unproven", "%s", text.Size(p.Unproven))
	if len(p.Layers) > 0 {
		con.Field("experts", "%d of %d in each of %s, found by their bytes", len(p.Layers[0].Keep), p.Experts, text.Count(len(p.Layers), "layer"))
	}
	for _, m := range p.Metadata {
		if m.Allowed {
			con.Field("allowed", "key %s was %s", text.Safe(strconv.Quote(m.Key)), m.Change)
		}
	}
	unproven := slices.DeleteFunc(slices.Clone(p.Tensors), func(t verify.TensorProof) bool { return t.Proven == t.Size })
	for _, t := range unproven[:min(len(unproven), maxUnproven)] {
		con.Field("unproven", "tensor %s: %s of %s", text.Safe(strconv.Quote(t.Name)), text.Grouped(t.Size-t.Proven), text.Count(t.Size, "byte"))
	}
	if more := len(unproven) - maxUnproven; more > 0 {
		con.Field("", "and %s more; --json lists them all", text.Count(more, "tensor"))
	}
}
