package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/remote/hubtest"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
)

// outside runs another program, which must succeed, with a text as its input.
func outside(t *testing.T, stdin string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// signedRelease makes a pruned release and keys of both kinds in a new folder, and goes there:
// the release is "release", the keys "id" and "key.pem", with "id.pub", "pub.pem", and
// "allowed", which has id as me@example.com's.
func signedRelease(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	succeed(t, "prune", "--keep", "4", "--shards", "2", "-o", "release", source)
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", "id")
	outside(t, "", "openssl", "ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", "key.pem")
	outside(t, "", "openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem")
	writeFile(t, "allowed", []byte("me@example.com "+string(readFile(t, "id.pub"))))
}

// differ runs the program, which must find something, and returns what it prints.
func differ(t *testing.T, want string, args ...string) {
	t.Helper()
	r := ggufreap(t, args...)
	if r.code != exitDiffers || !strings.Contains(r.stdout, want) {
		t.Errorf("%q: exit %d, want %d and %q in\n%s%s", args, r.code, exitDiffers, want, r.stdout, r.stderr)
	}
}

func TestSignAndVerify(t *testing.T) {
	signedRelease(t)
	succeed(t, "sign", "--ssh-key", "id", "--key", "key.pem", "--provenance", "release")
	list := string(readFile(t, "release/MANIFEST.sha256"))
	outside(t, list, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "me@example.com", "-n", sign.Namespace, "-s", "release/MANIFEST.sha256.sig")

	out := succeed(t, "verify", "--signer", "allowed", "--identity", "me@example.com", "--oms-key", "pub.pem", "release")
	for _, want := range []string{
		`MANIFEST.sha256 is signed by "me@example.com" with key ` + strings.Fields(outside(t, "", "ssh-keygen", "-lf", "id"))[1],
		"model.sig is signed with the key given",
		"signed files: 7 names as model.sig lists them",
		"provenance.dsse.json is signed with the key given",
		"provenance: states these 4 files, made by prune; source: small",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("verify does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "is not signed") || strings.Contains(out, "not checked against anything") {
		t.Errorf("verify leaves a signature open:\n%s", out)
	}
	if out := succeed(t, "verify", "release"); strings.Count(out, "not checked against anything") != 3 {
		t.Errorf("nobody asked, and verify does not say so of each of three signatures:\n%s", out)
	}
	// A question about signatures is never passed over, whatever is named.
	for _, flags := range [][]string{{"--signer", "allowed"}, {"--oms-key", "pub.pem"}} {
		differ(t, "signatures are over a release's folder", append(append([]string{"verify"}, flags...), "release/small-REAP4-00001-of-00002.gguf")...)
	}
	// A signature by ssh-keygen itself is as good.
	os.Remove("release/MANIFEST.sha256.sig")
	outside(t, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "id", "-n", sign.Namespace, "release/MANIFEST.sha256")
	if out := ggufreap(t, "verify", "--signer", "allowed", "release").stdout; !strings.Contains(out, `is signed by "me@example.com"`) {
		t.Errorf("a signature by ssh-keygen:\n%s", out)
	}
}

// TestSignedDocument signs twice and gets the same bytes where the key's kind allows it.
func TestSignedDocument(t *testing.T) {
	signedRelease(t)
	var doc signedDocument
	if err := json.Unmarshal([]byte(succeed(t, "sign", "--json", "--key", "key.pem", "--provenance", "release")), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Signatures) != 2 || doc.Signatures[1].File != sign.ModelName || doc.Signatures[0].File != sign.ProvenanceName {
		t.Errorf("got %+v", doc)
	}
	first := readFile(t, "release/model.sig")
	succeed(t, "sign", "--key", "key.pem", "--provenance", "release") // the same bytes replace nothing
	if !bytes.Equal(first, readFile(t, "release/model.sig")) {
		t.Error("signed twice, model.sig is not the same")
	}
	if said := succeed(t, "sign", "--ssh-key", "id", "--force", "--key", "key.pem", "release"); !strings.Contains(said, "by its sums 4 files\n") {
		t.Errorf("files that are not there are said to be left out:\n%s", said)
	}
	os.Remove("release/MANIFEST.sha256.sig")
	succeed(t, "sign", "--force", "--key", "key.pem", "release")
	writeFile(t, "release/README.md", []byte("a card"))
	os.Rename("release/model.sig", "model.sig")
	if said := succeed(t, "sign", "--ssh-key", "id", "release"); !strings.Contains(said, "by its sums 4 files, but not README.md\n") {
		t.Errorf("a file that the list lacks is said to be covered:\n%s", said)
	}
	os.Remove("release/MANIFEST.sha256.sig")
	os.Rename("model.sig", "release/model.sig")
	refuse(t, "exists", "sign", "--key", "key.pem", "release")
	refuse(t, "does not cover the new MANIFEST.sha256.sig", "sign", "--key", "key.pem", "--ssh-key", "id", "release")
	if exists("release/MANIFEST.sha256.sig") {
		t.Error("a refused command wrote a signature")
	}
	succeed(t, "sign", "--force", "--key", "key.pem", "release")
	succeed(t, "verify", "--oms-key", "pub.pem", "release")
}

// TestForgedSignatures changes a signed release in every way that a signature must show.
func TestForgedSignatures(t *testing.T) {
	signedRelease(t)
	succeed(t, "sign", "--ssh-key", "id", "--key", "key.pem", "--provenance", "release")
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "other", "-f", "other")
	outside(t, "", "openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "other.pem")
	relist := func(t *testing.T) {
		outside(t, "", "sh", "-c", "cd release && sha256sum *.gguf *.json *.zst | LC_ALL=C sort -k2 > list && mv list MANIFEST.sha256")
	}
	flip := func(name string) {
		data := readFile(t, name)
		data[len(data)/2] ^= 1
		writeFile(t, name, data)
	}
	shard := func() string {
		names, err := filepath.Glob("release/*-00002-of-00002.gguf")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		return names[0]
	}
	ssh, oms := []string{"--signer", "allowed"}, []string{"--oms-key", "pub.pem"}
	for name, c := range map[string]struct {
		forge func(t *testing.T)
		flags []string
		want  string
	}{
		"a byte, and the list made anew": {func(t *testing.T) { flip(shard()); relist(t) }, ssh, "it is of other bytes"},
		"the same, for the bundle":       {func(t *testing.T) { flip(shard()); relist(t) }, oms, "the signed list says"},
		"the list edited": {func(t *testing.T) {
			writeFile(t, "release/MANIFEST.sha256", append(readFile(t, "release/MANIFEST.sha256"), "# hello\n"...))
		}, ssh, "it is of other bytes"},
		"signed by somebody else": {func(t *testing.T) {
			succeed(t, "sign", "--force", "--ssh-key", "other", "release")
		}, ssh, "is not among the allowed signers"},
		"by somebody else, of the identity asked for": {func(t *testing.T) {
			writeFile(t, "allowed", append(readFile(t, "allowed"), []byte("you@example.com "+string(readFile(t, "other.pub")))...))
			succeed(t, "sign", "--force", "--ssh-key", "other", "release")
		}, []string{"--signer", "allowed", "--identity", "me@example.com"}, `it is for "you@example.com"`},
		"for another purpose": {func(t *testing.T) {
			os.Remove("release/MANIFEST.sha256.sig")
			outside(t, "", "ssh-keygen", "-q", "-Y", "sign", "-f", "id", "-n", "file", "release/MANIFEST.sha256")
		}, ssh, `it was made for "file"`},
		"the signature taken away": {func(t *testing.T) { os.Remove("release/MANIFEST.sha256.sig") }, ssh, "is not there"},
		"the bundle taken away":    {func(t *testing.T) { os.Remove("release/model.sig") }, oms, "is not there"},
		"cut off": {func(t *testing.T) {
			data := readFile(t, "release/MANIFEST.sha256.sig")
			writeFile(t, "release/MANIFEST.sha256.sig", data[:len(data)/2])
		}, ssh, "is cut off or damaged"},
		"doubled": {func(t *testing.T) {
			data := readFile(t, "release/MANIFEST.sha256.sig")
			writeFile(t, "release/MANIFEST.sha256.sig", append(data, data...))
		}, ssh, "there is more behind"},
		"faulty, and nobody asked": {func(t *testing.T) { writeFile(t, "release/model.sig", []byte("{}")) }, nil, "mediaType"},
		"an extra model beside":    {func(t *testing.T) { writeFile(t, "release/evil.gguf", []byte("GGUF")) }, ssh, "is a model file that MANIFEST.sha256 does not list"},
		"an extra file beside":     {func(t *testing.T) { writeFile(t, "release/evil.py", nil) }, oms, "is not listed: nothing vouches for it"},
		"a bundle by another key": {func(t *testing.T) {
			succeed(t, "sign", "--force", "--key", "other.pem", "release")
		}, oms, "made with another key"},
		"a provenance of other files": {func(t *testing.T) {
			os.Remove("release/MANIFEST.sha256.sig")
			writeFile(t, "release/more.json", nil)
			relist(t)
		}, nil, `"more.json": the provenance does not name it`},
	} {
		t.Run(name, func(t *testing.T) {
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			outside(t, "", "cp", "-r", here+"/.", ".")
			c.forge(t)
			differ(t, c.want, append(append([]string{"verify"}, c.flags...), "release")...)
		})
	}
}

// TestSignedReleaseWithoutAShard wants a shard that is lost to be one finding: what was signed
// still says what it said.
func TestSignedReleaseWithoutAShard(t *testing.T) {
	signedRelease(t)
	shards, err := filepath.Glob("release/*.gguf")
	if err != nil || len(shards) < 2 {
		t.Fatal(shards, err)
	}
	succeed(t, "sign", "--ssh-key", "id", "--provenance", "release")
	os.Remove(shards[1])
	r := ggufreap(t, "verify", "--signer", "allowed", "release")
	if r.code != exitDiffers || !strings.Contains(r.stdout, filepath.Base(shards[1])+": is listed and not there") || strings.Contains(r.stdout, "\nsignature  ") {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
	}
}

func TestSignRefuses(t *testing.T) {
	signedRelease(t)
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", "locked")
	outside(t, "", "openssl", "pkcs8", "-topk8", "-in", "key.pem", "-passout", "pass:secret", "-out", "locked.pem")
	outside(t, "", "openssl", "genpkey", "-algorithm", "ed25519", "-out", "ed.pem")
	writeFile(t, "alone.pub", readFile(t, "id.pub"))
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	for _, c := range []struct{ want, args string }{
		{"no key given", "release"},
		{"no agent runs here", "--ssh-key alone.pub release"},
		{"hint: --ssh-key id\n", "--ssh-key id.pub release"},
		{"sign takes one release folder, got 0", "--ssh-key id"},
		{"ssh-keygen signs with keys of any kind", "--ssh-key locked release"},
		{"this is a public key", "--ssh-key id.pub release"},
		{"protected by a passphrase", "--key locked.pem release"},
		{"openssl pkey -in locked.pem", "--key locked.pem release"},
		{"is an Ed25519 key", "--key ed.pem release"},
		{"an SSH key goes to --ssh-key id", "--key id release"},
		{"has no MANIFEST.sha256", "--key key.pem empty"},
		{"so that is needed too", "--key key.pem --source x release"},
	} {
		refuse(t, c.want, append([]string{"sign"}, strings.Fields(c.args)...)...)
	}
	for _, c := range []struct{ want, args string }{
		{"this is a private key", "--oms-key key.pem release"},
		{"PEM block is", "--oms-ca pub.pem release"},
		{"line 1", "--signer id.pub release"},
		{"so that is needed too", "--identity me release"},
		{"two ways", "--oms-key pub.pem --oms-ca pub.pem release"},
	} {
		refuse(t, c.want, append([]string{"verify"}, strings.Fields(c.args)...)...)
	}
	if err := os.Chmod("key.pem", 0o644); err != nil {
		t.Fatal(err)
	}
	if r := ggufreap(t, "sign", "--key", "key.pem", "release"); !strings.Contains(r.stderr, "warning: key.pem can be read by others") {
		t.Errorf("no warning of a key that others can read: %s", r.stderr)
	}
	os.Remove("release/plan.json")
	refuse(t, "lists a file that cannot be found", "sign", "--force", "--key", "key.pem", "release")
	writeFile(t, "release/"+manifest.JournalName, nil)
	refuse(t, "is unfinished", "sign", "--force", "--key", "key.pem", "release")
}

// TestPruneSigned has prune sign what it writes: the same as when sign does it afterwards.
func TestPruneSigned(t *testing.T) {
	signedRelease(t)
	succeed(t, "sign", "--key", "key.pem", "--ssh-key", "id", "--provenance", "--builder", "https://example.org/me", "release")
	prune := []string{"prune", "--keep", "4", "--shards", "2", "--key", "key.pem", "--ssh-key", "id", "--provenance", "--builder", "https://example.org/me", "-o", "new/release", "small.gguf"}
	if said := succeed(t, prune...); !strings.Contains(said, "MANIFEST.sha256, provenance.dsse.json, MANIFEST.sha256.sig, model.sig\n") {
		t.Errorf("the signatures are not listed:\n%s", said)
	}
	for _, name := range []string{sign.ProvenanceName, sign.SSHName, sign.ModelName, manifest.SumsName} {
		if !bytes.Equal(readFile(t, "release/"+name), readFile(t, "new/release/"+name)) {
			t.Errorf("%s is not what sign writes", name)
		}
	}
	succeed(t, "verify", "--signer", "allowed", "--oms-key", "pub.pem", "new/release")
	succeed(t, append(prune, "--resume")...)
	fingerprint := strings.Fields(outside(t, "", "ssh-keygen", "-lf", "id"))[1]
	succeed(t, append(prune[:len(prune)-3:len(prune)-3], "--card", "-o", "carded", "small.gguf")...)
	if card := string(readFile(t, "carded/README.md")); !strings.Contains(card, "Signed with the SSH key `"+fingerprint+"`.\nSigned with the EC key `") {
		t.Errorf("the card does not name the keys:\n%s", card)
	}
	succeed(t, "card", "--check", "carded/README.md", "carded")
	if card := succeed(t, "card", "-o", "-", "--signed-by", "id.pub", "--signed-by", "pub.pem", "release"); !strings.Contains(card, "`"+fingerprint+"`.\nSigned with the EC key `") {
		t.Errorf("the card does not name the keys:\n%s", card)
	}
	refuse(t, "this is a private key", "card", "-o", "-", "--signed-by", "key.pem", "release")
	refuse(t, "no key is given", "prune", "--keep", "4", "--provenance", "-o", "other", "small.gguf")
	refuse(t, "is needed too", "prune", "--keep", "4", "--key", "key.pem", "--builder", "x", "-o", "other", "small.gguf")
	refuse(t, "no such file", "prune", "--keep", "4", "--key", "missing", "-o", "other", "small.gguf")
	refuse(t, "exclude each other", "prune", "--keep", "4", "--key", "key.pem", "--only", "1/2", "-o", "other", "small.gguf")
	if exists("other") {
		t.Error("a refused command wrote something")
	}
}

// TestProvenanceOfTheHub states a source that was never here: by the sums that the hub stated.
func TestProvenanceOfTheHub(t *testing.T) {
	programtest.OnHub(t, smallMoE(), 2)
	t.Chdir(t.TempDir())
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	succeed(t, "prune", "--keep", "4", "--ssh-key", "id", "--provenance", "-o", "release", "hf://org/K3/IQ1_S")
	succeed(t, "verify", "release")
	e, err := sign.ParseEnvelope(readFile(t, "release/"+sign.ProvenanceName))
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Unchecked()
	if err != nil {
		t.Fatal(err)
	}
	if p.Parameters.Source != "hf://org/K3/IQ1_S" || len(p.Inputs) != 3 {
		t.Errorf("parameters %+v, made from %+v", p.Parameters, p.Inputs)
	}
	for _, in := range p.Inputs[:2] {
		if in.Notes["sha256"] != sign.StatedByHub || len(in.SHA256) != 64 || in.URI != "hf://org/K3@"+hubtest.Commit+"/IQ1_S/"+in.Name {
			t.Errorf("a file of the source: %+v", in)
		}
	}
}
