package proof

import (
	"bytes"
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// forgedPin writes a pin with the weights digest, tensor digests, sums and metadata of the
// genuine one, and the experts of another model in one tensor, whose digests all fit. It
// returns the genuine pin digest.
func forgedPin(t *testing.T, tensor string) (genuine string) {
	t.Helper()
	other := programtest.SmallK3()
	for at := 0; at < 32*100; at += 100 { // a byte of each expert, and more of some
		programtest.ChangeBytes(&other, tensor, at)
	}
	if _, err := other.Write("other", gguf.Split{Shards: 9}); err != nil {
		t.Fatal(err)
	}
	programtest.Succeed(t, "pin", "-o", "other.pin.json", "other")
	programtest.Succeed(t, "pin", "-o", "genuine.pin.json", "source")
	slabs := func(path string) string {
		pin, err := manifest.ReadPin(path)
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(manifest.ByName(pin)[tensor].Slabs.BLAKE3)
	}
	text, err := os.ReadFile("genuine.pin.json")
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(text, []byte(slabs("genuine.pin.json")), []byte(slabs("other.pin.json")), 1)
	_, err = manifest.DecodePin(bytes.NewReader(forged))
	said := regexp.MustCompile(`pin digest is "(.*)", weights, experts and metadata give "(.*)"$`).FindStringSubmatch(err.Error())
	if said == nil {
		t.Fatalf("the forged pin under the genuine digest: %v", err)
	}
	programtest.WriteText(t, "forged.pin.json", strings.Replace(string(forged), said[1], said[2], 1))
	return said[1]
}

// TestSourceDigestTellsPinsApart gives another model's bytes out for the pinned ones, with a
// pin that is the genuine one but for its experts.
func TestSourceDigestTellsPinsApart(t *testing.T) {
	proofFolder(t)
	genuine := forgedPin(t, "blk.1.ffn_up_exps.weight")
	refuses := func(args ...string) {
		t.Helper()
		r := programtest.Run(t, args...)
		if r.Code != programtest.Failed || !strings.Contains(r.Stderr, "want "+genuine+": it is another pin") {
			t.Errorf("%q: exit %d, %s%s", args, r.Code, r.Stdout, r.Stderr)
		}
	}
	refuses("prune", "--keep", "16", "--source-pin", "forged.pin.json", "--source-digest", genuine, "-o", "out", "other")
	refuses("prune", "--keep", "16", "--pin-source", "taken.pin.json", "--source-digest", genuine, "-o", "taken", "other")
	if programtest.Exists("out") || programtest.Exists("taken/"+manifest.SumsName) || programtest.Exists("taken.pin.json") {
		t.Error("a release or a pin was left behind")
	}
	r := programtest.Run(t, "prune", "--keep", "16", "--source-pin", "forged.pin.json", "-o", "out", "other")
	if r.Code != programtest.OK || strings.Contains(r.Stdout, genuine) {
		t.Errorf("without the digest: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	refuses("verify", "--source-pin", "forged.pin.json", "--source-digest", genuine, "out")
	if r := programtest.Run(t, "verify", "--source-pin", "forged.pin.json", "out"); strings.Contains(r.Stdout, genuine) {
		t.Errorf("the genuine digest is said of another source: %s", r.Stdout)
	}
	if r := programtest.Run(t, "verify", "--source-pin", "genuine.pin.json", "--source-digest", genuine, "out"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "reap.source_pin_digest") {
		t.Errorf("against the genuine pin: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := programtest.Run(t, "diff", "genuine.pin.json", "forged.pin.json"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "blk.1.ffn_up_exps.weight") {
		t.Errorf("diff: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestPinDigestStays cuts the source another way and prunes it by the digest alone.
func TestPinDigestStays(t *testing.T) {
	proofFolder(t)
	genuine := "" // as pin prints it, first of all
	if line, _, _ := strings.Cut(programtest.Succeed(t, "pin", "source"), "\n"); strings.HasPrefix(line, "pin digest ") {
		genuine = strings.TrimSpace(strings.TrimPrefix(line, "pin digest"))
	}
	says := func(args ...string) {
		t.Helper()
		if out := programtest.Succeed(t, args...); genuine == "" || !strings.Contains(out, genuine) {
			t.Errorf("%q does not say %s: %s", args, genuine, out)
		}
	}
	says("reshard", "--shards", "2", "-o", "two", "source")
	says("verify", "two")
	says("verify", "--expect", "pin_digest="+genuine, "source")
	says("pin", "--check", "source.pin.json.zst", "two")
	says("prune", "--keep", "16", "--source-pin", "source.pin.json.zst", "--no-source-pin", "--source-digest", strings.TrimPrefix(genuine, "blake3:"), "-o", "out", "two")
	says("prune", "--keep", "16", "--pin-source", "x.json", "--source-digest", genuine, "-o", "again", "two")
	says("verify", "--source-pin", "source.pin.json.zst", "--source-digest", genuine, "out")
	says("inspect", "--key", "reap.source_pin_digest", "out")
	for want, args := range map[string][]string{
		"no pin with pin digest": {"verify", "--source-digest", genuine, "out"},
		"give it with":           {"prune", "--keep", "16", "--source-digest", genuine, "--dry-run", "source"},
		"want 64 hexadecimal":    {"verify", "--source-pin", "x.json", "--source-digest", "abc", "out"},
	} {
		if r := programtest.Run(t, args...); r.Code != programtest.Failed || !strings.Contains(r.Stderr, want) {
			t.Errorf("%q: exit %d, want %q in %s", args, r.Code, want, r.Stderr)
		}
	}
	if r := programtest.Run(t, "verify", "--expect", "pin_digest=blake3:"+strings.Repeat("0", 64), "two"); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "pin_digest is "+genuine) {
		t.Errorf("another expectation: exit %d, %s", r.Code, r.Stdout)
	}
}
