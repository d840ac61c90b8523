package sign

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func provenance(t *testing.T) *Provenance {
	_, files := makeFolder(t)
	return &Provenance{
		Files:      files,
		Parameters: Parameters{Command: "prune", Source: "hf://owner/K3@0123", PlanDigest: "blake3:00", Experts: "568 of 896", Criterion: "router-norm", Evidence: "proxy", Shards: 14},
		Inputs: []Input{
			{Name: "K3-00001-of-00009.gguf", URI: "hf://owner/K3@0123/K3-00001-of-00009.gguf", SHA256: strings.Repeat("ab", 32), Notes: map[string]string{"sha256": StatedByHub}},
			{Name: "source.pin.json.zst", Notes: map[string]string{"pinDigest": "blake3:11"}},
		},
		Version: "v1.0.0",
	}
}

// TestProvenanceForm holds the statement to the names of SLSA provenance v1, read without the
// package's own types.
func TestProvenanceForm(t *testing.T) {
	text, err := provenance(t).Statement()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := provenance(t).Statement()
	if string(text) != string(again) {
		t.Error("made twice, it is not the same")
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		var v any = doc
		for name := range strings.SplitSeq(path, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[name]
			case []any:
				v = x[int(name[0]-'0')]
			}
		}
		return v
	}
	for path, want := range map[string]any{
		"_type":                               "https://in-toto.io/Statement/v1",
		"predicateType":                       "https://slsa.dev/provenance/v1",
		"subject.0.name":                      "K3-00001-of-00002.gguf",
		"predicate.buildDefinition.buildType": BuildType,
		"predicate.buildDefinition.externalParameters.experts":                "568 of 896",
		"predicate.buildDefinition.resolvedDependencies.0.name":               "K3-00001-of-00009.gguf",
		"predicate.buildDefinition.resolvedDependencies.0.digest.sha256":      strings.Repeat("ab", 32),
		"predicate.buildDefinition.resolvedDependencies.0.annotations.sha256": StatedByHub,
		"predicate.buildDefinition.resolvedDependencies.1.digest":             nil,
		"predicate.runDetails.builder.id":                                     LocalBuilder,
		"predicate.runDetails.builder.version.ggufreap":                       "v1.0.0",
		"predicate.runDetails.metadata":                                       nil,
	} {
		if got := at(path); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if n := len(at("subject").([]any)); n != len(folder) {
		t.Errorf("%d subjects, want %d", n, len(folder))
	}
}

// TestEnvelopes signs a statement with either kind of key and reads it back.
func TestEnvelopes(t *testing.T) {
	p := provenance(t)
	statement, err := p.Statement()
	if err != nil {
		t.Fatal(err)
	}
	key := privateKey(t)
	text, err := SignStatement(statement, key)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.CheckKey(&key.PublicKey)
	if err != nil || e.IsSSH() {
		t.Fatal(err, e.IsSSH())
	}
	checkSame(t, p, got)
	if _, err := e.CheckKey(&privateKey(t).PublicKey); !errors.Is(err, ErrWrongSignature) {
		t.Errorf("by another key: got %v, want ErrWrongSignature", err)
	}
	if _, _, err := e.CheckSSH(); !errors.Is(err, errNotSSH) {
		t.Errorf("taken for one of an SSH key: got %v", err)
	}

	dir := t.TempDir()
	public := keygen(t, dir, "key", "ed25519")
	sshKey, err := ReadSSHKey(read(t, filepath.Join(dir, "key")))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = SignStatementSSH(statement, sshKey); err != nil {
		t.Fatal(err)
	}
	if e, err = ParseEnvelope(text); err != nil || !e.IsSSH() || e.KeyID() != sshFingerprint(t, dir, "key") {
		t.Fatal(err, e.IsSSH(), e.KeyID())
	}
	got, s, err := e.CheckSSH()
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, p, got)
	if _, err := parseSigners(t, "me "+public).Find(s, "me", noon); err != nil {
		t.Error(err)
	}
	_, err = parseSigners(t, `me namespaces="`+Namespace+`" `+public).Find(s, "me", noon)
	wantError(t, err, "it is for the namespaces")

	// A signature over a list of sums is none over a statement.
	blob := func(namespaceMessage []byte, key ssh.Signer) []byte {
		armored, err := SignSSH(namespaceMessage, key)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseSSH(armored)
		if err != nil {
			t.Fatal(err)
		}
		return s.parsed.Marshal()
	}
	e.envelope = seal(statement, blob(statement, sshKey), "")
	_, _, err = e.CheckSSH()
	wantError(t, err, "it was made for")
}

