package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/edit"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
	"ggufreap/manifest/repair"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// openSources opens what --from names. One of several that cannot be a source is passed over.
func (r *repairing) openSources(c *cli.Context) error {
	var failed []error
	for _, from := range c.StringSlice("from") {
		if err := r.openSource(c, from); err != nil {
			failed = append(failed, err)
		}
	}
	if len(r.job.Sources) == 0 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		r.con.Warnf("passed over: %v", err)
	}
	return nil
}

// openSource opens one source, and makes the pinned model of it where that was pruned from it.
func (r *repairing) openSource(c *cli.Context, from string) error {
	m, err := openPaths(r.con, c, from)
	if err != nil {
		return err
	}
	s := &repair.Source{Name: text.Safe(from), Identity: from, Model: m}
	if far := hub.Of(m); far != nil {
		s.Name, s.Identity = text.Safe(remote.Redacted(from)), far.Identity()
	} else if path, err := filepath.Abs(from); err == nil {
		s.Identity = path
	}
	err = m.Err()
	if err == nil && r.job.Pin != nil && prunedFrom(r.job.Pin, m) {
		err = r.derive(c, s)
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	r.models, r.job.Sources = append(r.models, m), append(r.job.Sources, s)
	return nil
}

// prunedFrom reports whether the pinned model can have been pruned from another one: it has fewer
// experts in a tensor, and is like it otherwise.
func prunedFrom(pin *manifest.Pin, m *gguf.Model) bool {
	fewer := false
	for _, t := range pin.Tensors {
		other := m.Tensor(t.Name)
		switch {
		case other == nil || other.Type.String() != t.Type:
			return false
		case slices.Equal(gguf.CanonicalShape(other.Shape), gguf.CanonicalShape(t.Shape)):
		case t.Slabs == nil || t.Size >= other.Size:
			return false
		default:
			fewer = true
		}
	}
	return fewer
}

// derive makes the tensors of the release of its source: of the experts that it keeps, and the
// metadata, as far as that can be told.
func (r *repairing) derive(c *cli.Context, s *repair.Source) error {
	experts, err := reap.ReadExperts(s.Model)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	source := r.sourcePin()
	var reasons []error
	for _, find := range []func() (*reap.Plan, error){
		r.ownPlan,
		func() (*reap.Plan, error) { return r.provenPlan(experts, source) },
	} {
		plan, err := find()
		if err == nil {
			s.Views, err = reap.Views(c.Context, s.Model, experts, plan)
		}
		if err == nil {
			s.Metadata = r.derivedMetadata(s.Model, experts, plan, source)
			return nil
		}
		reasons = append(reasons, err)
	}
	return hint.With(fmt.Errorf("%s has fewer experts than %s, and nothing says which: %w", r.dir, s.Name, errors.Join(reasons...)),
		"%s or %s in the folder says it", release.PlanName, release.SourcePinName)
}

// ownPlan reads the plan in the folder.
func (r *repairing) ownPlan() (*reap.Plan, error) {
	plan, err := release.ReadPlan(r.dir)
	if err == nil && plan == nil {
		err = fmt.Errorf("%s: is not there", filepath.Join(r.dir, release.PlanName))
	}
	return plan, err
}

// sourcePin reads the pin of the source that lies in the folder, nil where there is none that can
// be read.
func (r *repairing) sourcePin() *manifest.Pin {
	pin, err := manifest.ReadPin(filepath.Join(r.dir, release.SourcePinName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.con.Warnf("passed over: %v", err)
	}
	return pin
}

// provenPlan finds out which experts of its source the pinned model keeps, by the digests of both.
func (r *repairing) provenPlan(experts *reap.Experts, source *manifest.Pin) (*reap.Plan, error) {
	if source == nil {
		return nil, fmt.Errorf("%s: is not there", filepath.Join(r.dir, release.SourcePinName))
	}
	plan := &reap.Plan{NumExperts: experts.Count, Layers: map[int][]int{}, Source: reap.Source{Architecture: experts.Architecture},
		Rules: reap.Rules{DroppedIDs: reap.NearestKept}}
	proof, _ := verify.Prove(r.job.Pin, source, verify.ProveOptions{})
	for _, layer := range proof.Layers {
		block, err := strconv.Atoi(strings.TrimPrefix(layer.Layer, "blk."))
		if err != nil || slices.Contains(layer.Keep, manifest.NoExpert) {
			return nil, fmt.Errorf("%s: does not tell the experts of %s apart", release.SourcePinName, layer.Layer)
		}
		plan.Layers[block], plan.KeepCount = layer.Keep, len(layer.Keep)
	}
	return plan, nil
}

// derivedMetadata returns the metadata of the pinned model, as far as plan and source give it: flags
// may have added to it when it was pruned. It is nil where they give none.
func (r *repairing) derivedMetadata(m *gguf.Model, experts *reap.Experts, plan *reap.Plan, source *manifest.Pin) *gguf.Metadata {
	full := reap.Provenance{Plan: plan}
	if document, err := planfile.Encode(plan); err == nil {
		if identity, err := planfile.Identity(document, plan); err == nil {
			full.PlanDigest = manifest.DigestBytes(identity).String()
		}
	}
	pinned := full
	bases := []string{""}
	if source != nil {
		pinned.SourceWeights, pinned.SourcePin = source.WeightsDigest.String(), source.PinDigest.String()
		if repo := source.Declared.Repo; repo != nil {
			bases = append(bases, *repo)
		}
	}
	if base := r.job.Pin.Declared.BaseModel; base != nil {
		bases = append(bases, *base)
	}
	var closest *gguf.Metadata
	for _, provenance := range []reap.Provenance{pinned, full, {}} {
		for _, base := range bases {
			md, err := reap.Metadata(m, experts, plan, provenance)
			if err != nil {
				return nil
			}
			if base != "" && edit.AddBase(md, base) != nil {
				continue
			}
			if digest, err := manifest.MetadataDigest(md); err == nil && digest == r.job.Pin.MetadataDigest {
				return md
			}
			if closest == nil {
				closest = md
			}
		}
	}
	return closest
}

// statedSums returns the sums of a model's files that the hub lists, by name.
func statedSums(m *gguf.Model) (map[string]manifest.Sum, error) {
	sums := map[string]manifest.Sum{}
	far := hub.Of(m)
	if far == nil {
		return sums, nil
	}
	stated, err := far.SHA256(m)
	if err != nil {
		return nil, err
	}
	for i, f := range m.Files {
		if stated[i] != (manifest.Sum{}) {
			sums[filepath.Base(f.Name)] = stated[i]
		}
	}
	return sums, nil
}
