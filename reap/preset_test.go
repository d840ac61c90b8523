package reap

import (
	"strings"
	"testing"
)

func TestPreset(t *testing.T) {
	p, err := FindPreset("reap568")
	if err != nil {
		t.Fatal(err)
	}
	if p.Keep != 568 || p.Experts != 896 || p.Shards != 14 || p.Criterion != RouterNorm {
		t.Errorf("%+v", p)
	}
	if err := p.Check(&Experts{Count: 896}); err != nil {
		t.Error(err)
	}
	// 256 * 568/896 is 162.29.
	err = p.Check(&Experts{Count: 256, Used: 8})
	if want := `preset "reap568" keeps 568 of 896 experts, but the model has 256: choose a keep count instead, the same share is 162`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := FindPreset("reap99"); err == nil || !strings.Contains(err.Error(), "want reap568") {
		t.Errorf("error %v", err)
	}
}
