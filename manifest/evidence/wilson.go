package evidence

import (
	"fmt"
	"math"
)

// Wilson returns the 95 % score interval of a share of correct items (Wilson 1927). It holds
// for items that were drawn at random.
func Wilson(correct, total int64) (low, high float64) {
	const z = 1.959963984540054 // 97.5 % of a standard normal distribution lie below it
	n, p := float64(total), float64(correct)/float64(total)
	// Products are rounded by themselves, so that no compiler fuses them with a sum.
	square := float64(z * z)
	middle := p + square/float64(2*n)
	width := float64(z * math.Sqrt(float64(p*float64(1-p))/n+square/float64(4*float64(n*n))))
	scale := 1 + square/n
	return max(0, (middle-width)/scale), min(1, (middle+width)/scale)
}

// percentText writes a share in percent.
func percentText(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// shareText writes correct items of all as a percentage with its interval.
func shareText(correct, total int64) (share, interval string) {
	low, high := Wilson(correct, total)
	return percentText(float64(correct) / float64(total)), fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high)
}
