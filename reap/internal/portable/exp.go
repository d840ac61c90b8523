package portable

import "math"

// ln 2 in two parts. The upper one has 32 bits, so that its product with an exponent of
// at most 11 bits is exact.
const (
	ln2Upper = 0x1.62e42feep-1
	ln2Lower = 0x1.a39ef35793c76p-33
)

// expSeries are 1/2!, 1/3!, ... 1/14!: the series of (e^r - 1 - r) / r^2. For |r| up to
// ln(2)/2 what is cut off is below 2^-60.
var expSeries = []float64{
	1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
	1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
	1.0 / 87178291200,
}

// Exp returns e^x, within 2 units; where the result is subnormal, within one unit of its
// own last place. It is 0 below -745.14 and infinite above 709.79.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	k := math.Floor(mulAdd(x, math.Log2E, 0.5))
	upper := x - float64(k*ln2Upper) // exact
	r := upper - float64(k*ln2Lower)
	// e^r = 1 + (r + r^2*series)
	tail := mulAdd(float64(r*r), polynomial(r, expSeries), r)
	return math.Ldexp(1+tail, int(k))
}
