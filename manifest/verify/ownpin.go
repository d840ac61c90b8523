package verify

import (
	"fmt"
	"path"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// readPin reads the pin that the folder holds of itself.
func (v *verifier) readPin() error {
	if !slices.Contains(v.files, manifest.PinName) {
		v.report.gap("there is no "+manifest.PinName, "which tensor or expert it is, should a file be damaged")
		return nil
	}
	pin, err := manifest.ReadPin(v.path(manifest.PinName))
	if gguf.MachineFault(err) {
		return err
	}
	if err != nil {
		v.report.find(KindList, manifest.PinName, about(v.path(manifest.PinName), err))
		return nil
	}
	v.pin = pin
	return nil
}

// pins lists the pins that say which tensors have slabs.
func (v *verifier) pins() []*manifest.Pin {
	return slices.DeleteFunc([]*manifest.Pin{v.pin, v.options.Source}, func(p *manifest.Pin) bool { return p == nil })
}

// compareHeaders compares with the folder's pin what needs no data.
func (v *verifier) compareHeaders() {
	m := v.main()
	if v.pin == nil || m == nil || m.Err() != nil {
		return
	}
	var o manifest.BuildOptions
	o.Follow(m, v.pin)
	got, err := manifest.PinHeaders(m, o)
	if err != nil {
		v.report.find(KindUnreadable, "", err.Error())
		return
	}
	v.comparison(got, true).run()
}

// comparePin compares everything with the folder's pin.
func (v *verifier) comparePin() {
	if v.got == nil {
		return
	}
	v.report.PinDigest = v.got.PinDigest
	if v.pin != nil {
		v.holdPin(manifest.PinName, v.pin)
	}
	if v.pin != nil && v.comparison(v.got, false).run() {
		v.report.PinDigest = v.pin.PinDigest // which may tell fewer experts apart
	}
}

func (v *verifier) comparison(got *manifest.Pin, quick bool) *comparison {
	return &comparison{report: v.report, got: got, want: v.pin, quick: quick, at: placerOf(v.main(), v.name)}
}

// pinSays adds to a finding about a file's sum that the pin has the one that was measured.
func (v *verifier) pinSays(name string, sum manifest.Sum) string {
	if v.pin == nil {
		return ""
	}
	for _, f := range v.pin.Files {
		if f.Name == path.Base(name) && f.SHA256 == sum {
			return "; " + manifest.PinName + " says what was measured"
		}
	}
	return ""
}

// prove proves the main model from its source's pin.
func (v *verifier) prove() {
	if v.options.Source == nil {
		v.report.gap("no pin of the source was given", "that the weights come from the claimed source")
		return
	}
	if v.got == nil {
		v.report.gap("the data could not be read", "whether the release is made of the source's bytes")
		return
	}
	var o ProveOptions
	if v.options.Prove != nil {
		o = v.options.Prove(v.main(), v.options.Source)
	}
	at := placerOf(v.main(), v.name)
	o.File, o.Offset = at.file, at.offset
	plans := v.report.Found()[KindPlan]
	proof := prove(v.got, v.options.Source, o, v.report)
	v.report.Proof = proof
	v.reportProof(proof, o.ExpertIDs)
	if o.Keep != nil && v.report.Found()[KindPlan] == plans {
		v.report.checked("plan: the experts found by their bytes are those that it keeps")
	}
}

// proveOther proves an artifact beside the main one from the same source, or says which of
// its files are not proven.
func (v *verifier) proveOther(m *gguf.Model, got *manifest.Pin) {
	if v.options.Source == nil {
		return
	}
	why := "its data could not be taken apart"
	if got != nil {
		var o ProveOptions
		if v.options.Prove != nil {
			o = v.options.Prove(m, v.options.Source)
			o.Keep = nil // the plan is that of the main one
		}
		_, findings := Prove(got, v.options.Source, o)
		if len(findings) == 0 {
			v.report.checked(fmt.Sprintf("derivation of %q: it is made of the source too", m.Name))
			return
		}
		why = fmt.Sprintf("%s, the first: %s", words.Count(len(findings), "difference"), findings[0].Text())
	}
	for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
		v.report.find(KindExtra, v.name(path), fmt.Sprintf("belongs to another model, %q, which is not proven to be made of the source: %s", m.Name, why))
	}
}

// reportProof says in words what was proven.
func (v *verifier) reportProof(p *Proof, ids func(tensor string) bool) {
	tensors := map[string]int{}
	for _, t := range p.Tensors {
		tensors[t.As]++
	}
	v.report.checked(fmt.Sprintf("derivation: %s of %s of tensor data are those of %q: %s identical, %s made of its experts",
		words.Group(p.Proven), words.Count(p.Proven+p.Unproven, "byte"), p.Source, words.Count(tensors[ProvenIdentical], "tensor"), words.Group(tensors[ProvenExperts])))
	for _, t := range p.Tensors {
		if ids != nil && ids(t.Name) && t.As != ProvenIDs {
			v.report.gap(fmt.Sprintf("tensor %q holds expert ids, some of which were replaced", t.Name), "whether those ids are right")
		}
	}
	v.report.noteStored(v.got, v.options.Source, "the source's")
	if !manifest.SameOrder(v.options.Source, v.got) {
		v.report.note("", "the tensors stand in another order than in the source")
	}
}

// checkTokenizer looks for what turns text into tokens, and says what it saw.
func (v *verifier) checkTokenizer() {
	m := v.main()
	if m == nil {
		return
	}
	if t := readTokenizer(m); t.fault == nil && t.stated != "" {
		v.report.checked("tokenizer: " + t.stated)
	}
}