func checkSame(t *testing.T, want, got *Provenance) {
	t.Helper()
	if faults := got.Compare(want.Files, want.Parameters); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
	if fmt.Sprint(got.Inputs) != fmt.Sprint(want.Inputs) || got.Version != want.Version || got.Builder != LocalBuilder {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestCompare changes a release after its provenance was stated.
func TestCompare(t *testing.T) {
	p := provenance(t)
	fault := func(files []File, is Parameters) string {
		var b strings.Builder
		for _, f := range p.Compare(files, is) {
			fmt.Fprintf(&b, "%s: %s\n", f.File, f.What)
		}
		return b.String()
	}
	changed := slices.Clone(p.Files)
	changed[0].SHA256[0] ^= 1
	if got := fault(changed, p.Parameters); strings.Count(got, "\n") != 1 || !strings.Contains(got, changed[0].Name+": the provenance says sha256") {
		t.Errorf("a changed file: %q", got)
	}
	if got := fault(p.Files[1:], p.Parameters); got != p.Files[0].Name+": the provenance names it, the list of sums does not\n" {
		t.Errorf("a file less: %q", got)
	}
	if got := fault(append(slices.Clone(p.Files), File{Name: "new"}), p.Parameters); got != "new: the provenance does not name it\n" {
		t.Errorf("a file more: %q", got)
	}
	own := *p
	own.Inputs = []Input{{Name: p.Files[0].Name, SHA256: strings.Repeat("0", 64), Notes: map[string]string{"role": RolePlan}}}
	if got := own.Compare(p.Files, p.Parameters); len(got) != 1 || !strings.Contains(got[0].What, "made from this file with sha256 0000") {
		t.Errorf("made from another plan: %v", got)
	}
	own.Inputs[0].Notes["role"] = RoleSource // whose files may have the names of the release's
	if got := own.Compare(p.Files, p.Parameters); len(got) > 0 {
		t.Errorf("made from a source with files of the same names: %v", got)
	}
	for change, is := range map[string]Parameters{
		"experts": func(q Parameters) Parameters { q.Experts = "576 of 896"; return q }(p.Parameters),
		"plan":    func(q Parameters) Parameters { q.PlanDigest = "blake3:22"; return q }(p.Parameters),
		"evid":    func(q Parameters) Parameters { q.Evidence = "measured"; return q }(p.Parameters),
		"shards":  func(q Parameters) Parameters { q.Shards = 9; return q }(p.Parameters),
	} {
		if got := fault(p.Files, is); strings.Count(got, "\n") != 1 || !strings.Contains(got, change) {
			t.Errorf("%s changed: %q", change, got)
		}
	}
}

// TestRefusedProvenance signs statements that no verifier may accept.
func TestRefusedProvenance(t *testing.T) {
	good, err := provenance(t).Statement()
	if err != nil {
		t.Fatal(err)
	}
	key := privateKey(t)
	for _, c := range []struct{ old, new, want string }{
		{BuildType, "urn:other", "is of build type"},
		{`"command":"prune"`, `"command":"prune","always":"x"`, "externalParameters"},
		{`"sha256":"`, `"sha256":"zz`, "want 64 hexadecimal digits"},
		{"K3-00002-of-00002.gguf", "K3-00001-of-00002.gguf", "twice"},
		{provenanceType, modelType, "predicate type"},
	} {
		text, err := SignStatement(replace(t, good, c.old, c.new), key)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEnvelope(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.CheckKey(&key.PublicKey)
		wantError(t, err, c.want)
	}
	_, err = ParseEnvelope([]byte(`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}`))
	wantError(t, err, "0 signatures")
}
