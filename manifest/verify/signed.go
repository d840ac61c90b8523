package verify

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// Trust says whose signatures count. Its zero value trusts nobody: signatures are looked at,
// and told as not checked against anything.
type Trust struct {
	Signers  sign.Signers // for SSH signatures; nil was not asked for
	Identity string       // that one of them must be; "" for any
	Key      *ecdsa.PublicKey
	Roots    []*x509.Certificate
	Now      time.Time
	// Facts says what a model's keys state of its making, to compare a provenance with.
	Facts func(m *gguf.Model) sign.Parameters
}

// maxSignature bounds the files with signatures. A bundle lists every file.
const maxSignature = 64 << 20

// checkSignatures looks at every signature of the folder, and for those that were asked for.
func (v *verifier) checkSignatures(ctx context.Context) error {
	if t := v.options.Trust; v.single {
		if t.Signers != nil || t.Key != nil || t.Roots != nil {
			v.report.find(KindSignature, "", "who signed it was asked, and signatures are over a release's folder: name that, not a file in it")
		}
		return nil
	}
	signed := v.checkSSH()
	bundles := 0
	for _, name := range v.files {
		if path.Ext(name) != ".sig" || name == sign.SSHName {
			continue
		}
		data, err := readBounded(v.path(name), maxSignature)
		switch {
		case err != nil:
			v.report.find(KindUnreadable, name, about(v.path(name), err))
			continue
		case !sign.IsBundle(data) && name != sign.ModelName:
			continue
		}
		bundles++
		covers, err := v.checkBundle(ctx, name, data)
		if err != nil {
			return err
		}
		signed = signed || covers
	}
	if t := v.options.Trust; bundles == 0 && (t.Key != nil || t.Roots != nil) {
		v.report.find(KindSignature, sign.ModelName, "is not there: the release is not signed in the form of OpenSSF Model Signing")
	}
	v.checkProvenance()
	v.reportUnsigned(signed, bundles > 0 || slices.Contains(v.files, sign.SSHName))
	return nil
}

// reportUnsigned says what is open when nobody who is trusted signed the list of sums.
func (v *verifier) reportUnsigned(signed, there bool) {
	v.signed = signed
	switch {
	case !v.hasList || signed:
	case there:
		v.report.gap("who signed "+manifest.SumsName, "whether it was somebody you trust: whoever can change a file can sign the list with a key of their own")
	default:
		v.report.gap(manifest.SumsName+" is not signed", "who wrote it: whoever can change a file can change the list")
	}
}

// checkSSH checks the SSH signature over the list of sums, and reports whether somebody who is
// trusted made it.
func (v *verifier) checkSSH() bool {
	t := v.options.Trust
	if !slices.Contains(v.files, sign.SSHName) {
		if t.Signers != nil {
			v.report.find(KindSignature, sign.SSHName, "is not there: "+manifest.SumsName+" is not signed with an SSH key")
		}
		return false
	}
	s, err := v.readSSH()
	if err != nil {
		v.report.find(KindSignature, sign.SSHName, err.Error())
		return false
	}
	if t.Signers == nil {
		v.report.note(sign.SSHName, "signed with key "+s.Fingerprint()+", not checked against anything: --signer FILE says whose keys count")
		return false
	}
	signer, err := t.Signers.Find(s, t.Identity, t.Now)
	if err != nil {
		v.report.find(KindSignature, sign.SSHName, err.Error())
		return false
	}
	v.report.checked(fmt.Sprintf("signature: %s is signed by %q with key %s", manifest.SumsName, signer.Principals, s.Fingerprint()))
	return true
}

// readSSH reads the SSH signature and holds it against the list of sums.
func (v *verifier) readSSH() (*sign.SSHSignature, error) {
	text, err := readBounded(v.path(sign.SSHName), sign.MaxSSH)
	if err != nil {
		return nil, errors.New(about(v.path(sign.SSHName), err))
	}
	s, err := sign.ParseSSH(text)
	if err != nil {
		return nil, err
	}
	text, err = v.listText()
	if err != nil {
		return nil, err
	}
	return s, s.Check(text)
}

// checkBundle checks a bundle of OpenSSF Model Signing, and reports whether somebody who is
// trusted signed the list of sums by it.
func (v *verifier) checkBundle(ctx context.Context, name string, data []byte) (covers bool, err error) {
	b, err := sign.ParseBundle(data)
	if err != nil {
		v.report.find(KindSignature, name, err.Error())
		return false, nil
	}
	m, trusted, err := v.openBundle(name, b)
	if err != nil {
		v.report.find(KindSignature, name, err.Error())
		return false, nil
	}
	if v.options.Fast {
		v.report.gap(name+": data was not read", "whether the files are those that were signed")
		return false, nil
	}
	faults, unsigned, err := m.CheckFiles(ctx, v.dir, sign.FilesOptions{Signature: v.path(name), Known: v.takenSum})
	if err != nil {
		return false, err
	}
	for _, f := range faults {
		v.report.find(KindSignature, f.File, f.What+" ("+name+")")
	}
	if len(unsigned) > 0 {
		v.report.gap(name+" leaves out "+strings.Join(unsigned, ", "), "whether these are what the signer had")
	}
	if len(faults) == 0 {
		v.report.checked(fmt.Sprintf("signed files: %s as %s lists them", words.Count(len(m.Resources), "name"), name))
	}
	covers = slices.ContainsFunc(m.Resources, func(r sign.Resource) bool { return r.Name == manifest.SumsName })
	return trusted && covers && len(faults) == 0, nil
}

