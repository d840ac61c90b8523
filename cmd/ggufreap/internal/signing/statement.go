package signing

import (
	"errors"
	"fmt"
	"io/fs"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// SourcePinName is the name that the pin of a release's source has in the release.
const SourcePinName = "source.pin.json.zst"

// Facts are the parameters that a model's own keys state, its source aside.
func Facts(m *gguf.Model) sign.Parameters {
	md := m.Metadata()
	p := sign.Parameters{Command: "reshard", Shards: len(m.Files)}
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
	if err := r.addSource(p); err != nil {
		return nil, err
	}
	return p, r.addPlan(p)
}

// addSource names the source's files by its pin, if the release holds it.
func (r *Release) addSource(p *sign.Provenance) error {
	pin, err := manifest.ReadPin(r.Path(SourcePinName))
	if errors.Is(err, fs.ErrNotExist) {
		if p.Parameters.Source == "" {
			p.Parameters.Source = "Not specified"
		}
		return nil
	}
	if err != nil {
		return err
	}
	where := pin.Artifact.Name
	if repo := pin.Declared.Repo; repo != nil {
		where = "hf://" + *repo
		if revision := pin.Declared.Revision; revision != nil {
			where += "@" + *revision
		}
	}
	if p.Parameters.Source == "" {
		p.Parameters.Source = where
	}
	for _, f := range pin.Files {
		in := sign.Input{Name: f.Name, SHA256: f.SHA256.String(), Notes: map[string]string{"role": "source"}}
		if pin.Declared.Repo != nil {
			in.URI = where + "/" + f.Name
		}
		p.Inputs = append(p.Inputs, in)
	}
	return r.addFile(p, SourcePinName, map[string]string{"role": "pin of the source", "pinDigest": pin.PinDigest.String()})
}

// addPlan names the plan and the files that its scores were read from.
func (r *Release) addPlan(p *sign.Provenance) error {
	data, err := files.Read(r.Path(release.PlanName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	plan, err := planfile.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", text.Safe(r.Path(release.PlanName)), err)
	}
	if err := r.addFile(p, release.PlanName, map[string]string{"role": "plan"}); err != nil {
		return err
	}
	for _, in := range plan.Criterion.Inputs {
		p.Inputs = append(p.Inputs, sign.Input{Name: in.File, SHA256: in.SHA256, Notes: map[string]string{"role": "scores"}})
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
