package verify

import (
	"bytes"
	"os/exec"
	"testing"

	"ggufreap/manifest"
)

func TestSha256sumAcceptsARelease(t *testing.T) {
	dir, pin := mustRelease(t)
	check := exec.Command("sha256sum", "--check", "--strict", manifest.SumsName)
	check.Dir = dir
	out, err := check.CombinedOutput()
	if err != nil || bytes.Count(out, []byte(": OK\n")) != len(pin.Files)+1 {
		t.Errorf("%v\n%s", err, out)
	}
}
