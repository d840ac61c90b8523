package verify

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
)

// TestVerifySignatures signs releases, does something to them, and wants what is found by those who
// trust one key.
func TestVerifySignatures(t *testing.T) {
	const notSigned = manifest.SumsName + " is not signed"
	signer, other := newSSHKey(t), newSSHKey(t)
	ec, otherEC := newECKey(t), newECKey(t)
	facts := sign.Parameters{Command: "prune", Source: "somewhere", Shards: 3}
	trust := Trust{Signers: signersOf(t, signer), Now: time.Now()}
	trustEC := Trust{Key: &ec.PublicKey, Facts: func(*gguf.Model) sign.Parameters { return facts }}
	for name, test := range map[string]struct {
		sign  func(t *testing.T, dir string)
		trust Trust
		file  string // of the finding, "" for none
		want  string
		gap   string
	}{
		"SSH":            {signWithSSH(signer), trust, "", "", ""},
		"SSH, not asked": {signWithSSH(signer), Trust{}, "", "", "who signed " + manifest.SumsName},
		"another SSH key": {signWithSSH(other), trust, sign.SSHName, "is not among the allowed signers",
			"who signed " + manifest.SumsName},
		"no SSH signature":     {func(*testing.T, string) {}, trust, sign.SSHName, "is not there", notSigned},
		"an SSH signature cut": {cut(signWithSSH(signer), sign.SSHName), trust, sign.SSHName, "", "who signed " + manifest.SumsName},
		"another list": {func(t *testing.T, dir string) {
			signWithSSH(signer)(t, dir)
			writeFile(t, dir, "more", []byte("x"))
			listSums(t, dir)
		}, trust, sign.SSHName, "the signature does not fit", "who signed " + manifest.SumsName},
		"bundle":                    {signAll(ec, sign.ModelName), trustEC, "", "", ""},
		"bundle under another name": {signAll(ec, "release.sig"), trustEC, "", "", ""},
		"bundle, not asked":         {signAll(ec, sign.ModelName), Trust{}, "", "", "who signed " + manifest.SumsName},
		"bundle by another key":     {signAll(otherEC, sign.ModelName), trustEC, sign.ModelName, "the signature does not fit", "who signed " + manifest.SumsName},
		"no bundle":                 {func(*testing.T, string) {}, trustEC, sign.ModelName, "is not there", notSigned},
		"a bundle cut":              {cut(signAll(ec, sign.ModelName), sign.ModelName), trustEC, sign.ModelName, "", "who signed " + manifest.SumsName},
		"a file that the bundle does not list": {func(t *testing.T, dir string) {
			signAll(ec, sign.ModelName)(t, dir)
			writeFile(t, dir, "more", []byte("x"))
		}, trustEC, "more", "is not listed", "who signed " + manifest.SumsName},
		"a bundle without the list": {signAll(ec, sign.ModelName, manifest.SumsName), trustEC, manifest.SumsName, "is not listed", "who signed " + manifest.SumsName},
		"provenance":                {signProvenance(ec, facts), trustEC, sign.ModelName, "is not there", notSigned},
		"provenance, not asked":     {signProvenance(otherEC, facts), Trust{Facts: trustEC.Facts}, "", "", notSigned},
		"provenance by another key": {signProvenance(otherEC, facts), trustEC, sign.ProvenanceName, "the signature does not fit", notSigned},
		"provenance cut":            {cut(signProvenance(ec, facts), sign.ProvenanceName), trustEC, sign.ProvenanceName, "", notSigned},
		"provenance of another plan": {signProvenance(ec, sign.Parameters{Command: "prune", PlanDigest: "blake3:00", Shards: 3}), trustEC,
			sign.ProvenanceName, `the provenance says plan digest "blake3:00"`, notSigned},
		"provenance of other files": {func(t *testing.T, dir string) {
			signProvenance(ec, facts)(t, dir)
			writeFile(t, dir, "plan.json", []byte("{ }\n"))
			listSums(t, dir)
		}, trustEC, sign.ProvenanceName, `"plan.json": the provenance says sha256`, notSigned},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := mustRelease(t)
			test.sign(t, dir)
			r := mustVerify(t, dir, Options{Trust: test.trust})
			if test.file == "" && !r.OK() || test.file != "" && !has(r, KindSignature, test.file, test.want) {
				t.Errorf("findings %+v, want %q: %q", r.Findings, test.file, test.want)
			}
			if open := slices.ContainsFunc(r.Gaps, func(g Gap) bool { return strings.HasPrefix(g.What, "who signed "+sign.ProvenanceName) }); open != (name == "provenance, not asked") {
				t.Errorf("gaps %+v", r.Gaps)
			}
			var gaps []string
			for _, gap := range r.Gaps {
				if strings.Contains(gap.What, manifest.SumsName) && strings.Contains(gap.What, "signed") && !strings.Contains(gap.What, "unsigned") {
					gaps = append(gaps, gap.What)
				}
			}
			if strings.Join(gaps, "; ") != test.gap {
				t.Errorf("gaps %q, want %q", gaps, test.gap)
			}
			if said := slices.ContainsFunc(r.Checked, func(s string) bool { return strings.HasPrefix(s, "provenance: ") }); said != (name == "provenance") {
				t.Errorf("checked %q", r.Checked)
			}
		})
	}
}

func newSSHKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signersOf(t *testing.T, key ssh.Signer) sign.Signers {
	t.Helper()
	signers, err := sign.ReadSigners(append([]byte("me "), ssh.MarshalAuthorizedKey(key.PublicKey())...), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return signers
}

func signWithSSH(key ssh.Signer) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		list, err := os.ReadFile(filepath.Join(dir, manifest.SumsName))
		if err != nil {
			t.Fatal(err)
		}
		text, err := sign.SignSSH(list, key)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, sign.SSHName, text)
	}
}

// signAll signs all files but those that are left out.
func signAll(key *ecdsa.PrivateKey, name string, out ...string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		files, err := sign.Folder(context.Background(), dir, sign.FilesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f sign.File) bool { return slices.Contains(out, f.Name) })
		text, err := sign.SignModel("release", files, key)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, name, text)
	}
}

// signProvenance states what the files that are listed were made from.
func signProvenance(key *ecdsa.PrivateKey, p sign.Parameters) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		files, err := sign.Folder(context.Background(), dir, sign.FilesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f sign.File) bool { return f.Name == manifest.SumsName })
		statement, err := (&sign.Provenance{Files: files, Parameters: p}).Statement()
		if err != nil {
			t.Fatal(err)
		}
		text, err := sign.SignStatement(statement, key)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, sign.ProvenanceName, text)
	}
}

// cut cuts off the second half of what was signed.
func cut(signed func(t *testing.T, dir string), name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		signed(t, dir)
		change(t, filepath.Join(dir, name), func(data []byte) []byte { return data[:len(data)/2] })
	}
}
