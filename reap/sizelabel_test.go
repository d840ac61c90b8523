package reap

import (
	"fmt"
	"testing"
)

func TestStaleSizeLabel(t *testing.T) {
	for label, stale := range map[string]bool{"896x1M": true, "568x1.2B": false, "568x7B": false, "7B": false, "": false, "large": false, "8x22B": true, "99999999999999999999x1B": false} {
		if got := StaleSizeLabel(label, 568); got != stale {
			t.Errorf("%q: %v", label, got)
		}
	}
}

// The numbers are what gguf-py writes of these.
func TestRounded(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0.00K", 1: "0.00K", 950: "1.0K", 1000: "1.0K", 12_345: "12K", 999_999: "1000K", 1e6: "1.0M", 7.24e9: "7.2B", 13e9: "13B", 46.7e9: "47B", 1e12: "1.0T", 2.78e12: "2.8T", 12.6e12: "13T",
	} {
		if got := rounded(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}

// A model's label counts one expert of each tensor that is named so, routers and biases of
// those that are kept, and everything else.
func TestSizeLabel(t *testing.T) {
	m := moe(2).model(t)
	e, err := ReadExperts(m)
	if err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[int]string{8: "8x2.4K", 4: "4x2.2K"} {
		const expert = 32*4 + 32*4 + 32*3 + 1
		const others = 16 + 16*8 + 8 + 16*8 + 8 + 16*8 + 4*2*8
		n := 16*10 + 16*8 + 16*10 + 2*(expert+others+(16+1)*keep)
		if sum := fmt.Sprintf("%dx%s", keep, rounded(float64(n))); sum != want {
			t.Fatalf("by hand %s, want %s", sum, want)
		}
		if got := SizeLabel(m, e, keep); got != want {
			t.Errorf("%d kept: %s, want %s", keep, got, want)
		}
	}
}