// askFor says which flag asks for signers that are known by a method.
var askFor = map[sign.Method]string{
	sign.KeyMethod:         "--oms-key FILE checks a key",
	sign.CertificateMethod: "--oms-ca FILE checks a certificate",
	sign.SigstoreMethod:    "model_signing verify sigstore checks an identity of Sigstore",
}

// openBundle checks who signed a bundle, as far as somebody is trusted, and returns what it
// lists.
func (v *verifier) openBundle(name string, b *sign.Bundle) (m *sign.Model, trusted bool, err error) {
	t := v.options.Trust
	switch {
	case b.Method == sign.KeyMethod && t.Key != nil:
		if m, err = b.CheckKey(t.Key); err == nil {
			v.report.checked("signature: " + name + " is signed with the key given, " + b.Hint)
		}
		return m, err == nil, err
	case b.Method == sign.CertificateMethod && t.Roots != nil:
		m, who, err := b.CheckChain(t.Roots, t.Now)
		if err == nil {
			v.report.checked(fmt.Sprintf("signature: %s is signed by %q, certified by an authority given", name, who))
		}
		return m, err == nil, err
	case t.Key != nil || t.Roots != nil:
		return nil, false, fmt.Errorf("its signer is known by the method %q, which is not what was asked for: %s", b.Method, askFor[b.Method])
	case b.Method == sign.SigstoreMethod:
		v.report.gap(name+": the identity behind it was not checked", "who signed: model_signing verify sigstore --signature "+name+" can tell")
	case b.Method == sign.CertificateMethod:
		v.report.note(name, "signed with a certificate, not checked against anything: --oms-ca FILE says whose certificates count")
	default:
		v.report.note(name, "signed with key "+b.Hint+", not checked against anything: --oms-key FILE says which key counts")
	}
	m, err = b.Unchecked()
	return m, false, err
}

// checkProvenance compares the signed statement of how the release was made with the release.
func (v *verifier) checkProvenance() {
	if !slices.Contains(v.files, sign.ProvenanceName) {
		return
	}
	p, trusted, err := v.readProvenance()
	if err != nil {
		v.report.find(KindSignature, sign.ProvenanceName, err.Error())
		return
	}
	files, err := v.listedFiles()
	if err != nil {
		v.report.find(KindSignature, sign.ProvenanceName, err.Error())
		return
	}
	facts := p.Parameters
	if m := v.main(); m != nil && v.options.Trust.Facts != nil {
		facts = v.options.Trust.Facts(m)
	}
	faults := p.Compare(files, facts)
	for _, f := range faults {
		place := ""
		if f.File != "" {
			place = fmt.Sprintf("%q: ", f.File)
		}
		v.report.find(KindSignature, sign.ProvenanceName, place+f.What)
	}
	states := fmt.Sprintf("states these %s, made by %s; source: %s", words.Count(len(files), "file"), p.Parameters.Command, p.Parameters.Source)
	switch {
	case len(faults) > 0:
	case trusted:
		v.report.checked("provenance: " + states)
	default:
		v.report.gap("who signed "+sign.ProvenanceName+", which "+states, "whether it was somebody you trust, and what it states is so")
	}
}

// listedFiles are all files that the list of sums names, those that are not there too: a
// statement of them is no wrong one.
func (v *verifier) listedFiles() ([]sign.File, error) {
	if !v.hasList {
		return nil, nil
	}
	text, err := v.listText()
	if err != nil {
		return nil, err
	}
	sums, err := lists.ReadSums(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	files := make([]sign.File, len(sums))
	for i, s := range sums {
		files[i] = sign.File{Name: s.Name, SHA256: s.SHA256}
	}
	return files, nil
}

// readProvenance reads the statement, and reports whether somebody who is trusted signed it.
func (v *verifier) readProvenance() (p *sign.Provenance, trusted bool, err error) {
	const name = sign.ProvenanceName
	data, err := readBounded(v.path(name), maxSignature)
	if err != nil {
		return nil, false, errors.New(about(v.path(name), err))
	}
	e, err := sign.ParseEnvelope(data)
	if err != nil {
		return nil, false, err
	}
	t := v.options.Trust
	if !e.IsSSH() {
		if t.Key == nil {
			v.report.note(name, "signed with key "+e.KeyID()+", not checked against anything")
			p, err := e.Unchecked()
			return p, false, err
		}
		p, err := e.CheckKey(t.Key)
		if err == nil {
			v.report.checked("signature: " + name + " is signed with the key given")
		}
		return p, err == nil, err
	}
	p, s, err := e.CheckSSH()
	if err != nil {
		return nil, false, err
	}
	if t.Signers == nil {
		v.report.note(name, "signed with key "+s.Fingerprint()+", not checked against anything")
		return p, false, nil
	}
	signer, err := t.Signers.Find(s, t.Identity, t.Now)
	if err != nil {
		return nil, false, err
	}
	v.report.checked(fmt.Sprintf("signature: %s is signed by %q with key %s", name, signer.Principals, s.Fingerprint()))
	return p, true, nil
}

// takenSum returns the SHA-256 of a file that was read already.
func (v *verifier) takenSum(name string) ([32]byte, bool) {
	sum, ok := v.taken[name]
	return sum, ok
}
