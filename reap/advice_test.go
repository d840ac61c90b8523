package reap

import (
	"strings"
	"testing"
)

func TestKeepAdvice(t *testing.T) {
	const kernel, router, old, limit = "not a multiple of 4", "routing runs as several kernels", "without Kimi-K3 stop at 512", "stops at 1024"
	for keep, want := range map[int][]string{
		1: {kernel}, 2: {kernel}, 4: nil, 12: {router}, 64: nil, 96: {router}, 288: nil,
		511: {kernel, router}, 512: nil, 568: {router, old}, 576: {old}, 577: {kernel, router, old},
		640: {router, old}, 896: {router, old}, 1024: {router, old}, 1028: {router, limit},
	} {
		got := KeepAdvice(keep)
		if len(got) != len(want) {
			t.Errorf("%d: %q, want %q", keep, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%d: %q, want %q", keep, got[i], want[i])
			}
		}
	}
}
