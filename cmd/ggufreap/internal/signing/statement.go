package signing

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
	"ggufreap/reap"
)

// Facts are the parameters that a model's own keys state, its source aside.
func Facts(m *gguf.Model) sign.Parameters {
	md := m.Metadata()
	p := sign.Parameters{Command: "reshard", Shards: m.Shards}
	if p.PlanDigest = md.Text(reap.KeyPlan); p.PlanDigest == "" {
		return p
	}
	p.SourcePin = md.Text(reap.KeySourcePin)
	p.Command, p.Criterion, p.Evidence = "prune", md.Text(reap.KeyCriterion), md.Text(reap.KeyEvidence)
	kept, _ := md.ArchUint("expert_count")
	of, _ := md.Uint(reap.KeySourceExperts)
	p.Experts = fmt.Sprintf("%d of %d", kept, of)
	return p
}

// Provenance states what a release was made from, as far as the release itself tells: its keys,
// its plan, and the pin of its source.
func (r *Release) Provenance(source, builder, version string) (*sign.Provenance, error) {
	m, err := gguf.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	p := &sign.Provenance{Files: r.Files, Parameters: Facts(m), Builder: builder, Version: version}
	p.Parameters.Source = source
	plan, err := release.ReadPlan(r.Path(""))
	if err != nil {
		return nil, err
	}
	if err := r.addSource(p, plan); err != nil {
		return nil, err
	}
	return p, r.addPlan(p, plan)
}

// addSource names the source's files: by its pin, if the release holds it, else as the plan
// says that a hub stated them.
func (r *Release) addSource(p *sign.Provenance, plan *reap.Plan) error {
	pin, err := manifest.ReadPin(r.Path(release.SourcePinName))
	switch {
	case err == nil:
		return r.addPinned(p, pin)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case plan == nil:
		p.Parameters.Source = cmp.Or(p.Parameters.Source, "Not specified")
	case plan.Source.StatedByHub != nil:
		addStated(p, plan.Source.StatedByHub)
	default:
		p.Parameters.Source = cmp.Or(p.Parameters.Source, plan.Source.Name, "Not specified")
		notes := map[string]string{"role": sign.RoleSource, "structureDigest": plan.Source.StructureDigest}
		p.Inputs = append(p.Inputs, sign.Input{Name: cmp.Or(plan.Source.Name, "source"), Notes: notes})
	}
	return nil
}

// addStated names the files that a hub listed, with what it said of them.
func addStated(p *sign.Provenance, s *reap.Stated) {
	where := "hf://" + s.Repo + "@" + s.Commit
	p.Parameters.Source = cmp.Or(p.Parameters.Source, where)
	for _, f := range s.Files {
		in := sign.Input{Name: path.Base(f.Path), URI: where + "/" + f.Path, SHA256: f.SHA256, Notes: map[string]string{"role": sign.RoleSource}}
		if f.SHA256 != "" {
			in.Notes["sha256"] = sign.StatedByHub
		}
		p.Inputs = append(p.Inputs, in)
	}
}

// addPinned names the files of a pin that lies in the release, and the pin.
func (r *Release) addPinned(p *sign.Provenance, pin *manifest.Pin) error {
	where := pin.Artifact.Name
	if repo := pin.Declared.Repo; repo != nil {
		where = "hf://" + *repo
		if revision := pin.Declared.Revision; revision != nil {
			where += "@" + *revision
		}
	}
	p.Parameters.Source = cmp.Or(p.Parameters.Source, where)
	for _, f := range pin.Files {
		in := sign.Input{Name: f.Name, SHA256: f.SHA256.String(), Notes: map[string]string{"role": sign.RoleSource}}
		if pin.Declared.Repo != nil {
			in.URI = where + "/" + f.Name
		}
		p.Inputs = append(p.Inputs, in)
	}
	return r.addFile(p, release.SourcePinName, map[string]string{"role": sign.RoleSourcePin, "pinDigest": pin.PinDigest.String()})
}

// addPlan names the plan and the files that its scores were read from.
func (r *Release) addPlan(p *sign.Provenance, plan *reap.Plan) error {
	if plan == nil {
		return nil
	}
	if err := r.addFile(p, release.PlanName, map[string]string{"role": sign.RolePlan}); err != nil {
		return err
	}
	for _, in := range plan.Criterion.Inputs {
		p.Inputs = append(p.Inputs, sign.Input{Name: in.File, SHA256: in.SHA256, Notes: map[string]string{"role": sign.RoleScores}})
	}
	return nil
}

// addFile names a file of the release itself, which its list of sums must have.
func (r *Release) addFile(p *sign.Provenance, name string, notes map[string]string) error {
	sum, ok := r.Sum(name)
	if !ok {
		return fmt.Errorf("%s is not listed in the release's list of sums", text.Safe(r.Path(name)))
	}
	p.Inputs = append(p.Inputs, sign.Input{Name: name, SHA256: manifest.Sum(sum).String(), Notes: notes})
	return nil
}
