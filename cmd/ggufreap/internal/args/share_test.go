package args

import (
	"strings"
	"testing"
)

func TestExperts(t *testing.T) {
	for _, tc := range []struct {
		s            string
		of, multiple int
		want         int
	}{
		{"568", 896, 1, 568}, {"568", 896, 100, 568}, {"-3", 896, 1, -3},
		{"75%", 896, 1, 672}, {"100%", 896, 1, 896}, {"50%", 9, 1, 4}, {"33.3%", 896, 1, 298}, {"0.1%", 896, 1, 0},
		{"75%", 32, 8, 24}, {"75%", 896, 32, 672}, {"70%", 896, 32, 608}, {"99.99999999999999999%", 100, 1, 99},
	} {
		if got, _, err := Experts(tc.s, tc.of, tc.multiple); err != nil || got != tc.want {
			t.Errorf("%s of %d: %d, %v, want %d", tc.s, tc.of, got, err, tc.want)
		}
	}
	for _, s := range []string{"", "many", "4.5", "%", "0%", "-5%", "101%", "1e2%", "1/2%", "75 %", "0x4%", "75%%", "99999999999999999999"} {
		if got, _, err := Experts(s, 896, 1); err == nil || !strings.Contains(err.Error(), "share") {
			t.Errorf("%q is taken for %d (%v)", s, got, err)
		}
	}
}
