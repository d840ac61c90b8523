package card

import (
	"bytes"
	"fmt"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf/pattern"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// bomVersion is the version of CycloneDX that is written: the newest that the readers of
// others know well.
const bomVersion = cdx.SpecVersion1_6

// BOM returns a bill of materials of the release, CycloneDX in JSON: a model with its files,
// and its source as ancestor. It has no serial number and no time, so that the same facts give
// the same bytes. A field that nobody knows is left out, as the format has it.
func (f *Facts) BOM() ([]byte, error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Tools:     &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "ggufreap"}}},
		Component: f.component(),
	}
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, bomVersion); err != nil {
		return nil, err
	}
	return document.Escaped(b.Bytes()), nil
}

// component is the release.
func (f *Facts) component() *cdx.Component {
	c := modelComponent("model", f.Pin.Artifact.Name, f.Pin)
	c.PackageURL = packageURL(said(f.Pin.Declared.Repo), c.Version)
	c.Licenses = f.bomLicenses()
	c.Pedigree = f.pedigree()
	c.ExternalReferences = f.bomEvidence()
	c.ModelCard = &cdx.MLModelCard{
		ModelParameters: &cdx.MLModelParameters{ModelArchitecture: f.Pin.Artifact.Architecture},
		Considerations:  &cdx.MLModelCardConsiderations{TechnicalLimitations: ptr(f.limitTexts(text.Safe, text.Safe))},
	}
	add := func(name, value string) { *c.Properties = append(*c.Properties, property(name, value)) }
	if f.Plan != nil {
		c.Description = f.experts()
		add("experts_kept", fmt.Sprint(f.Plan.KeepCount))
		add("experts_of_source", fmt.Sprint(f.Plan.NumExperts))
		add("criterion", f.Plan.Criterion.Name)
		add("criterion_evidence", orNot(string(f.Plan.Criterion.Evidence)))
		add("plan_digest", orNot(f.Metadata.Text(reap.KeyPlan)))
	}
	return c
}

// modelComponent is a model that is pinned: its digests are of lists, not of bytes that a
// tool could hash, so they are properties; its files have hashes.
func modelComponent(ref, name string, pin *manifest.Pin) *cdx.Component {
	c := &cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeMachineLearningModel, Name: name, Properties: &[]cdx.Property{}}
	if pin == nil {
		return c
	}
	if r := pin.Declared.Revision; r != nil {
		c.Version = *r
	}
	*c.Properties = []cdx.Property{property("pin_digest", pin.PinDigest.String()), property("weights_digest", pin.WeightsDigest.String()),
		property("file_bytes", fmt.Sprint(pin.Artifact.FileBytes)), property("tensor_bytes", fmt.Sprint(pin.Artifact.TensorBytes))}
	var files []cdx.Component
	for i, file := range pin.Files {
		files = append(files, cdx.Component{
			BOMRef: fmt.Sprintf("%s-file-%d", ref, i+1), Type: cdx.ComponentTypeFile, Name: file.Name,
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: file.SHA256.String()}},
			Properties: &[]cdx.Property{property("bytes", fmt.Sprint(file.Size))},
		})
	}
	c.Components = &files
	return c
}

// pedigree is the source, and what was done to it; nil when nothing is known of one.
func (f *Facts) pedigree() *cdx.Pedigree {
	name := ""
	if f.Plan != nil {
		name = f.Plan.Source.Name
	}
	if f.SourcePin != nil {
		name = f.SourcePin.Artifact.Name
	}
	if name == "" && f.BaseModel == "" {
		return nil
	}
	parent := modelComponent("source", orNot(name), f.SourcePin)
	parent.PackageURL = packageURL(f.BaseModel, parent.Version)
	for _, stated := range []struct{ name, key string }{
		{"pin_digest", reap.KeySourcePin}, {"weights_digest", reap.KeySourceWeights}, {"structure_digest", reap.KeySourceStructure},
	} {
		if digest := f.Metadata.Text(stated.key); digest != "" && (f.SourcePin == nil || stated.key == reap.KeySourceStructure) {
			*parent.Properties = append(*parent.Properties, property(stated.name, digest))
		}
	}
	p := &cdx.Pedigree{Ancestors: &[]cdx.Component{*parent}}
	if f.Plan != nil {
		p.Notes = fmt.Sprintf("%s are kept, ranked by %s. The bytes that are kept are those of the source.", f.experts(), text.Safe(criterion(f.Plan.Criterion)))
	}
	return p
}

// bomEvidence are the files of evidence that lie beside the model.
func (f *Facts) bomEvidence() *[]cdx.ExternalReference {
	var list []cdx.ExternalReference
	for _, e := range f.Evidence {
		if e.Inside {
			list = append(list, cdx.ExternalReference{Type: "evidence", URL: e.Name, Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: e.SHA256.String()}}})
		}
	}
	if list == nil {
		return nil
	}
	return &list
}

func property(name, value string) cdx.Property {
	return cdx.Property{Name: "ggufreap:" + name, Value: value}
}

func ptr[T any](v T) *T { return &v }

var hubName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// packageURL names a repository of the Hugging Face hub, "" where the name is not one of those.
func packageURL(repo, revision string) string {
	if !hubName().MatchString(repo) {
		return ""
	}
	url := "pkg:huggingface/" + repo
	if commit := strings.ToLower(revision); commitForm().MatchString(commit) {
		url += "@" + commit
	}
	return url
}

var commitForm = pattern.Lazy(`^[0-9a-f]{40}$`)

// bomLicenses are the licenses as somebody declared them.
func (f *Facts) bomLicenses() *cdx.Licenses {
	var list cdx.Licenses
	for _, id := range f.Licenses {
		l := &cdx.License{Acknowledgement: cdx.LicenseAcknowledgementDeclared}
		if l.ID = spdxID(id); l.ID == "" {
			l.Name = id
		}
		if id == "other" {
			l.Name = orNot(f.LicenseName)
			l.URL = f.LicenseLink
		}
		list = append(list, cdx.LicenseChoice{License: l})
	}
	if list == nil {
		return nil
	}
	return &list
}

// spdxID is the name that SPDX has for a license of the hub, which writes most of them as SPDX
// does, in lower case; "" for others.
func spdxID(hub string) string {
	for _, id := range strings.Fields(spdxIDs) {
		if strings.EqualFold(id, hub) {
			return id
		}
	}
	return map[string]string{"odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0", "pddl": "PDDL-1.0", "c-uda": "C-UDA-1.0"}[hub]
}

// spdxIDs are the licenses that the hub lists and SPDX knows.
const spdxIDs = `Apache-2.0 MIT AFL-3.0 AGPL-3.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSD-3-Clause-Clear BSL-1.0
	CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 CC-BY-NC-2.0 CC-BY-NC-3.0 CC-BY-NC-4.0 CC-BY-NC-ND-3.0 CC-BY-NC-ND-4.0
	CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 CC-BY-ND-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDLA-Permissive-1.0
	CDLA-Permissive-2.0 CDLA-Sharing-1.0 ECL-2.0 EPL-1.0 EPL-2.0 etalab-2.0 EUPL-1.1 EUPL-1.2 GFDL-1.3 GPL-2.0 GPL-3.0 ISC LGPL-2.1
	LGPL-3.0 LPPL-1.3c MPL-2.0 MS-PL NCSA OFL-1.1 OSL-3.0 PostgreSQL Unlicense WTFPL Zlib`
